"""The published files of CIFAR-10-C and CIFAR-100-C, where the user has them.

One file per corruption, (5 N, H, W, C) uint8: the N test images in their own order at severity 1, then at 2, and so on;
labels.npy holds their 5 N labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rte.data.types import Labels, Pixels
from rte.errors import DataError
from rte.evaluate.corruptions.constants import EXTRAS, NAMES, SEVERITIES, check
from rte.files import DAMAGED

FILES = (*NAMES, *EXTRAS, "spatter")


def official(folder: Path, name: str, severity: int) -> tuple[Pixels, Labels]:
    """Images (N, H, W, C) uint8 and labels (N,) of one corruption at one severity, read from `folder`."""
    check(name, severity, FILES)
    path, labels_path = Path(folder) / f"{name}.npy", Path(folder) / "labels.npy"
    images, labels = _opened(path), _opened(labels_path)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3) or len(images) % len(SEVERITIES):
        raise DataError(
            f"{path} holds {images.dtype} of shape {images.shape}, but uint8 images of shape (5 N, H, W, C) belong "
            "there; fetch the file again."
        )
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu":
        raise DataError(
            f"{labels_path} holds {labels.dtype} of shape {labels.shape}, but one whole number for each of the "
            f"{len(images)} images of {path.name} belongs there; take both files from the same archive."
        )
    number = len(images) // len(SEVERITIES)
    rows = slice((severity - 1) * number, severity * number)
    return np.array(images[rows]), labels[rows].astype(np.int64)


def _opened(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # a file holds five severities, of which one is wanted
    except FileNotFoundError as error:
        raise DataError(
            f"{path} does not exist; unpack CIFAR-10-C (or CIFAR-100-C) so that this folder holds labels.npy and one "
            "file per corruption, or leave the folder out to have the corruptions made."
        ) from error
    except DAMAGED as error:
        raise DataError(f"{path} is no readable .npy file ({error}); fetch it again.") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} is an archive of arrays, but a single one belongs there; fetch it again.")
    return array
