"""How a network is trained."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from rte.parts.schedules import Cosine, Schedule, constant
from rte.settings import Settings, setting


class TrainConfig(Settings):
    """How long, how fast, on what, and what is kept aside."""

    epochs: int = setting(30, "passes over the training set", ge=1)
    steps: int | None = setting(None, "stop after this many steps, though epochs be left", ge=1)
    budget: float | None = setting(
        None, "seconds, instead of epochs: the clock is the schedule; --budget sets it", gt=0.0
    )
    batch: int = setting(128, "examples per step", ge=1)
    optimizer: Literal["sgd", "adam", "muon"] = setting(
        "sgd", "sgd (Nesterov momentum, as in the paper), adam, or muon (orthogonal steps for convolutions)"
    )
    lr: Schedule = setting(Cosine(scale=0.1), "learning rate", search=(1e-5, 0.1), ge=0.0)
    weight_decay: Schedule = setting(constant(5e-4), "L2 penalty on all weights", search=(5e-5, 2e-3), ge=0.0)
    momentum: float = setting(0.9, "momentum of sgd and muon, beta_1 of adam", ge=0.0, lt=1.0)
    nesterov: bool = setting(True, "Nesterov's form of momentum")
    accumulate: int = setting(1, "pieces a batch is computed in, one after another, to save memory", ge=1)
    clip: float | None = setting(None, "largest norm of the gradient", gt=0.0)
    examples: int | None = setting(
        None, "train on at most so many examples, drawn at random, the same share of every given label", ge=2
    )
    trusted: int | str = setting(
        0, "examples whose labels are known to be right, which noise is not injected into: how many, or a file of names"
    )
    resolution: Schedule = setting(
        constant(1.0),
        "share of the side at which training sees images; below 1, steps are cheaper and coarser",
        gt=0.0,
        le=1.0,
    )
    holdout: float = setting(0.0, "share of the noisily labelled training set kept aside for selection", ge=0.0, lt=1.0)
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps")
    precision: Literal["auto", "fp32", "tf32", "bf16"] = setting(
        "fp32",
        "tf32: as fp32, but GPUs may round the factors of products; bf16: autocast; auto: bf16 on processors that "
        "are faster in it",
    )
    deterministic: bool = setting(
        False, "on GPUs: the same numbers bit for bit each time, for slower kernels; processors always give the same"
    )
    compile: bool = setting(False, "torch.compile the networks; gains little on CPUs and starts slowly")
    threads: int = setting(1, "threads that prepare views; results do not depend on it", ge=1, le=1024)
    evaluate_every: int = setting(1, "epochs between evaluations (the last is always evaluated)", ge=1)
    evaluate_batch: int = setting(500, "images per forward pass of an evaluation", ge=1)
    checkpoint_minutes: float = setting(5.0, "a checkpoint at least this often, besides one after each epoch", gt=0.0)

    @field_validator("trusted")
    @classmethod
    def _a_count_or_a_file(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 0:
            raise ValueError("give a number from 0 up, or the path of a text file")
        return value

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> TrainConfig:
        if self.optimizer == "sgd" and self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs momentum above 0; set nesterov=false or momentum=0.9")
        return self
