"""What must be known of the data to rebuild a trained method and feed it examples: input.json of a run folder."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from rte import nets, registry
from rte.config import RunConfig
from rte.data.rows import Column, TableRows, as_rows
from rte.data.statistics import channel_statistics, vector_statistics
from rte.data.types import Dataset, Embedded, Images, Source, Vectors, as_images, as_vectors
from rte.errors import ConfigError, DataError
from rte.nets import pretrained
from rte.nets.weights import SIDE
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.tables import TableViewConfig, TableViewer, learnt, rows_bank
from rte.views.vectors import VectorViewConfig, VectorViewer, bank_of
from rte.views.viewer import Viewer

MIXED_SIZE = 64
"""The side that images of differing or large size are brought to, unless views.size says otherwise."""
ALONE = 5_000
"""Examples of few numbers from which one wide network is better than several narrow ones that are cross-fitted. Letter
(16,000): 96.8/94.3 % against 96.2/93.2 % at 0/40 % noise; digits (1,257): 92.7 % against 94.5 % at 40 %."""
EMBEDDED = 100
"""From so many numbers on, vectors count as embeddings, whose classes a linear layer can tell apart. Between 16 numbers
(letter, where a perceptron is better) and 384 (Banking77, where a linear layer is): docs/vectors.md."""

TABLES = "mlp"
"""The network for tables."""


@dataclass(frozen=True)
class ImageSpec:
    """Images of (channels, *size), normalised by mean and std; n of them are trained on."""

    classes: tuple[str, ...]
    channels: int
    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    n: int

    def viewer(self, config: RunConfig, train: Source | None = None) -> Viewer:
        """What makes views; training needs no other images than those it is shown."""
        assert isinstance(config.views, ViewConfig)
        return ViewEngine(config.views, mean=self.mean, std=self.std, size=self.size, channels=self.channels)

    def network(self, config: RunConfig, name: str | None = None) -> nets.Net:
        """The run's network, or another one, freshly made."""
        return _network(self, config, name)

    def check(self, source: Source) -> None:
        """Refuse examples that the model was not trained for."""
        images = as_images(source)
        if images.channels != self.channels:
            raise DataError(
                f"the images have {images.channels} channels, the model was trained on {self.channels}; "
                "convert them first."
            )


@dataclass(frozen=True)
class VectorSpec:
    """Vectors of `dim` numbers, standardised by mean and std; n of them are trained on.

    `nearest` is the median distance of a standardised example to its nearest neighbour.
    """

    classes: tuple[str, ...]
    dim: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    nearest: float
    n: int

    @property
    def channels(self) -> int:
        """Of one position, of which a vector has but one."""
        return self.dim

    @property
    def size(self) -> tuple[()]:
        """A vector has neither height nor width."""
        return ()

    def viewer(self, config: RunConfig, train: Source | None = None) -> Viewer:
        """What makes views; strong ones need some other examples of the training set."""
        assert isinstance(config.views, VectorViewConfig)
        bank = None if train is None else bank_of(as_vectors(train), self.mean, self.std, seed=config.seed)
        return VectorViewer(config.views, mean=self.mean, std=self.std, nearest=self.nearest, bank=bank)

    def network(self, config: RunConfig, name: str | None = None) -> nets.Net:
        """The run's network, or another one, freshly made."""
        return _network(self, config, name)

    def check(self, source: Source) -> None:
        """Refuse examples that the model was not trained for."""
        if (found := as_vectors(source).dim) != self.dim:
            raise DataError(f"the vectors have {found} numbers, the model was trained on {self.dim}; make them alike.")


@dataclass(frozen=True)
class FeatureSpec:
    """`images` that a network which stays as it is has seen once: a linear layer is trained on its features, `vectors`.

    What is to be predicted are images.
    """

    images: ImageSpec
    vectors: VectorSpec
    mirror: bool = False
    """Whether the features are the mean of those of an image and of its mirror image."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names."""
        return self.images.classes

    @property
    def n(self) -> int:
        """How many examples are trained on."""
        return self.images.n

    @property
    def channels(self) -> int:
        """Of an image."""
        return self.images.channels

    @property
    def size(self) -> tuple[int, int]:
        """Of an image."""
        return self.images.size

    def viewer(self, config: RunConfig, train: Source | None = None) -> Viewer:
        """What makes views of features; [views] of the run is about images."""
        return self.vectors.viewer(replace(config, views=VectorViewConfig()), train)

    def network(self, config: RunConfig, name: str | None = None) -> nets.Net:
        """A linear layer."""
        return nets.build("linear", channels=self.vectors.dim, classes=len(self.classes), size=(),
                          dropout=config.net.dropout)  # fmt: skip

    def check(self, source: Source) -> None:
        """Refuse examples that the model was not trained for."""
        self.images.check(source)


