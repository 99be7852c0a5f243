"""Which network."""

from __future__ import annotations

from rte.settings import Settings, setting


class NetConfig(Settings):
    """The network."""

    name: str = setting("compact", "see `rte list nets`")
    dropout: float = setting(0.0, "share of activations dropped inside residual blocks", ge=0.0, lt=1.0)
    wider: tuple[str, ...] = setting((), "networks that --budget may take instead, the cheapest first", strict=False)
    wider_epochs: int = setting(15, "epochs that --budget must have the time for with a wider network", ge=1)
