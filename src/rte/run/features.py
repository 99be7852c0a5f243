"""Features of images by a trained network, taken once: what `rte fit --init --frozen` and `rte embed` work on.

A file of features FILE.npy comes with FILE.json, which says what they are of. While they are taken the two are
FILE.part.npy and FILE.part.json, and who is stopped goes on where the latter says.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte.data.types import Images, Source, as_images
from rte.errors import CheckpointError, DataError, UserError
from rte.files import write_json
from rte.nets import pretrained
from rte.nets.base import Net
from rte.nets.config import NetConfig
from rte.nets.weights import SIDE, read
from rte.train.device import choose_device
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.loader import Loader
from rte.views.viewer import Viewer

Features = NDArray[Any]
"""(N, D) float32, or float16 where there are many, in memory or mapped from a file."""
Tell = Callable[[int, int], None]
"""Is told how many examples are done, and how many there are."""

PIXELS = 2**18
"""Of a batch: larger ones do not fit into the caches. MobileNetV2 at 160 px took 16 ms for an image in batches of 8,
25 ms in batches of 32 and 53 ms in batches of 128 (one core)."""
SAVED = 10.0
"""Seconds after which what is done is safe."""
SINGLE = 2**31
"""Bytes up to which features are kept in single precision, larger sets in half: a run reads them in every epoch."""
SOME = 16
"""Examples whose content is looked at to tell whether they are the same as before."""


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
        """The features of all examples, (N, D): in memory, or mapped from `file`.

        They are taken now, gone on with, or there already, if the file says the same `key` and the same examples.
        """
        self._check(as_images(source))
        n, width = len(source), self.net.width
        if file is None:
            found = np.empty((n, width), np.float32)
            for at, block in self._blocks(source, 0, threads):
                found[at : at + len(block)] = block
                _told(tell, at + len(block), n)
            return found
        kind = "float16" if 4 * n * width > SINGLE else "float32"
        whole = {**self.key, "view": list(self.viewer.shape), "examples": fingerprint(source), "dtype": kind}
        whole |= {"shape": [n, width]}
        if _record(file) != whole:
            self._take(source, file, whole, threads, tell)
        mapped: Features = _mapped(file, "r")
        return mapped

    def _take(self, source: Source, file: Path, key: dict[str, Any], threads: int, tell: Tell | None) -> None:
        n, part = len(source), file.with_name(f"{file.stem}.part{file.suffix}")
        before = _record(part) or {}
        first = int(before.pop("done", 0))
        first = first if before == key else 0
        out = _mapped(part, "r+") if first else _created(part, key)
        saved = time.monotonic()
        for at, block in self._blocks(source, first, threads):
            end = at + len(block)
            out[at:end] = block
            if end == n or time.monotonic() - saved > SAVED:
                out.flush()
                write_json(_beside(part), {**key, "done": end})
                saved = time.monotonic()
            _told(tell, end, n)
        del out
        part.replace(file)
        write_json(_beside(file), key)
        _beside(part).unlink()

    def _blocks(self, source: Source, first: int, threads: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
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


def fingerprint(source: Source) -> str:
    """A short name for these examples: what they are called, such as their paths, and what some of them show."""
    digest = hashlib.sha256()
    for i in range(len(source)):
        digest.update(source.label(i).encode(errors="surrogateescape") + b"\0")
    for i in np.linspace(0, len(source) - 1, min(len(source), SOME)).astype(np.int64):
        digest.update(np.ascontiguousarray(source.fetch(np.array([i]))[0]).tobytes())
    return digest.hexdigest()[:16]


def _told(tell: Tell | None, done: int, total: int) -> None:
    if tell is not None:
        tell(done, total)


def _beside(file: Path) -> Path:
    return file.with_suffix(".json")


def _record(file: Path) -> dict[str, Any] | None:
    """What a file of features says of itself; None where it is not there or damaged."""
    try:
        found = json.loads(_beside(file).read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _created(file: Path, key: dict[str, Any]) -> Any:
    """A new file for that many features; the disk has room for all of them, or it is refused now."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _beside(file).unlink(missing_ok=True)
        out: Any = np.lib.format.open_memmap(file, "w+", np.dtype(key["dtype"]), tuple(key["shape"]))
        with file.open("r+b") as plain:
            _reserve(plain.fileno(), file.stat().st_size)
    except OSError as error:
        with suppress(OSError):
            file.unlink()
        raise UserError(f"cannot write {file} ({error.strerror}); free space or choose another folder.") from None
    return out


def _reserve(descriptor: int, size: int) -> None:
    """Take the room on the disk: writing to a mapped file of which there is none would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)


def _mapped(file: Path, mode: Any) -> Any:
    try:
        return np.load(file, mmap_mode=mode, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"{file} cannot be read ({error}); delete it, and it is made again.") from None
