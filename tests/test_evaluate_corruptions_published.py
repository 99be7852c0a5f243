"""The published files: the right rows, and for anything wrong which file was expected where."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from rte.errors import ConfigError, DataError
from rte.evaluate.corruptions import official


def written(folder: Path, name: str = "fog", number: int = 4) -> Path:
    """A file whose images say their row, and labels 0..number-1 five times."""
    images = np.broadcast_to(np.arange(5 * number, dtype=np.uint8)[:, None, None, None], (5 * number, 6, 7, 3))
    np.save(folder / f"{name}.npy", images)
    np.save(folder / "labels.npy", np.tile(np.arange(number, dtype=np.uint8), 5))
    return folder


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_a_severity_is_a_fifth_of_the_file(tmp_path: Path, severity: int) -> None:
    images, labels = official(written(tmp_path), "fog", severity)
    assert images.shape == (4, 6, 7, 3)
    assert images.dtype == np.uint8
    assert images[:, 0, 0, 0].tolist() == [4 * (severity - 1) + k for k in range(4)]
    assert labels.tolist() == [0, 1, 2, 3]
    assert labels.dtype == np.int64
    images[0] = 0  # a copy of its own


def test_unscored_files_can_be_read_even_where_they_cannot_be_made(tmp_path: Path) -> None:
    assert len(official(written(tmp_path, "spatter"), "spatter", 2)[0]) == 4


def test_a_missing_file_is_named_with_its_place(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(DataError) as caught:
        official(tmp_path, "snow", 1)
    assert str(tmp_path / "snow.npy") in str(caught.value)
    assert "labels.npy and one file per corruption" in str(caught.value)


def test_missing_labels_are_named(tmp_path: Path) -> None:
    (written(tmp_path) / "labels.npy").unlink()
    with pytest.raises(DataError, match=r"labels\.npy does not exist"):
        official(tmp_path, "fog", 1)


def test_a_damaged_file(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "fog.npy").write_bytes((tmp_path / "fog.npy").read_bytes()[:300])
    with pytest.raises(DataError, match=r"fog\.npy is no readable \.npy file"):
        official(tmp_path, "fog", 1)


def test_an_empty_file(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "fog.npy").write_bytes(b"")
    with pytest.raises(DataError, match=r"fog\.npy is no readable \.npy file"):
        official(tmp_path, "fog", 1)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "fog.npy").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(DataError, match=r"fog\.npy is no readable \.npy file"):
        official(tmp_path, "fog", 1)


def test_an_archive_in_place_of_an_array(tmp_path: Path) -> None:
    written(tmp_path)
    with (tmp_path / "fog.npy").open("wb") as file:
        np.savez(file, a=np.zeros(3))
    with pytest.raises(DataError, match=r"fog\.npy is an archive of arrays"):
        official(tmp_path, "fog", 1)


@pytest.mark.parametrize(
    "content", [np.zeros((20, 6, 7, 3)), np.zeros((20, 6, 7), np.uint8), np.zeros((21, 6, 7, 3), np.uint8)]
)
def test_other_arrays_are_refused(tmp_path: Path, content: np.ndarray) -> None:
    np.save(written(tmp_path) / "fog.npy", content)
    with pytest.raises(DataError, match=r"fog\.npy holds .* but uint8 images of shape \(5 N, H, W, C\) belong there"):
        official(tmp_path, "fog", 1)


def test_labels_must_fit_the_images(tmp_path: Path) -> None:
    np.save(written(tmp_path) / "labels.npy", np.arange(4))
    with pytest.raises(DataError, match=r"labels\.npy holds int64 of shape \(4,\).*20 images of fog\.npy"):
        official(tmp_path, "fog", 1)


def test_unknown_names_and_severities(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'brightness'"):
        official(tmp_path, "brightnes", 1)
    with pytest.raises(ConfigError, match="severity 9"):
        official(tmp_path, "fog", 9)
