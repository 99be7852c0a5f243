"""Both official releases of both sets, in miniature and, where it is, for real."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rte.data import cifar10, cifar100
from rte.data._cifar import Release, load_release
from rte.data.types import Dataset
from rte.errors import DataError

RNG = np.random.default_rng(1)
TEN = replace(cifar10.RELEASE, train_records=6, test_records=4)
HUNDRED = replace(cifar100.RELEASE, train_records=6, test_records=4)
Parts = dict[str, tuple[np.ndarray, np.ndarray]]


def content(release: Release, classes: int) -> Parts:
    """Images (n, 32, 32, 3) and labels (n, kinds of label) for every file."""
    sizes = dict.fromkeys(release.train, release.train_records) | dict.fromkeys(release.test, release.test_records)
    return {
        stem: (
            RNG.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8),
            RNG.integers(0, classes, (n, len(release.labels)), dtype=np.uint8),
        )
        for stem, n in sizes.items()
    }


def planes(images: np.ndarray) -> np.ndarray:
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def write_binary(folder: Path, parts: Parts) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for stem, (images, labels) in parts.items():
        (folder / f"{stem}.bin").write_bytes(np.concatenate([labels, planes(images)], axis=1).tobytes())


def write_python(folder: Path, parts: Parts, names: tuple[str, ...], *, keys: type = bytes, protocol: int = 2) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for stem, (images, labels) in parts.items():
        entry: dict[str, Any] = {
            "batch_label": "some batch",
            "data": planes(images),
            "filenames": ["a.png"] * len(images),
        }
        entry |= {name: labels[:, k].tolist() for k, name in enumerate(names)}
        stored = {key.encode() if keys is bytes else key: value for key, value in entry.items()}
        (folder / stem).write_bytes(pickle.dumps(stored, protocol=protocol))


def python2_pickle(images: np.ndarray, labels: list[int]) -> bytes:
    """A batch as Python 2 wrote it, opcode by opcode: byte strings for keys and pixels, and NumPy's old names."""

    def text(value: bytes) -> bytes:
        short = len(value) < 256
        return (b"U" + bytes([len(value)]) if short else b"T" + len(value).to_bytes(4, "little")) + value

    def number(value: int) -> bytes:
        return b"J" + value.to_bytes(4, "little", signed=True)

    dtype = (
        b"cnumpy\ndtype\n(" + text(b"u1") + number(0) + number(1) + b"tR"
        b"(" + number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + number(0) + b"\x85" + text(b"b") + b"tR"
        b"("
        + number(1)
        + number(len(images))
        + number(3072)
        + b"\x86"
        + dtype
        + b"\x89"
        + text(images.tobytes())
        + b"tb"
    )
    label_list = b"](" + b"".join(map(number, labels)) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + label_list + b"u."


def load_ten(folder: Path | None) -> Dataset:
    return load_release(TEN, folder, label="labels", classes=cifar10.CLASSES, name="cifar10")


def load_fine(folder: Path) -> Dataset:
    return load_release(HUNDRED, folder, label="fine_labels", classes=cifar100.FINE, name="cifar100")


def check(data: Dataset, release: Release, parts: Parts, column: int = 0) -> None:
    for split, stems in ((data.train, release.train), (data.test, release.test)):
        assert split is not None
        pixels = split.images.fetch(np.arange(len(split)))
        assert np.array_equal(pixels, np.concatenate([parts[stem][0] for stem in stems]))
        assert np.array_equal(split.y, np.concatenate([parts[stem][1][:, column] for stem in stems]))
        assert split.y.dtype == np.int64
    assert np.array_equal(data.y_true, data.train.y)
    assert not np.shares_memory(data.y_true, data.train.y)


@pytest.mark.parametrize("below", ["cifar-10-batches-bin", "."])
def test_binary_ten(tmp_path: Path, below: str) -> None:
    parts = content(TEN, 10)
    write_binary(tmp_path / below, parts)
    check(load_ten(tmp_path), TEN, parts)


@pytest.mark.parametrize("below", ["cifar-10-batches-py", "."])
@pytest.mark.parametrize(("keys", "protocol"), [(bytes, 2), (str, 2), (str, 4)])
def test_python_ten(tmp_path: Path, below: str, keys: type, protocol: int) -> None:
    parts = content(TEN, 10)
    write_python(tmp_path / below, parts, TEN.labels, keys=keys, protocol=protocol)
    check(load_ten(tmp_path), TEN, parts)


