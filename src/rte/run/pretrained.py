"""Runs that start from trained weights: which network they mean, and that they go on with the same ones."""

from __future__ import annotations

from dataclasses import replace

from rte.config import RunConfig
from rte.errors import CheckpointError, ConfigError
from rte.nets.base import Net
from rte.nets.pretrained import fill
from rte.nets.weights import PACKAGED, Weights, read
from rte.run.inputs import ImageSpec, InputSpec


def recognised(config: RunConfig) -> RunConfig:
    """The settings with the network that `net.init` is of, and its sha256; as they are where that is known already."""
    net = config.net
    if net.init is None or net.init_sha256 is not None:
        return config
    if config.train.optimizer == "muon":
        raise ConfigError(
            "train.optimizer = muon keeps filters at a norm of its own, which trained weights do not have; set "
            "train.optimizer=sgd."
        )
    weights = read(net.init)
    name = net.init if net.init == PACKAGED else str(weights.path.resolve())
    known = {"init": name, "init_sha256": weights.sha256, "name": weights.source.net, "wider": ()}
    return replace(config, net=net.model_copy(update=known))


def trained_network(config: RunConfig, spec: InputSpec) -> Net:
    """The run's network, filled with the weights it starts from."""
    net = spec.network(config)
    if config.net.init is not None:
        assert isinstance(spec, ImageSpec)
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
