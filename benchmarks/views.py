"""Views per second: the view engine against AugMix with Pillow, image by image as its authors' code does it.

    python benchmarks/views.py --json results/views.json

Both make strong views (width 3, one to three operations per chain, severity 3) of crops of a photograph, 32 x 32 and
224 x 224 pixels. The engine's time includes drawing the parameters, the random crop and the normalised float batch;
Pillow's includes AugMix and normalisation only. Measurements alternate within each round, so that other work on the
machine slows both alike, and a ratio is the median of the rounds' ratios. "core" is views per second of processor time
on one thread; "thread" and "all" are views per second of the clock on one thread and on all cores, where Pillow gets
processes, since its Python code would wait for the GIL.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import numba
import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, ImageOps

from rte.files import write_json
from rte.views.batch import ViewPlan
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine

MEAN, STD = np.array([0.49, 0.48, 0.45], np.float32), np.array([0.25, 0.24, 0.26], np.float32)
SEVERITY, WIDTH = 3.0, 3
BILINEAR, AFFINE = Image.Resampling.BILINEAR, Image.Transform.AFFINE


def photographs(n: int, side: int) -> NDArray[np.uint8]:
    """n square crops of a photograph that comes with scikit-learn."""
    from sklearn.datasets import load_sample_image

    photo = Image.fromarray(load_sample_image("china.jpg"))
    photo = photo.resize((photo.width * side // 150, photo.height * side // 150), BILINEAR)
    rng = np.random.default_rng(0)
    corners = rng.integers(0, [photo.width - side, photo.height - side], (n, 2))
    return np.stack([np.asarray(photo.crop((x, y, x + side, y + side))) for x, y in corners.tolist()])


def level(rng: np.random.Generator, top: float) -> float:
    """A strength: U(0.1, severity) tenths of the operation's range."""
    return rng.uniform(0.1, SEVERITY) * top / 10


def signed(rng: np.random.Generator, value: float) -> float:
    return -value if rng.random() < 0.5 else value


def affine(image: Image.Image, *numbers: float) -> Image.Image:
    return image.transform(image.size, AFFINE, numbers, resample=BILINEAR)


OPERATIONS: list[Callable[[Image.Image, np.random.Generator], Image.Image]] = [
    lambda image, rng: ImageOps.autocontrast(image),
    lambda image, rng: ImageOps.equalize(image),
    lambda image, rng: ImageOps.posterize(image, 4 - int(level(rng, 4))),
    lambda image, rng: image.rotate(signed(rng, int(level(rng, 30))), resample=BILINEAR),
    lambda image, rng: ImageOps.solarize(image, 256 - int(level(rng, 256))),
    lambda image, rng: affine(image, 1, signed(rng, level(rng, 0.3)), 0, 0, 1, 0),
    lambda image, rng: affine(image, 1, 0, 0, signed(rng, level(rng, 0.3)), 1, 0),
    lambda image, rng: affine(image, 1, 0, signed(rng, int(level(rng, image.width / 3))), 0, 1, 0),
    lambda image, rng: affine(image, 1, 0, 0, 0, 1, signed(rng, int(level(rng, image.height / 3)))),
]


def normalised(image: Image.Image) -> NDArray[np.float32]:
    return np.asarray((np.asarray(image, np.float32) / 255 - MEAN) / STD, np.float32)


def augmix(pixels: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float32]:
    """One strong view."""
    image = Image.fromarray(pixels)
    weights, skip = rng.dirichlet(np.ones(WIDTH)), rng.beta(1, 1)
    mixture = np.zeros(pixels.shape, np.float32)
    for weight in weights:
        chain = image.copy()
        for _ in range(rng.integers(1, 4)):
            chain = OPERATIONS[rng.integers(len(OPERATIONS))](chain, rng)
        mixture += np.float32(weight) * normalised(chain)
    return np.asarray((1 - skip) * normalised(image) + skip * mixture, np.float32)


def with_pillow(images: NDArray[np.uint8], views: int, seed: int) -> float:
    """Processor seconds for `views` views of each image."""
    rng = np.random.default_rng(seed)
    start = thread_time()
    for pixels in images:
        for _ in range(views):
            augmix(pixels, rng)
    return thread_time() - start


