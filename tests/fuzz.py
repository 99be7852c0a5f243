"""Malformed files for every reader: `make fuzz` tries ten thousand of each, tests/test_fuzz.py a few.

A file is a good one that was changed: bytes flipped, cut out, doubled, or replaced by what breaks parsers. A reader has
to take it or to refuse it in a sentence (`UserError`). Anything else is a finding: it is written to --keep and named.
What was found once stands in `FOUND` of tests/test_fuzz.py.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from rte.config import RunConfig, read_preset, resolve
from rte.data import arrays, folder, table, vectors
from rte.errors import UserError
from rte.files import read_json
from rte.nets import weights
from rte.noise.labels import read_labels
from rte.noise.matrix import NoiseModel
from rte.search.schedule import read_schedule
from rte.train import checkpoint

SLOW = 10.0
"""Seconds of the processor after which a reader counts as hanging."""
POISON = (
    b"\0", b"\xff\xfe", b"\n", b'"', b",", b"{", b"[" * 50, b"=1+1", b"nan", b"1e999", b"-1", b"9" * 30, b"../../x",
    b"/etc/passwd", "é\u202e😀".encode(), b"PK\x03\x04", b"\x93NUMPY", b"!!python/object", b"__reduce__",
)  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """What reads a file of that name, and the content of a good one."""

    file: str
    read: Callable[[Path], Any]
    good: bytes


def readers() -> list[Reader]:
    """Every reader of files that somebody may send."""
    x, y = np.arange(4 * 8 * 8, dtype=np.uint8).reshape(4, 8, 8), np.array([0, 1, 0, 1])
    matrix = json.dumps({"C": [[0, 1], [1, 0]], "P": [0.4, 0.4], "classes": ["a", "b"]}).encode()
    config = json.dumps(resolve("digits").tree()).encode()
    schedule = json.dumps(
        {"version": 1, "preset": "digits", "epochs": 4, "schedules": {"train.lr": {"kind": "constant", "value": 0.1}}}
    ).encode()
    return [
        Reader("a.npz", lambda path: _npz(path), _bytes(lambda file: np.savez(file, x_train=x, y_train=y))),
        Reader("v.npy", vectors.read_vectors, _bytes(lambda file: np.save(file, np.ones((4, 3), np.float32)))),
        Reader("t.csv", _table, b"path,label,split\na.png,cat,train\nb.png,dog,train\nc.png,cat,test\n"),
        Reader("l.csv", lambda path: read_labels(path, classes=["a", "b"]), b"index,label\n0,a\n1,b\n2,a\n"),
        Reader("l.json", lambda path: read_labels(path, classes=["a", "b"]), b'{"labels": ["a", "b", "a"]}'),
        Reader("m.json", NoiseModel.from_file, matrix),
        Reader("m.csv", NoiseModel.from_file, b"0.6,0.4\n0.4,0.6\n"),
        Reader("p.toml", lambda path: read_preset(str(path)), b'about = "x"\n[train]\nepochs = 3\nlr = 0.1\n'),
        Reader("c.json", lambda path: RunConfig.from_tree(read_json(path)), config),
        Reader("s.json", read_schedule, schedule),
        Reader("k.pt", checkpoint.load, _bytes(lambda file: torch.save({"format": 1, "w": torch.ones(9)}, file))),
        Reader("w.safetensors", lambda path: weights.read(str(path)), _safetensors()),
        Reader("cls/i.png", _photo, _bytes(lambda file: Image.fromarray(x[0]).save(file, "PNG"))),
        Reader("cls/i.jpg", _photo, _bytes(lambda file: Image.fromarray(x[0]).save(file, "JPEG"))),
    ]


def _npz(path: Path) -> Any:
    return arrays.load(arrays.Config(path=str(path)), None)


def _table(path: Path) -> Any:
    return table.load(table.Config(path=str(path)), None)


def _photo(path: Path) -> Any:
    """The image, in a folder of two classes."""
    other = path.parent.parent / "other"
    other.mkdir(exist_ok=True)
    Image.new("L", (8, 8)).save(other / "1.png")
    found = folder.load(folder.Config(path=str(path.parent.parent)), None).train.images
    return found.fetch(np.arange(len(found)))


def _bytes(write: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _safetensors() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        save_file({"classifier.1.weight": torch.ones(2, 3)}, path := Path(place) / "w.safetensors")
        return path.read_bytes()


def changed(good: bytes, rng: np.random.Generator) -> bytes:
    """The content, changed in one to four places."""
    data = bytearray(good)
    for _ in range(int(rng.integers(1, 5))):
        at, end = sorted(int(k) for k in rng.integers(0, len(data) + 1, 2))
        kind = int(rng.integers(5))
        if kind == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            data[at:at] = POISON[int(rng.integers(len(POISON)))]
        else:
            data[at:end] = rng.bytes(min(end - at, 64))
    return bytes(data)


def findings(reader: Reader, count: int, place: Path, seed: int = 0) -> Iterator[tuple[bytes, str]]:
    """Contents that the reader neither takes nor refuses in a sentence, with what happened."""
    for number in range(count):
        content = changed(reader.good, np.random.default_rng([seed, number]))
        if (problem := tried(reader, content, place)) is not None:
            yield content, problem


def tried(reader: Reader, content: bytes, place: Path) -> str | None:
    """What is wrong with how the reader takes that content; None if nothing is."""
    inner = place / "in"
    path = inner / reader.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    began = time.process_time()
    problem = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader.read(path)
        except UserError as error:
            problem = None if str(error).strip() else "a UserError without a sentence"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
    if time.process_time() - began > SLOW:
        problem = f"took {time.process_time() - began:.0f} s"
    if {path.name for path in place.iterdir()} != {"in"}:
        problem = "wrote beside the folder that it was given"
    return problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="files for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="readers whose file's name contains this")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="where findings are written")
    args = parser.parse_args()
    total = 0
    for reader in readers():
        if args.only and args.only not in reader.file:
            continue
        seen: set[str] = set()
        with tempfile.TemporaryDirectory() as place:
            for content, problem in findings(reader, args.count, Path(place), args.seed):
                if (kind := problem[:60]) not in seen:
                    seen.add(kind)
                    args.keep.mkdir(exist_ok=True)
                    (args.keep / f"{len(seen)}-{Path(reader.file).name}").write_bytes(content)
                    print(f"{reader.file}: {problem}", flush=True)
        print(f"{reader.file}: {args.count} files, {len(seen)} kinds of findings", flush=True)
        total += len(seen)
    raise SystemExit(1 if total else 0)


if __name__ == "__main__":
    main()
