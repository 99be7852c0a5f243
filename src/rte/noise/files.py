"""Reading small files of numbers or labels, without ever running what is in them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rte.errors import DataError


def read(path: str | PathLike[str], suffixes: tuple[str, ...]) -> dict[str, Any]:
    """What a file holds, by name; the content of a file without names has the name ''.

    Arrays for .npz, .npy and .pt, plain values for .json, rows of strings for .csv and .txt.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise DataError(f"{path} ends in '{suffix}'; use a file that ends in {', '.join(suffixes)}.")
    if not path.is_file():
        raise DataError(f"there is no file {path}; check the path.")
    try:
        return READERS[suffix](path)
    except Exception as error:  # a damaged file fails in as many ways as there are formats
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DataError(f"{path} cannot be read as {suffix} ({reason}); make or download it again.") from error


def _read_npy(path: Path) -> dict[str, Any]:
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an .npz archive by content")
    return {"": array}


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:  # np.load leaves a file open that turns out to be damaged
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is an .npy file by content")
        return {name: archive[name] for name in archive.files}


def _read_json(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    return value if isinstance(value, dict) else {"": value}


def _read_csv(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    return {"": [row for row in rows if any(row) and not row[0].startswith("#")]}


def _read_txt(path: Path) -> dict[str, Any]:
    lines = (line.split("#")[0].replace(",", " ").split() for line in path.read_text(encoding="utf-8-sig").splitlines())
    return {"": [cells for cells in lines if cells]}


def _read_pt(path: Path) -> dict[str, Any]:
    """A torch file of arrays or tensors, through torch's restricted unpickler with NumPy's arrays allowed besides."""
    import torch

    rebuild = np.empty(0).__reduce__()[0]
    allowed: list[Any] = [
        np.ndarray,
        np.dtype,
        *{type(np.dtype(kind)) for kind in (*np.typecodes["AllInteger"], *np.typecodes["Float"], "?")},
        rebuild,
        (rebuild, "numpy.core.multiarray._reconstruct"),  # its name before NumPy 2, in files that are older
        (rebuild, "numpy._core.multiarray._reconstruct"),
    ]
    with torch.serialization.safe_globals(allowed):
        value = torch.load(path, map_location="cpu", weights_only=True)
    entries = value if isinstance(value, Mapping) else {"": value}
    return {str(name): part.numpy() if isinstance(part, torch.Tensor) else part for name, part in entries.items()}


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".json": _read_json,
    ".csv": _read_csv,
    ".txt": _read_txt,
    ".pt": _read_pt,
}