def test_python_ten_as_python_2_wrote_it(tmp_path: Path) -> None:
    parts = content(TEN, 10)
    for stem, (images, labels) in parts.items():
        (tmp_path / stem).write_bytes(python2_pickle(planes(images), labels[:, 0].tolist()))
    check(load_ten(tmp_path), TEN, parts)


@pytest.mark.parametrize("form", ["binary", "python"])
def test_hundred_fine_and_coarse(tmp_path: Path, form: str) -> None:
    parts = content(HUNDRED, 20)
    if form == "binary":
        write_binary(tmp_path / "cifar-100-binary", parts)
    else:
        write_python(tmp_path / "cifar-100-python", parts, HUNDRED.labels)
    check(load_fine(tmp_path), HUNDRED, parts, column=1)
    coarse = load_release(HUNDRED, tmp_path, label="coarse_labels", classes=cifar100.COARSE, name="coarse")
    check(coarse, HUNDRED, parts, column=0)


def test_binary_is_preferred_and_an_incomplete_one_passed_over(tmp_path: Path) -> None:
    binary, python = content(TEN, 10), content(TEN, 10)
    write_binary(tmp_path / "cifar-10-batches-bin", binary)
    write_python(tmp_path / "cifar-10-batches-py", python, TEN.labels)
    check(load_ten(tmp_path), TEN, binary)
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    check(load_ten(tmp_path), TEN, python)


def test_folders_called_train_and_test_are_no_files(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=r"CIFAR-100 is not in"):
        load_fine(tmp_path)


def test_class_names() -> None:
    assert len(set(cifar10.CLASSES)) == 10
    assert len(set(cifar100.FINE)) == 100
    assert len(set(cifar100.COARSE)) == 20
    assert list(cifar100.FINE) == sorted(cifar100.FINE)
    assert list(cifar100.COARSE) == sorted(cifar100.COARSE)


def test_no_data_folder() -> None:
    for module in (cifar10, cifar100):
        with pytest.raises(DataError, match=rf"--data-dir DIR or set RTE_DATA.*rte data get {module.RELEASE.name}`"):
            module.load(module.Config(), None)


def test_nothing_there_says_what_was_expected_where(tmp_path: Path) -> None:
    expected = (
        r"CIFAR-10 is not in .*; expected cifar-10-batches-bin/ with data_batch_1\.bin, .*test_batch\.bin, or "
        r"cifar-10-batches-py/ with data_batch_1, .*test_batch, .*rte data get cifar10 --to"
    )
    with pytest.raises(DataError, match=expected):
        load_ten(tmp_path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    write_binary(tmp_path / "cifar-10-batches-bin", content(TEN, 10))
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(
        DataError, match=r"cifar-10-batches-bin lacks data_batch_3\.bin of CIFAR-10; copy the rest there"
    ):
        load_ten(tmp_path)


@pytest.mark.parametrize("size", [0, 3073 * 5, 3073 * 6 - 1, 3073 * 7])
def test_binary_file_of_another_size(tmp_path: Path, size: int) -> None:
    write_binary(tmp_path, content(TEN, 10))
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes((path.read_bytes() * 2)[:size])
    with pytest.raises(
        DataError, match=rf"data_batch_2\.bin has {size:,} bytes, but 18,438 were expected \(6 records of 3073"
    ):
        load_ten(tmp_path)


@pytest.mark.parametrize("kept", [0, 100, 0.5, 0.999])
def test_truncated_python_file(tmp_path: Path, kept: float) -> None:
    write_python(tmp_path, content(TEN, 10), TEN.labels)
    path = tmp_path / "data_batch_4"
    size = int(kept if kept > 1 else kept * path.stat().st_size)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(
        DataError, match=rf"data_batch_4 .*{size:,} bytes.* more than 18,432 .*expected.*fetch it again"
    ):
        load_ten(tmp_path)


@pytest.mark.parametrize("form", ["binary", "python"])
def test_label_outside_the_classes(tmp_path: Path, form: str) -> None:
    parts = content(TEN, 10)
    parts["test_batch"][1][2] = 10
    if form == "binary":
        write_binary(tmp_path, parts)
    else:
        write_python(tmp_path, parts, TEN.labels)
    with pytest.raises(DataError, match=r"test_batch(\.bin)? is damaged: record 2 has label 10, but labels are 0 to 9"):
        load_ten(tmp_path)


class Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def python_files_with(folder: Path, payload: bytes) -> None:
    write_python(folder, content(TEN, 10), TEN.labels)
    (folder / "data_batch_1").write_bytes(payload + b"\0" * 20000)  # large enough not to be called incomplete


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_malicious_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "was-run"
    python_files_with(tmp_path, pickle.dumps({b"data": Evil(marker)}, protocol=protocol))
    with pytest.raises(DataError, match=r"data_batch_1 asks for [\w.]+, which no CIFAR file needs; do not trust it"):
        load_ten(tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "payload",
    [
        b"cos\nsystem\n(S'exit 1'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"c_codecs\ndecode\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.",
    ],
)
def test_only_the_names_that_are_needed_are_allowed(tmp_path: Path, payload: bytes) -> None:
    python_files_with(tmp_path, payload)
    with pytest.raises(DataError, match=r"data_batch_1 asks for .*which no CIFAR file needs"):
        load_ten(tmp_path)


def test_other_codecs_are_refused(tmp_path: Path) -> None:
    python_files_with(tmp_path, b"c_codecs\nencode\n(V1\nVzip\ntR.")
    with pytest.raises(DataError, match=r"data_batch_1 asks for the codec zip"):
        load_ten(tmp_path)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([1, 2], "holds a list, not a dictionary"),
        ({b"labels": [0] * 6}, "has no entry 'data'"),
        ({b"data": np.zeros((6, 3072), np.uint8)}, "has no entry 'labels'"),
        ({b"data": np.zeros((5, 3072), np.uint8), b"labels": [0] * 5}, r"data has shape \(5, 3072\), but \(6, 3072\)"),
        ({b"data": np.zeros((6, 3072), np.int64), b"labels": [0] * 6}, "data is no two-dimensional array of bytes"),
        ({b"data": np.zeros((3072, 6), np.uint8).T, b"labels": [0] * 6}, "data is no two-dimensional array of bytes"),
        ({b"data": b"0" * 20000, b"labels": [0] * 6}, "data has no array"),
        (
            {b"data": np.zeros((6, 3072), np.uint8), b"labels": [0] * 5},
            "labels has 5 entries, but a list of 6 integers",
        ),
        (
            {b"data": np.zeros((6, 3072), np.uint8), b"labels": ["a"] * 6},
            "labels has 6 entries, but a list of 6 integers",
        ),
        ({b"data": np.zeros((6, 3072), np.uint8), b"labels": "abcdef"}, "labels has str"),
    ],
)
def test_pickles_with_other_content(tmp_path: Path, entry: Any, message: str) -> None:
    python_files_with(tmp_path, pickle.dumps(entry, protocol=2))
    with pytest.raises(DataError, match=rf"data_batch_1:? {message}"):
        load_ten(tmp_path)