def with_engine(
    engine: ViewEngine, out: NDArray[np.float32], images: NDArray[np.uint8], views: int, seed: int
) -> float:
    """The same, with `out` for the batch."""
    start = thread_time()
    engine.render(images, np.arange(len(images)), seed=seed, epoch=0, plan=ViewPlan(1, views), out=out)
    return thread_time() - start


def clocked(pool: Executor, jobs: list[Callable[[], float]]) -> float:
    """Seconds until all jobs are done."""
    start = perf_counter()
    for future in [pool.submit(job) for job in jobs]:
        future.result()
    return perf_counter() - start


def measure(side: int, views: int, rounds: int, cores: int) -> dict[str, Any]:
    """Views per second of both at one size: a list of rounds for "core", "thread" and "all"."""
    images = photographs(128 if side < 100 else 16, side)
    few = images[: max(len(images) // 16, 2)]
    engine = ViewEngine(ViewConfig(severity=SEVERITY, width=WIDTH), mean=MEAN, std=STD, size=(side, side), channels=3)
    buffers = [np.empty(((1 + views) * len(images), side, side, 3), np.float32) for _ in range(cores)]
    ours = [partial(with_engine, engine, out, images, views) for out in buffers]
    rates: dict[str, dict[str, list[float]]] = {
        who: {"core": [], "thread": [], "all": []} for who in ("engine", "pillow")
    }
    with (
        ThreadPoolExecutor(cores) as threads,
        ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as processes,
    ):
        clocked(threads, [partial(job, seed=0) for job in ours])  # compiles, or loads what was compiled
        clocked(processes, [partial(with_pillow, few, 1, seed=k) for k in range(2 * cores)])
        made, made_by_pillow, repeats = len(images) * views, len(few) * views, 6
        for seed in range(rounds):
            start = perf_counter()
            spent = sum(ours[0](seed=seed) for _ in range(repeats))
            rates["engine"]["thread"].append(repeats * made / (perf_counter() - start))
            rates["engine"]["core"].append(repeats * made / spent)
            start = perf_counter()
            spent = with_pillow(few, views, seed)
            rates["pillow"]["thread"].append(made_by_pillow / (perf_counter() - start))
            rates["pillow"]["core"].append(made_by_pillow / spent)
            together = [partial(several, job, repeats, seed) for job in ours]
            rates["engine"]["all"].append(repeats * cores * made / clocked(threads, together))
            shared = [partial(with_pillow, few, views, seed=seed * cores + k) for k in range(cores)]
            rates["pillow"]["all"].append(cores * made_by_pillow / clocked(processes, shared))
    return {"side": side, "rates": rates}


def several(job: Callable[..., float], times: int, seed: int) -> float:
    return sum(job(seed=seed) for _ in range(times))


def ratio(above: list[float], below: list[float]) -> float:
    return median(a / b for a, b in zip(above, below, strict=True))


def summary(found: dict[str, Any], cores: int) -> dict[str, Any]:
    engine, pillow = found["rates"]["engine"], found["rates"]["pillow"]
    return {
        "side": found["side"],
        **{f"{who} {how}": round(median(found["rates"][who][how])) for who in ("engine", "pillow") for how in engine},
        **{f"ratio {how}": round(ratio(engine[how], pillow[how]), 1) for how in engine},
        f"engine {cores} threads / 1": round(ratio(engine["all"], engine["thread"]), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[32, 224])
    parser.add_argument("--views", type=int, default=2, help="strong views per image")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = [summary(measure(side, args.views, args.rounds, cores), cores) for side in args.sides]
    print(f"strong views per second, {args.views} per image, median of {args.rounds} rounds, {cores} cores")
    for row in rows:
        print(f"\n{row['side']} x {row['side']} x 3{'core':>14}{'thread':>12}{'all':>12}")
        for who in ("engine", "pillow"):
            print(f"{who:14}" + "".join(f"{row[f'{who} {how}']:12,}" for how in ("core", "thread", "all")))
        print(f"{'ratio':14}" + "".join(f"{row[f'ratio {how}']:11.1f}x" for how in ("core", "thread", "all")))
        print(f"engine, {cores} threads against one: {row[f'engine {cores} threads / 1']:.2f}x")
    if args.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__}
        versions["pillow"] = PIL.__version__
        write_json(
            args.json, {"cores": cores, "views": args.views, "rounds": args.rounds, "versions": versions, "rows": rows}
        )


if __name__ == "__main__":
    main()
