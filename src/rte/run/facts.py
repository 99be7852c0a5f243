"""What `rte.run.choose` goes by: a look at the data, and at the machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte.data.rows import TableRows
from rte.data.text import Texts
from rte.data.types import Dataset, Images, Pixels, Vectors
from rte.errors import ConfigError, DataError
from rte.nets.weights import PACKAGED, locate
from rte.run.choose import SIDES, Choices, Facts, Machine, choose, for_trained_eyes
from rte.run.features import Extractor
from rte.train.device import choose_device, convolution_speed, faster_in_half

GLANCES = 9
"""Images by which the usual side is told, where they differ."""


def look_at(dataset: Dataset) -> Facts | None:
    """What is known of the data; None for data of some other kind."""
    source, n, classes = dataset.train.images, len(dataset.train), len(dataset.classes)
    tested = dataset.test is not None and len(dataset.test) > 0
    if isinstance(source, Images):
        size = source.size
        if size is None:
            rows = np.linspace(0, n - 1, min(n, GLANCES)).astype(np.int64)
            side = int(np.median([min(image.shape[:2]) for image in _readable(source, rows)]))
        else:
            side = min(size)
        return Facts("images", n, classes, tested, side=side, alike=size is not None, channels=source.channels)
    if isinstance(source, Vectors):
        return Facts("vectors", n, classes, tested, dim=source.dim)
    if isinstance(source, TableRows):
        return Facts("table", n, classes, tested, dim=len(source.columns))
    if isinstance(source, Texts):
        return Facts("text", n, classes, tested)
    return None


def _readable(images: Images, rows: NDArray[np.int64]) -> list[Pixels]:
    """Some of the images; those that cannot be read are spoken of later, all at once."""
    found: list[Pixels] = []
    wrong: DataError | None = None
    for row in rows:
        try:
            found += images.fetch(row[None])
        except DataError as error:
            wrong = error
    if not found and wrong is not None:
        raise wrong
    return found


def this_machine(facts: Facts, init: str | None = PACKAGED, device: str = "auto", *, asked: bool = False) -> Machine:
    """What is known of the machine, as far as it matters for such data; a trained network is timed for a moment.

    asked: whether it is wanted, whatever the data.
    """
    where, cores = choose_device(device), torch.get_num_threads()
    if facts.kind != "images":
        return Machine(cores, where.type)
    look = _time_to_look(str(init), facts.channels, device) if asked or (init and for_trained_eyes(facts)) else None
    return Machine(cores, where.type, convolution_speed("fp32"), faster_in_half(where), look)


@lru_cache(maxsize=1)
def _time_to_look(init: str, channels: int, device: str) -> float | None:
    try:
        locate(init)
    except ConfigError:
        if init != PACKAGED:
            raise
        return None
    look = Extractor.open(init, channels=channels, size=SIDES[0], device=device)
    images, times = torch.zeros(16, channels, SIDES[0], SIDES[0]).to(look.device), []
    with torch.inference_mode():
        for _ in range(3):
            began = time.perf_counter()
            look.see(images.contiguous(memory_format=torch.channels_last)).sum().item()
            times.append(time.perf_counter() - began)
    return min(times) / len(images)


def choices_for(
    dataset: Dataset,
    said: Mapping[str, Any],
    *,
    seconds: float | None = None,
    epochs: int | None = None,
    device: str = "auto",
) -> Choices | None:
    """What suits these data on this machine; None where they are of some other kind."""
    facts = look_at(dataset)
    if facts is None:
        return None
    given = said.get("net")
    net = given if isinstance(given, Mapping) else {}
    machine = this_machine(facts, net.get("init", PACKAGED), device, asked="init" in net or "train" in net)
    return choose(facts, machine, said, seconds=seconds, epochs=epochs)
