"""Runs on texts: these become vectors before all else, by one model throughout, and are kept beside the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rte.config import RunConfig
from rte.data.text import Config, Texts
from rte.data.types import ArrayVectors, Dataset, Source, Split
from rte.errors import CheckpointError
from rte.run.frozen import Keep
from rte.run.kept import there
from rte.run.sentences import Encoder, fingerprint


def embedded(config: RunConfig, dataset: Dataset, keep: Keep | None) -> Dataset:
    """The dataset with vectors in the place of texts."""
    source, keep = dataset.train.images, keep or Keep()
    if not isinstance(source, Texts):
        return dataset
    assert isinstance(config.data, Config)
    key, file, found = {"model": config.data.model_sha256, "examples": fingerprint(source.values)}, None, None
    if keep.cache is not None:
        file = keep.cache / f"{Path(config.data.model).name}-{str(key['model'])[:8]}-{key['examples']}.npy"
        found = there(file, key)  # without the model, which takes seconds to load
    features = found if found is not None else encoder_of(config)(Texts(source.values), file, tell=keep.tell)

    def vectors(split: Split) -> Split:
        assert isinstance(split.images, Texts)
        return Split(ArrayVectors(features, split.images.rows), split.y)

    test = None if dataset.test is None else vectors(dataset.test)
    return replace(dataset, train=vectors(dataset.train), test=test)


def embeddings(config: RunConfig, texts: Texts) -> Source:
    """Texts that are to be classified, by the model of a run."""
    return ArrayVectors(encoder_of(config)(texts))


def encoder_of(config: RunConfig) -> Encoder:
    """The run's model for texts, and no other."""
    assert isinstance(config.data, Config)
    encoder = Encoder.open(config.data.model, device=config.train.device)
    if config.data.model_sha256 not in (None, encoder.key["model"]):
        raise CheckpointError(
            f"{config.data.model} is not the model that the run began with (its weights' SHA-256 is not the "
            "data.model_sha256 of config.json); restore it, or start a new run."
        )
    return encoder


def with_model(config: RunConfig) -> RunConfig:
    """The settings with the sha256 of the model for texts, where there is one."""
    if not isinstance(config.data, Config) or config.data.model_sha256 is not None:
        return config
    known = {"model_sha256": encoder_of(config).key["model"]}
    return replace(config, data=config.data.model_copy(update=known))
