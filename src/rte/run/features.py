"""Features of images by a trained network, taken once: what `rte fit --init --frozen` and `rte embed` work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte.data.types import Images, Source, as_images
from rte.errors import DataError
from rte.nets import pretrained
from rte.nets.base import Net
from rte.nets.config import NetConfig
from rte.nets.weights import SIDE, read
from rte.run.kept import Features, Tell, fingerprint, taken
from rte.train.device import choose_device
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.loader import Loader
from rte.views.viewer import Viewer

PIXELS = 2**18
"""Of a batch: larger ones do not fit into the caches. MobileNetV2 at 160 px took 16 ms for an image in batches of 8,
25 ms in batches of 32 and 53 ms in batches of 128 (one core)."""


@dataclass(frozen=True)
class Extractor:
    """A trained network by which images become features; `key` says of what else than the images they are."""

    net: Net
    viewer: Viewer
    device: torch.device
    key: Mapping[str, Any]

    @classmethod
    def open(
        cls,
        init: str,
        *,
        channels: int = 3,
        size: int | None = None,
        mirror: bool = False,
        device: str = "auto",
        state: Mapping[str, torch.Tensor] | None = None,
    ) -> Extractor:
        """`init` as for `--init`. Images are seen with `size` pixels a side, if not given as many as in training.

        mirror: the mean with the features of the mirror image. state: the network's own weights, where they were kept;
        `init` is then the name of the network.
        """
        weights = read(init) if state is None else None
        side, name = size or SIDE, init if weights is None else weights.source.net
        cfg = NetConfig.model_validate({"init": init, "name": name, "train": "frozen"})
        net = pretrained.make(cfg, name, channels=channels, classes=2, size=(side, side))
        if weights is not None:
            pretrained.fill(net, weights)
        else:
            net.load_state_dict(dict(state or {}), strict=False)  # the head is not kept
        mean, std = pretrained.normalisation(name, channels)
        views = ViewConfig.model_validate({"size": side, "mirror": mirror})
        viewer = ViewEngine(views, mean=mean, std=std, size=(side, side), channels=channels)
        where = choose_device(device)
        net.eval().to(where).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        key = {"weights": weights.sha256 if weights is not None else name}
        return cls(net, viewer, where, key | ({"mirror": True} if mirror else {}))

    def see(self, images: torch.Tensor) -> torch.Tensor:
        """Images as the viewer shows them (B, C, H, W) -> features (B, D)."""
        seen, again = self.net.features(images), self.viewer.mirrored(images)
        return seen if again is None else (seen + self.net.features(again)) / 2

    def backbone(self) -> dict[str, torch.Tensor]:
        """The network's weights without its head, by our own names."""
        return {key: value for key, value in self.net.state_dict().items() if "head." not in key}

    def __call__(
        self, source: Source, file: Path | None = None, *, threads: int = 1, tell: Tell | None = None
    ) -> Features:
        """The features of all examples, (N, D): in memory, or mapped from `file`, see `kept.taken`."""
        self._check(as_images(source))
        key = {} if file is None else {"view": list(self.viewer.shape), "examples": fingerprint(source)}
        shape = len(source), self.net.width
        return taken(partial(self._blocks, source, threads), shape, file, {**self.key, **key}, tell)

    def _blocks(self, source: Source, threads: int, first: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """(position, features) of a few examples after the other."""
        rows = np.arange(first, len(source), dtype=np.int64)
        loader = Loader(source.take(rows), np.zeros(len(rows), np.int64), self.viewer, seed=0, threads=threads)
        for images in loader.plain(batch_of(self.viewer)):
            with torch.inference_mode():
                block = self.see(images.to(self.device)).float().cpu().numpy()
            yield first, block
            first += len(block)

    def _check(self, images: Images) -> None:
        if images.channels != self.viewer.shape[-1]:
            raise DataError(
                f"the images have {images.channels} channels, and the features are of {self.viewer.shape[-1]}; "
                "convert them first."
            )


def batch_of(viewer: Viewer, most: int = 500) -> int:
    """How many examples are best given to a network at a time."""
    return max(1, min(most, PIXELS // int(np.prod(viewer.shape[:-1]))))