@dataclass(frozen=True)
class TableSpec:
    """Rows of a table: its columns, and mean and std of the numbers that they become; n rows are trained on."""

    classes: tuple[str, ...]
    columns: tuple[Column, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    n: int

    @property
    def channels(self) -> int:
        """The numbers that a row becomes."""
        return len(self.mean)

    @property
    def size(self) -> tuple[()]:
        """A row has neither height nor width."""
        return ()

    def viewer(self, config: RunConfig, train: Source | None = None) -> Viewer:
        """What makes views; strong ones need some other training rows."""
        assert isinstance(config.views, TableViewConfig)
        bank = None if train is None else rows_bank(as_rows(train), seed=config.seed)
        return TableViewer(config.views, self.columns, mean=self.mean, std=self.std, bank=bank)

    def network(self, config: RunConfig, name: str | None = None) -> nets.Net:
        """The run's network, or another one, freshly made."""
        return _network(self, config, name)

    def check(self, source: Source) -> None:
        """Refuse rows that were not read by the columns of the model."""
        if [column.name for column in as_rows(source).columns] != [column.name for column in self.columns]:
            raise DataError("the rows have other columns than those of the training; read them by these.")


def suited(config: RunConfig, spec: InputSpec) -> RunConfig:
    """The settings with a network by name, where `auto` left it to the data."""
    if config.net.name != "auto":
        return config
    if isinstance(spec, TableSpec):
        return _alone(config).with_net(TABLES)
    if not isinstance(spec, VectorSpec | ImageSpec | FeatureSpec):  # of the user's own
        return config
    if not isinstance(spec, VectorSpec):
        raise ConfigError("net.name = auto chooses a network for vectors; name one for images, see `rte list nets`.")
    if spec.dim >= EMBEDDED:
        return config.with_net("linear")
    return config.with_net("mlp-128") if spec.n < ALONE else _alone(config).with_net("mlp")


def _alone(config: RunConfig) -> RunConfig:
    """The same with one network where several would be cross-fitted."""
    if getattr(config.method, "folds", 1) == 1:
        return config
    return replace(config, method=config.method.model_copy(update={"folds": 1}))


InputSpec: TypeAlias = ImageSpec | VectorSpec | FeatureSpec | TableSpec


def _network(spec: InputSpec, config: RunConfig, name: str | None) -> nets.Net:
    if config.net.init is not None and isinstance(spec, ImageSpec):
        channels, classes = spec.channels, len(spec.classes)
        return pretrained.make(config.net, name or config.net.name, channels=channels, classes=classes, size=spec.size)
    make, dropout = registry.network(name or config.net.name), config.net.dropout
    return make(channels=spec.channels, classes=len(spec.classes), size=spec.size, dropout=dropout)


def describe(config: RunConfig, dataset: Dataset, n: int) -> InputSpec:
    """The kind, size and statistics of a run's examples; a source of the user's own has `spec`, which says them."""
    source = dataset.train.images
    if hasattr(source, "spec"):
        own: InputSpec = source.spec(dataset.classes, n)
        return own
    if isinstance(source, Embedded):
        assert isinstance(config.views, ViewConfig)
        vectors = VectorSpec(dataset.classes, source.dim, *vector_statistics(source), n)
        return FeatureSpec(image_spec(config, dataset, n), vectors, config.views.mirror)
    if isinstance(source, Vectors):
        if config.net.init is not None:
            raise ConfigError(
                f"net.init names a network for images, but {config.data_name} holds vectors; leave it out."
            )
        _check_views(config, VectorViewConfig, "vectors")
        return VectorSpec(dataset.classes, source.dim, *vector_statistics(source), n)
    if isinstance(source, TableRows):
        if config.net.init is not None:
            raise ConfigError(f"net.init names a network for images, but {config.data_name} is a table; leave it out.")
        _check_views(config, TableViewConfig, "rows of a table")
        return TableSpec(dataset.classes, *learnt(source), n)
    _check_views(config, ViewConfig, "images")
    return image_spec(config, dataset, n)


def side_of(config: RunConfig, images: Images) -> tuple[int, int]:
    """(height, width) that a run brings its images to."""
    assert isinstance(config.views, ViewConfig)
    if config.views.size is not None:
        return config.views.size, config.views.size
    if config.net.init is not None:
        return SIDE, SIDE
    if images.size is None or max(images.size) > 2 * MIXED_SIZE:
        return MIXED_SIZE, MIXED_SIZE
    return images.size


def image_spec(config: RunConfig, dataset: Dataset, n: int) -> ImageSpec:
    """The size of a run's images, as it sees them, and their statistics."""
    assert isinstance(config.views, ViewConfig)
    source = dataset.train.images
    images: Images = source.images if isinstance(source, Embedded) else as_images(source)
    size = side_of(config, images)
    if config.net.init is not None:
        statistics = pretrained.normalisation(config.net.name, images.channels)
    else:
        statistics = channel_statistics(images)
    return ImageSpec(dataset.classes, images.channels, size, *statistics, n)


def _check_views(config: RunConfig, expected: type, kind: str) -> None:
    if not isinstance(config.views, expected):
        raise ConfigError(f"{config.data_name} holds {kind}, but [views] is of another kind; give data of one kind.")


def from_json(tree: Any) -> InputSpec:
    """What a run folder says of its data; ValueError where it makes no sense."""
    keys = tree if isinstance(tree, dict) else {}
    kind: type[InputSpec] = ImageSpec
    for key, other in (("vectors", FeatureSpec), ("dim", VectorSpec), ("columns", TableSpec)):
        kind = other if key in keys else kind
    spec = TypeAdapter(kind).validate_json(json.dumps(tree), strict=True)
    for part in (spec.images, spec.vectors) if isinstance(spec, FeatureSpec) else (spec,):
        whole, numbers = (part.channels, part.n, len(part.classes), *part.size), (*part.mean, *part.std)
        finite = all(math.isfinite(number) for number in numbers)
        if min(whole) < 1 or not finite or not len(part.mean) == len(part.std) == part.channels:
            raise ValueError("its numbers do not fit together")
    return spec
