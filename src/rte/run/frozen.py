"""`--init --frozen`: images are seen once by a network that stays as it is, and a linear layer learns its features.

Beside the runs, a folder `features` keeps what was seen, so that the next run on the same images begins at once. The
run folder holds backbone.safetensors, and is predicted from without the file that it began with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from rte.config import RunConfig
from rte.data.types import ArrayVectors, Dataset, Embedded, Images, Split, as_images
from rte.errors import CheckpointError, UserError
from rte.files import write_atomic
from rte.methods.base import Predict
from rte.run.features import Extractor
from rte.run.inputs import FeatureSpec, ImageSpec, InputSpec, image_spec
from rte.run.kept import Tell, fingerprint
from rte.run.pretrained import same_weights
from rte.views.config import ViewConfig

BACKBONE = "backbone.safetensors"
CACHE = "features"


@dataclass(frozen=True)
class Keep:
    """`cache`: the folder where features are kept, None for nowhere; `run`: a folder that may hold the network.

    `tell` is told how far they are taken.
    """

    cache: Path | None = None
    run: Path | None = None
    tell: Tell | None = None

    @classmethod
    def beside(cls, run: Path, tell: Tell | None = None) -> Keep:
        """Where the run folder stands, for all runs that stand there."""
        return cls(run.absolute().parent / CACHE, run, tell)


def seen(config: RunConfig, dataset: Dataset, keep: Keep | None) -> Dataset:
    """The dataset as a run trains on it: with features in the place of images where these are seen once."""
    if config.net.init is None or config.net.train != "frozen" or not isinstance(dataset.train.images, Images):
        return dataset
    spec, keep = image_spec(config, dataset, len(dataset.train)), keep or Keep()
    look = opened(config, spec, keep.run)

    def features(split: Split) -> Split:
        images = as_images(split.images)
        file = _file(config, spec, keep, images)
        found = look(images, file, threads=config.train.threads, tell=keep.tell)
        return Split(Embedded(ArrayVectors(found), images), split.y)

    test = dataset.test if dataset.test is None or not len(dataset.test) else features(dataset.test)
    return replace(dataset, train=features(dataset.train), test=test)


def opened(config: RunConfig, spec: ImageSpec, run: Path | None) -> Extractor:
    """The network that a run sees its images by: as the run folder kept it, else from the file it starts from."""
    assert isinstance(config.views, ViewConfig)
    state, init = None, str(config.net.init)
    if run is not None and (run / BACKBONE).is_file():
        state, init = _kept(run / BACKBONE), config.net.name
    else:
        same_weights(config)
    side, mirror = spec.size[0], config.views.mirror
    look = Extractor.open(
        init, channels=spec.channels, size=side, mirror=mirror, device=config.train.device, state=state
    )
    return replace(look, key={**look.key, "weights": config.net.init_sha256})


def looking(spec: FeatureSpec, look: Extractor, predict: Predict) -> Predict:
    """`predict` of features as a function of images."""
    mean, std = (torch.tensor(values, device=look.device) for values in (spec.vectors.mean, spec.vectors.std))

    def of_images(x: Tensor) -> Tensor:
        return predict((look.see(x).float() - mean) / std)

    return of_images


def keep_backbone(folder: Path, config: RunConfig, spec: InputSpec) -> None:
    """Put the network into a run folder, where the run sees its images but once."""
    if isinstance(spec, FeatureSpec):
        state = {key: value.contiguous() for key, value in opened(config, spec.images, None).backbone().items()}
        data = safetensors.torch.save(state)
        write_atomic(folder / BACKBONE, lambda file: file.write(data))


def _file(config: RunConfig, spec: ImageSpec, keep: Keep, images: Images) -> Path | None:
    if keep.cache is None:
        return None
    assert isinstance(config.views, ViewConfig)
    twice = "-mirror" if config.views.mirror else ""
    weights = str(config.net.init_sha256)[:8]
    try:
        keep.cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {keep.cache} ({error.strerror}); choose another --out.") from None
    return keep.cache / f"{config.net.name}-{weights}-{spec.size[0]}{twice}-{fingerprint(images)}.npy"


def _kept(file: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(file)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file} cannot be read ({error}); restore it.") from None