def test_the_real_sets(cifar: Path) -> None:
    ten = cifar10.load(cifar10.Config(), cifar)
    fine = cifar100.load(cifar100.Config(), cifar)
    coarse = cifar100.load(cifar100.Config(coarse=True), cifar)
    for data, per_class in ((ten, 5000), (fine, 500), (coarse, 2500)):
        assert np.bincount(data.train.y).tolist() == [per_class] * len(data.classes)
        assert data.test is not None
        assert np.bincount(data.test.y).tolist() == [per_class // 5] * len(data.classes)
        pixels = data.train.images.fetch(np.arange(3))
        assert pixels.shape == (3, 32, 32, 3)
    assert [ten.classes[y] for y in ten.train.y[:5]] == ["frog", "truck", "truck", "deer", "automobile"]
    assert [fine.classes[y] for y in fine.train.y[:3]] == ["cattle", "dinosaur", "apple"]
    groups = {fine.classes[a]: coarse.classes[b] for a, b in zip(fine.train.y, coarse.train.y, strict=True)}
    assert groups["apple"] == "fruit_and_vegetables"
    assert groups["whale"] == "aquatic_mammals"
    assert groups["bicycle"] == "vehicles_1"


def test_the_real_ten_as_python_release_is_the_binary_one(cifar: Path, tmp_path: Path) -> None:
    binary = cifar10.load(cifar10.Config(), cifar)
    assert binary.test is not None
    for k, stem in enumerate((*cifar10.RELEASE.train, *cifar10.RELEASE.test)):
        split, start = (binary.train, k * 10000) if k < 5 else (binary.test, 0)
        rows = np.arange(start, start + 10000)
        images = np.asarray(split.images.fetch(rows))
        (tmp_path / stem).write_bytes(python2_pickle(planes(images), split.y[rows].tolist()))
    python = cifar10.load(cifar10.Config(), tmp_path)
    rows = np.arange(50000)
    assert np.array_equal(python.train.images.fetch(rows), binary.train.images.fetch(rows))
    assert np.array_equal(python.train.y, binary.train.y)
