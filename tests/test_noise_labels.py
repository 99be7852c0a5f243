"""Label files in every format: what is written comes back, and what does not fit is refused by name."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from rte.errors import DataError, NoiseError
from rte.noise.labels import export_labels, import_labels, read_labels

CLASSES = ("cat", "dog", 'pale, blue "bird"', "Übergröße")
Y = np.array([0, 3, 2, 1, 1, 0, 2], dtype=np.int64)
CLEAN = np.array([0, 3, 2, 1, 0, 0, 2], dtype=np.int64)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".json"])
@pytest.mark.parametrize("with_truth", [False, True])
def test_what_is_exported_comes_back(tmp_path: Path, suffix: str, with_truth: bool) -> None:
    file = tmp_path / f"labels{suffix}"
    export_labels(file, Y, CLASSES, y_true=CLEAN if with_truth else None)
    found = read_labels(file, classes=CLASSES, examples=7)
    assert_array_equal(found.y, Y)
    assert found.y.dtype == np.int64
    if with_truth and suffix != ".npy":
        assert found.clean is not None
        assert_array_equal(found.clean, CLEAN)
    else:
        assert found.clean is None
    assert os.listdir(tmp_path) == [file.name], "nothing else may be left behind"


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".json"])
def test_names_outlast_another_order_of_the_classes(tmp_path: Path, suffix: str) -> None:
    export_labels(tmp_path / f"labels{suffix}", Y, CLASSES)
    y = import_labels(tmp_path / f"labels{suffix}", classes=CLASSES[::-1])
    assert_array_equal(y, 3 - Y)


def cifar10n(n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    names = ("clean_label", "aggre_label", "worse_label", "random_label1")
    return {name: rng.integers(0, 10, n, dtype=np.int64) for name in names}


TEN = tuple(f"class {k}" for k in range(10))


def test_human_labels_as_npz(tmp_path: Path) -> None:
    arrays = {name: array.astype(np.uint8) for name, array in cifar10n().items()}
    np.savez(tmp_path / "human.npz", **arrays)
    found = read_labels(tmp_path / "human.npz", "worse_label", classes=TEN)
    assert_array_equal(found.y, arrays["worse_label"])
    assert found.clean is not None
    assert_array_equal(found.clean, arrays["clean_label"])
    with pytest.raises(DataError, match="holds aggre_label, worse_label, random_label1; say which are the labels"):
        import_labels(tmp_path / "human.npz", classes=TEN)
    with pytest.raises(DataError, match="holds no 'worst' but clean_label, aggre_label"):
        import_labels(tmp_path / "human.npz", "worst", classes=TEN)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("zipped", [True, False])
def test_human_labels_as_a_torch_file(tmp_path: Path, dtype: Any, zipped: bool) -> None:
    arrays = {name: array.astype(dtype) for name, array in cifar10n().items()}
    torch.save(arrays, tmp_path / "human.pt", _use_new_zipfile_serialization=zipped)
    found = read_labels(tmp_path / "human.pt", "worse_label", classes=TEN, examples=40)
    assert_array_equal(found.y, arrays["worse_label"])


def test_torch_files_written_with_the_old_numpy(tmp_path: Path) -> None:
    """Before NumPy 2 arrays were pickled under numpy.core; a file that says so must still be read."""
    torch.save(cifar10n(), tmp_path / "new.pt", _use_new_zipfile_serialization=False)
    content = (tmp_path / "new.pt").read_bytes()
    assert b"numpy._core.multiarray" in content
    (tmp_path / "old.pt").write_bytes(content.replace(b"cnumpy._core.multiarray", b"cnumpy.core.multiarray"))
    assert b"numpy._core" not in (tmp_path / "old.pt").read_bytes()
    y = import_labels(tmp_path / "old.pt", "aggre_label", classes=TEN)
    assert_array_equal(y, cifar10n()["aggre_label"])


def test_tensors_in_a_torch_file(tmp_path: Path) -> None:
    torch.save({"given": torch.tensor([0, 1, 1])}, tmp_path / "tensors.pt")
    assert_array_equal(import_labels(tmp_path / "tensors.pt", classes=CLASSES), [0, 1, 1])
    torch.save(torch.tensor([2, 1]), tmp_path / "bare.pt")
    assert_array_equal(import_labels(tmp_path / "bare.pt", classes=CLASSES), [2, 1])


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (os.environ["RTE_TRAP"],))


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_torch_file_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool) -> None:
    monkeypatch.setenv("RTE_TRAP", str(tmp_path / "sprung"))
    torch.save({"worse_label": Trap()}, tmp_path / "evil.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(DataError, match=r"evil.pt cannot be read as .pt"):
        import_labels(tmp_path / "evil.pt", "worse_label", classes=TEN)
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match=r"plain.pt cannot be read as .pt"):
        import_labels(tmp_path / "plain.pt", classes=TEN)
    assert not (tmp_path / "sprung").exists()
    pickle.loads((tmp_path / "plain.pt").read_bytes())
    assert (tmp_path / "sprung").exists(), "the trap must be live for this test to mean anything"


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("index,label\n0,cat\n1,dog\n", None, [0, 1]),
        ("index,label\n1,dog\n0,cat\n", None, [0, 1]),
        ("Label,Index\ndog,1\ncat,0\n", None, [0, 1]),
        ("label\ncat\ndog\n", None, [0, 1]),
        ("0\n1\n3\n", None, [0, 1, 3]),
        ("1,0\n0,3\n", None, [3, 0]),
        ("cat\n dog\n\n", None, [0, 1]),
        ("\ufeffindex,label\n0,cat\n", None, [0]),
        ("file,label\na.png,cat\nb.png,dog\n", None, [0, 1]),
        ("index,human,model\n0,cat,dog\n1,dog,dog\n", "model", [1, 1]),
        ("human,model\ncat,dog\ndog,dog\n", "human", [0, 1]),
    ],
)
def test_tables(tmp_path: Path, text: str, key: str | None, expected: list[int]) -> None:
    (tmp_path / "labels.csv").write_text(text, encoding="utf-8")
    assert_array_equal(import_labels(tmp_path / "labels.csv", key, classes=CLASSES), expected)


def test_names_that_look_like_numbers_are_names(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("3\n5\n3\n")
    assert_array_equal(import_labels(tmp_path / "labels.csv", classes=("5", "3")), [1, 0, 1])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "labels.csv is empty"),
        ("index,label\n0,cat\n0,dog\n", "index '0' in data row 2 appears twice"),
        ("index,label\n0,cat\n2,dog\n", "no row has index 1; number the images 0 to 1"),
        ("index,label\nx,cat\n", "index 'x' in data row 1 is no whole number"),
        ("index,label\n0\n", "data row 1 has 1 cells instead of 2"),
        ("index,label\n0,cow\n", "label 'cow', which is none of the 4 classes .cat, dog"),
        ("index,label\n0,4\n", "label 4 at 0, but there are 4 classes; labels must be 0 to 3"),
        ("index,label\n0,-1\n", "label '-1', which is none"),
        ("index,label\n", "no list of class numbers or class names"),
        ("index,label\n0,cat\n", "holds 1 labels for 2 training images; give one label per image"),
        ("index,a,b\n0,cat,dog\n1,cat,dog\n", "holds a, b; say which are the labels, for example labels:.*csv:a"),
        ("a,b,c\n", "3 columns and no header; start it with the line 'index,label'"),
    ],
)
def test_tables_that_do_not_fit(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=reason):
        import_labels(tmp_path / "labels.csv", classes=CLASSES, examples=2)


@pytest.mark.parametrize(
    ("value", "key", "reason"),
    [
        ([0, 1.5], None, "no list of class numbers"),
        ([0, True], None, "no list of class numbers"),
        ([0, "cat"], None, "no list of class numbers"),
        ([[0], [1]], None, "no list of class numbers"),
        ([], None, "no list of class numbers"),
        ([0, -1], None, "label -1 at 1"),
        ({"a": [0], "b": [1]}, None, "holds a, b; say which"),
        ({"version": 1}, None, "holds nothing; say which"),
        ({"a": [0], "b": [1]}, "c", "holds no 'c' but a, b"),
        ([0], "c", "holds no 'c' but one nameless list"),
        ({"classes": ["cat", "cow"], "y": [0, 1]}, None, "label 'cow', which is none of the 4 classes"),
        ({"classes": ["cat"], "y": [0, 1]}, None, "label 1 at 1, but there are 1 classes"),
        ({"noisy_label": [0, 1], "clean_label": [0]}, None, "2 labels but 1 clean ones"),
    ],
)
def test_json_that_does_not_fit(tmp_path: Path, value: Any, key: str | None, reason: str) -> None:
    (tmp_path / "labels.json").write_text(json.dumps(value))
    with pytest.raises(DataError, match=reason):
        import_labels(tmp_path / "labels.json", key, classes=CLASSES)


def test_coarse_labels_are_checked_against_coarse_truth(tmp_path: Path) -> None:
    np.savez(tmp_path / "h.npz", noisy_label=[7], clean_label=[8], noisy_coarse_label=[1], clean_coarse_label=[2])
    found = read_labels(tmp_path / "h.npz", "noisy_coarse_label", classes=CLASSES)
    assert found.clean is not None
    assert (found.y[0], found.clean[0]) == (1, 2)


def test_truth_can_be_asked_for_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "h.npz", noisy_label=[1], clean_label=[2])
    assert import_labels(tmp_path / "h.npz", "clean_label", classes=CLASSES) == [2]


def test_float_arrays_are_no_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "floats.npy", np.array([0.0, 1.0]))
    with pytest.raises(DataError, match=r"floats.npy is no list of class numbers"):
        import_labels(tmp_path / "floats.npy", classes=CLASSES)


@pytest.mark.parametrize(
    ("actual", "claimed", "reason"),
    [("x.npy", "x.npz", "it is an .npy file by content"), ("x.npz", "x.npy", "it is an .npz archive by content")],
)
def test_a_wrong_ending_is_named(tmp_path: Path, actual: str, claimed: str, reason: str) -> None:
    export_labels(tmp_path / actual, Y, CLASSES)
    (tmp_path / actual).rename(tmp_path / claimed)
    with pytest.raises(DataError, match=reason):
        import_labels(tmp_path / claimed, classes=CLASSES)


def test_exports_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write labels to .*labels.pt; choose a name that ends in .npz"):
        export_labels(tmp_path / "labels.pt", Y, CLASSES)
    with pytest.raises(DataError, match=r"there is no folder .*absent to write labels.npz to"):
        export_labels(tmp_path / "absent" / "labels.npz", Y, CLASSES)
    with pytest.raises(NoiseError, match="has 2 classes but a label is 3"):
        export_labels(tmp_path / "labels.npz", Y, CLASSES[:2])
    with pytest.raises(DataError, match="7 labels but 6 true ones"):
        export_labels(tmp_path / "labels.npz", Y, CLASSES, y_true=CLEAN[1:])
    assert os.listdir(tmp_path) == []


def test_a_failed_export_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_labels(tmp_path / "labels.npy", Y, CLASSES)

    def full_disk(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(Exception, match="No space left"):
        export_labels(tmp_path / "labels.npy", 0 * Y, CLASSES)
    assert_array_equal(import_labels(tmp_path / "labels.npy", classes=CLASSES), Y)
    assert os.listdir(tmp_path) == ["labels.npy"]
