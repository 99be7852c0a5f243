"""Runs that start from trained weights: which network they mean, and that they go on with the same ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rte.config import RunConfig
from rte.errors import CheckpointError
from rte.nets.base import Net
from rte.nets.pretrained import fill
from rte.nets.weights import PACKAGED, Weights, read
from rte.parts.schedules import Triangle, constant
from rte.run.inputs import ImageSpec, InputSpec

HEAD_RATE = Triangle(peak=0.002, start=0.0004, top=0.2, end=0.0)
"""Learning rate of Adam for a linear layer, as in the preset `vectors`."""


def recognised(config: RunConfig) -> RunConfig:
    """The settings with the network that `net.init` is of, and its sha256; as they are where that is known already."""
    net = config.net
    if net.init is None or net.init_sha256 is not None:
        return config
    config = _without_muon(config)
    weights = read(net.init)
    name = net.init if net.init == PACKAGED else str(weights.path.resolve())
    known = {"init": name, "init_sha256": weights.sha256, "name": weights.source.net, "wider": ()}
    return replace(config, net=net.model_copy(update=known))


def _without_muon(config: RunConfig) -> RunConfig:
    """Muon keeps filters at a norm of its own, which trained weights do not have. A head alone learns by Adam.

    What is seen once is seen at one size.
    """
    changes: dict[str, Any] = {}
    if config.net.train == "frozen":
        changes["resolution"] = constant(1.0)
    if config.train.optimizer == "muon":
        changes["optimizer"] = "sgd"
        if config.net.train == "frozen":
            changes |= {"optimizer": "adam", "lr": HEAD_RATE}
    return config.with_train(**changes)


def trained_network(config: RunConfig, spec: InputSpec) -> Net:
    """The run's network, filled with the weights it starts from."""
    net = spec.network(config)
    if isinstance(spec, ImageSpec) and config.net.init is not None:
        fill(net, same_weights(config))
    return net


def same_weights(config: RunConfig) -> Weights:
    """The weights that a run began with, and no others."""
    assert config.net.init is not None
    weights = read(config.net.init)
    if weights.sha256 != config.net.init_sha256:
        raise CheckpointError(
            f"{weights.path} has changed since the run began (its SHA-256 is not the net.init_sha256 of config.json); "
            "restore the file, or start a new run."
        )
    return weights
