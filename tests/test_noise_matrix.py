"""The noise models: their matrices against the definitions, and every matrix that is none refused with its reason."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rte.errors import DataError, NoiseError
from rte.noise import tables
from rte.noise.matrix import NoiseModel, transition_counts

MODELS = {
    "none": NoiseModel.none(7),
    "symmetric": NoiseModel.symmetric(10, 0.4),
    "symmetric-inclusive": NoiseModel.symmetric_inclusive(10, 0.4),
    "pair": NoiseModel.pair(5, 0.3),
    "patrini-cifar10": NoiseModel.patrini_cifar10(0.4),
    "patrini-cifar100": NoiseModel.patrini_cifar100(0.4),
    "confusion-cifar10": NoiseModel.confusion_cifar10(0.6),
}
BALANCED = np.repeat(np.arange(10), 50)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_a_transition_matrix(name: str) -> None:
    model = MODELS[name]
    assert model.name == name
    assert_allclose(model.F.sum(axis=1), 1.0, atol=1e-12)
    assert (model.F >= 0).all()
    assert not np.diag(model.C).any()
    assert model.P.dtype == model.C.dtype == model.F.dtype == np.float64
    assert_allclose(model.F, oracles.transition_matrix(model.P.tolist(), model.C.tolist()), atol=1e-15)


@pytest.mark.parametrize(("k", "ratio"), [(2, 0.3), (10, 0.8), (10, 0.0), (10, 1.0), (100, 0.4)])
def test_symmetric_noise_in_both_conventions(k: int, ratio: float) -> None:
    assert_allclose(NoiseModel.symmetric(k, ratio).F, oracles.symmetric_matrix(k, ratio), atol=1e-15)
    assert_allclose(NoiseModel.symmetric_inclusive(k, ratio).F, oracles.redrawn_matrix(k, ratio), atol=1e-15)


def test_eighty_percent_means_two_things() -> None:
    assert NoiseModel.symmetric(10, 0.8).expected_wrong(BALANCED) == pytest.approx(0.80)
    assert NoiseModel.symmetric_inclusive(10, 0.8).expected_wrong(BALANCED) == pytest.approx(0.72)


def test_pair_goes_round_the_circle() -> None:
    F = NoiseModel.pair(3, 0.25).F
    assert_allclose(F, [[0.75, 0.25, 0], [0, 0.75, 0.25], [0.25, 0, 0.75]])


def test_patrini_cifar10_corrupts_half_of_the_classes() -> None:
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    model = NoiseModel.patrini_cifar10(0.4)
    moves = {(names[a], names[b]) for a, b in np.argwhere(model.C)}
    assert moves == {
        ("truck", "automobile"),
        ("bird", "airplane"),
        ("deer", "horse"),
        ("cat", "dog"),
        ("dog", "cat"),
    }
    assert_array_equal(model.P, [0, 0, 0.4, 0.4, 0.4, 0.4, 0, 0, 0, 0.4])
    assert model.expected_wrong(BALANCED) == pytest.approx(0.2)


def test_patrini_cifar100_stays_inside_each_superclass() -> None:
    model = NoiseModel.patrini_cifar100(0.4)
    target = model.C.argmax(axis=1)
    superclass = np.array(tables.CIFAR100_SUPERCLASS)
    assert_array_equal(np.bincount(superclass), [5] * 20)
    assert_array_equal(superclass[target], superclass)
    assert_array_equal(np.sort(target), np.arange(100))
    # beaver, dolphin, otter, seal, whale: the aquatic mammals
    assert_array_equal(target[[4, 30, 55, 72, 95]], [30, 55, 72, 95, 4])
    assert_allclose(model.P, 0.4)


def test_superclasses_are_those_of_the_data(cifar: Path) -> None:
    file = cifar / "cifar-100-binary" / "train.bin"
    if not file.exists():
        pytest.skip("CIFAR-100 is not there")
    rows = np.fromfile(file, dtype=np.uint8).reshape(-1, 2 + 3072)
    assert_array_equal(np.array(tables.CIFAR100_SUPERCLASS)[rows[:, 1]], rows[:, 0])


def test_confusion_matrix_of_the_paper_is_renormalised() -> None:
    printed = np.array(tables.CONFUSION_CIFAR10)
    assert 0 < np.abs(printed.sum(axis=1) - 1).max() < 1e-3
    model = NoiseModel.confusion_cifar10(0.6)
    assert_allclose(model.C.sum(axis=1), 1.0, atol=1e-15)
    assert_allclose(model.C, printed, atol=2e-4)
    assert printed[3, 5] == 0.3682
    assert printed[9, 1] == 0.5132


def test_normalising_twice_changes_no_bit() -> None:
    """A manifest holds normalised rows; if they moved on being read, so would a label now and then."""
    for seed in range(50):
        rough = np.round(np.random.default_rng(seed).dirichlet(np.ones(9), size=10), 4)
        rough = np.stack([np.insert(row, a, 0.0) for a, row in enumerate(rough)])
        C = NoiseModel(np.full(10, 0.6), rough).C
        assert_array_equal(NoiseModel(np.full(10, 0.6), C).C, C)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_any_transition_matrix_comes_back(k: int, seed: int) -> None:
    F = np.random.default_rng(seed).dirichlet(np.ones(k) * 0.3, size=k)
    model = NoiseModel.from_matrix(F)
    assert_allclose(model.F, F, atol=1e-12)
    assert_allclose(model.P, 1 - np.diag(F), atol=1e-12)


def test_identity_is_no_noise_and_a_shift_is_all_noise() -> None:
    assert not NoiseModel.from_matrix(np.eye(3)).P.any()
    assert_array_equal(NoiseModel.from_matrix(np.roll(np.eye(3), 1, axis=1)).P, [1, 1, 1])


def test_confusion_counts_become_a_structure() -> None:
    model = NoiseModel.from_confusion([[90, 8, 2], [0, 50, 0], [1, 3, 96]], 0.4)
    assert_allclose(model.C, [[0, 0.8, 0.2], [0, 0, 0], [0.25, 0.75, 0]])
    assert_allclose(model.P, [0.4, 0, 0.4])


def test_arrays_are_read_only_and_of_their_own() -> None:
    C = np.array([[0.0, 1.0], [1.0, 0.0]])
    model = NoiseModel(np.array([0.1, 0.2]), C)
    C[0] = 7
    assert_array_equal(model.C, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="read-only"):
        model.P[0] = 0.5
    assert_array_equal(pickle.loads(pickle.dumps(model)).F, model.F)


@pytest.mark.parametrize(
    ("model", "learnable"),
    [
        (NoiseModel.symmetric(10, 0.89), True),
        (NoiseModel.symmetric(10, 0.9), False),
        (NoiseModel.symmetric(10, 1.0), False),
        (NoiseModel.symmetric_inclusive(10, 0.9), True),
        (NoiseModel.symmetric_inclusive(10, 1.0), False),
        (NoiseModel.pair(4, 0.49), True),
        (NoiseModel.pair(4, 0.5), False),
        (NoiseModel.patrini_cifar10(0.4), True),
        (NoiseModel.confusion_cifar10(0.6), True),
        (NoiseModel.confusion_cifar10(0.8), False),
        (NoiseModel.none(2), True),
    ],
)
def test_learnable_while_the_right_label_is_the_most_frequent(model: NoiseModel, learnable: bool) -> None:
    assert model.learnable is learnable
    assert (model.warning is None) is learnable


def test_warning_names_the_class_and_its_rival() -> None:
    text = str(NoiseModel.patrini_cifar10(0.6).warning)
    assert "class 2" in text
    assert "label 0 with 0.6" in text
    assert "probability 0.4" in text
    assert "lower the ratio" in text


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: NoiseModel.from_matrix([[1.1, -0.1], [0, 1]]), "negative entry -0.1 in row 0, column 1"),
        (lambda: NoiseModel.from_matrix([[0.9, 0.1], [0, 3]]), "has 3 in row 1, column 1.*from_confusion"),
        (lambda: NoiseModel.from_matrix([[0.9, 0.1], [0.5, 0.4]]), "row 1 of F.*sums to 0.9"),
        (lambda: NoiseModel.from_matrix([[0.9, 0.1], [0, 0]]), "row 1 of F.*sums to 0;"),
        (lambda: NoiseModel.from_matrix(np.ones((2, 3)) / 3), r"shape \(2, 3\).*square"),
        (lambda: NoiseModel.from_matrix([0.5, 0.5]), r"shape \(2,\).*square"),
        (lambda: NoiseModel.from_matrix([[1.0]]), "one class"),
        (lambda: NoiseModel.from_matrix([[np.nan, 1], [0, 1]]), r"nan at \(0, 0\).*finite"),
        (lambda: NoiseModel.from_matrix([[np.inf, 1], [0, 1]]), "inf at"),
        (lambda: NoiseModel.from_matrix([[1, 0], [1]]), "rows of equal length"),
        (lambda: NoiseModel.from_matrix([["a", "b"], ["c", "d"]]), "no array of numbers"),
        (lambda: NoiseModel(np.full(2, 0.1), np.eye(2)), r"has 1 on its diagonal \(class 0\).*from_matrix"),
        (lambda: NoiseModel(np.full(2, 0.1), np.array([[0, 1.0], [0, 0]])), "0.1 of class 1.*row 1 of C is all zero"),
        (lambda: NoiseModel(np.full(2, 0.1), np.array([[0, 1.0], [0.5, 0]])), "row 1 of C.*sums to 0.5"),
        (lambda: NoiseModel(np.full(3, 0.1), np.array([[0, 1.0], [1, 0]])), r"shape \(3,\) but C has 2 classes"),
        (lambda: NoiseModel(np.array([0.1, 1.2]), np.array([[0, 1.0], [1, 0]])), "is 1.2 for class 1"),
        (lambda: NoiseModel(np.array([-0.1, 0.2]), np.array([[0, 1.0], [1, 0]])), "is -0.1 for class 0"),
        (lambda: NoiseModel.symmetric(10, 40), "ratio is 40; give a number between 0 and 1, such as 0.4 for 40 %"),
        (lambda: NoiseModel.symmetric(10, -0.1), "ratio is -0.1"),
        (lambda: NoiseModel.symmetric(10, float("nan")), "ratio is nan"),
        (lambda: NoiseModel.symmetric_inclusive(10, 1.5), "symmetric-inclusive.*ratio is 1.5"),
        (lambda: NoiseModel.symmetric(1, 0.4), "number of classes is 1"),
        (lambda: NoiseModel.pair(2.0, 0.4), "number of classes is 2.0.*whole number"),  # type: ignore[arg-type]
        (lambda: NoiseModel.from_confusion([[5, -1], [0, 5]], 0.4), "negative entry -1"),
        (lambda: NoiseModel.from_confusion([[5, 0], [0, 5]], 0.4), "holds no mistakes"),
        (lambda: NoiseModel.from_confusion([[5, 1], [0, 5]], "0.4"), "ratio is 0.4"),  # type: ignore[arg-type]
    ],
)
def test_impossible_models_are_refused_with_the_reason(build: Any, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        build()


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".npy", ".npz", ".json"])
@pytest.mark.parametrize("full", [True, False])
def test_models_from_files(tmp_path: Path, suffix: str, full: bool) -> None:
    model = NoiseModel.pair(4, 0.3)
    file, matrix = tmp_path / f"matrix{suffix}", model.F if full else model.C
    if suffix == ".npy":
        np.save(file, matrix)
    elif suffix == ".npz":
        np.savez(file, anything=matrix)
    elif suffix == ".json":
        file.write_text(json.dumps(matrix.tolist()))
    else:
        np.savetxt(file, matrix, delimiter="," if suffix == ".csv" else " ", header="true x given")
    assert_allclose(NoiseModel.from_file(file, None if full else 0.3).F, model.F, atol=1e-15)


def test_named_arrays_in_a_file(tmp_path: Path) -> None:
    model = NoiseModel.patrini_cifar10(0.3)
    np.savez(tmp_path / "both.npz", P=model.P, C=model.C)
    assert_array_equal(NoiseModel.from_file(tmp_path / "both.npz").F, model.F)
    np.savez(tmp_path / "full.npz", F=model.F, other=np.ones(3))
    assert_allclose(NoiseModel.from_file(tmp_path / "full.npz").F, model.F, atol=1e-15)
    np.savez(tmp_path / "structure.npz", C=model.C, other=np.ones(3))
    assert_array_equal(NoiseModel.from_file(tmp_path / "structure.npz", 0.3).F, model.F)


def test_rows_rounded_to_four_decimals_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "thirds.csv").write_text("0.3334,0.3333,0.3332\n0,1,0\n0,0,1\n")
    assert_allclose(NoiseModel.from_file(tmp_path / "thirds.csv").F.sum(axis=1), 1.0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "text", "ratio", "reason"),
    [
        ("c.csv", "0,1\n1,0\n", None, "diagonal of .*c.csv is all zero.*give a ratio"),
        ("f.csv", "0.9,0.1\n0.1,0.9\n", 0.4, "f.csv has 0.9 on its diagonal.*leave the ratio out"),
        ("words.csv", "a,b\nc,d\n", None, "words.csv is no array of numbers"),
        ("ragged.csv", "1,0\n1\n", None, "ragged.csv is no array of numbers; give rows of equal length"),
        ("empty.csv", "", None, r"empty.csv has shape \(0,\)"),
        ("two.json", '{"a": [[1]], "b": [[1]]}', None, "two.json holds a, b; name the matrix F"),
        ("pc.json", '{"P": [0, 0], "C": [[0, 1], [1, 0]]}', 0.4, "holds the share P of each class already"),
        ("counts.csv", "90,10\n5,95\n", None, "counts.csv has 90 in row 0, column 0.*from_confusion"),
    ],
)
def test_matrix_files_are_refused_with_the_reason(
    tmp_path: Path, name: str, text: str, ratio: float | None, reason: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(NoiseError, match=reason):
        NoiseModel.from_file(tmp_path / name, ratio)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("absent.csv", None, "there is no file .*absent.csv"),
        ("matrix.xlsx", b"", r"matrix.xlsx ends in '.xlsx'; use a file that ends in .csv, .txt"),
        ("cut.npz", b"PK\x03\x04 cut", r"cut.npz cannot be read as .npz \(.*; make or download it again"),
        ("cut.npy", b"\x93NUMPY", r"cut.npy cannot be read as .npy"),
        ("cut.json", b"[[1, 0", r"cut.json cannot be read as .json"),
        ("binary.csv", b"\xff\xfe\x00", r"binary.csv cannot be read as .csv"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=reason):
        NoiseModel.from_file(tmp_path / name)


def test_pickled_objects_are_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"objects.npy cannot be read"):
        NoiseModel.from_file(tmp_path / "objects.npy")


def test_transition_counts_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (2, 300))
    assert_array_equal(transition_counts(a, b, 4), oracles.count_pairs(a.tolist(), b.tolist(), 4))
    with pytest.raises(NoiseError, match="300 true labels but 299 given"):
        transition_counts(a, b[1:], 4)
