"""Which network."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from rte.settings import Settings, setting

Trained = Literal["whole", "last-stage", "frozen"]


class NetConfig(Settings):
    """The network."""

    name: str = setting("compact", "see `rte list nets`; vectors: auto takes one that suits their length")
    dropout: float = setting(0.0, "share of activations dropped inside residual blocks", ge=0.0, lt=1.0)
    init: str | None = setting(None, "start from trained weights: a file of them, or efficientnet-lite0; decides name")
    init_sha256: str | None = setting(None, "of those weights; a run records it, and goes on with no others")
    train: Trained = setting("whole", "what learns of a network that starts from weights; frozen: the head alone")
    backbone_rate: float = setting(
        0.1, "where it starts from weights: learning rate of all but the head, as a share of the head's", ge=0.0, le=1.0
    )
    wider: tuple[str, ...] = setting((), "networks that --budget may take instead, the cheapest first", strict=False)
    wider_epochs: int = setting(15, "epochs that --budget must have the time for with a wider network", ge=1)

    @model_validator(mode="after")
    def _what_is_held_must_have_learnt(self) -> NetConfig:
        if self.train != "whole" and self.init is None:
            raise ValueError(f"train = {self.train} holds weights that have learnt nothing; name some with net.init")
        return self
