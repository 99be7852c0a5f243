"""Noise in a dataset, and the manifest that makes the same labels again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from numpy.testing import assert_array_equal

from rte.data.types import ArrayImages, Dataset, Split
from rte.errors import DataError, NoiseError
from rte.noise.config import NoiseConfig, NoiseName, Sampling
from rte.noise.inject import Manifest, corrupt, digest, rebuild
from rte.noise.labels import export_labels
from rte.noise.matrix import NoiseModel

N, K = 500, 10
TRUTH = np.random.default_rng(0).integers(0, K, N)


def dataset(y: np.ndarray = TRUTH, y_true: np.ndarray | None = TRUTH, k: int = K) -> Dataset:
    images = ArrayImages(np.zeros((len(y), 2, 2, 1), np.uint8))
    return Dataset("toy", tuple(f"class {c}" for c in range(k)), Split(images, y), Split(images, y), y_true)


@pytest.mark.parametrize("sampling", ["exact", "bernoulli", "stratified"])
@pytest.mark.parametrize(
    ("name", "ratio", "expected"),
    [
        ("symmetric", 0.4, 0.4),
        ("symmetric-inclusive", 0.4, 0.36),
        ("pair", 0.4, 0.4),
        ("patrini-cifar10", 0.4, float(0.4 * np.isin(TRUTH, [2, 3, 4, 5, 9]).mean())),
        ("confusion-cifar10", 0.6, 0.6),
    ],
)
def test_the_manifest_records_and_rebuilds(name: Any, ratio: float, expected: float, sampling: Sampling) -> None:
    cfg = NoiseConfig(name=name, ratio=ratio, sampling=sampling)
    noisy, manifest = corrupt(dataset(), cfg, seed=11)
    assert noisy.y_true is not None
    assert_array_equal(noisy.y_true, TRUTH)
    y = noisy.train.y
    assert (manifest.name, manifest.sampling, manifest.seed, manifest.ratio_asked) == (name, sampling, 11, ratio)
    assert manifest.ratio_expected == pytest.approx(expected)
    assert manifest.ratio_measured == (y != TRUTH).mean() > 0
    assert (manifest.K, manifest.N, manifest.classes) == (K, N, noisy.classes)
    assert [list(row) for row in manifest.counts or ()] == oracles.count_pairs(TRUTH.tolist(), y.tolist(), K)
    assert manifest.true_sha256 == digest(TRUTH) != manifest.given_sha256
    again = Manifest.from_json(manifest.to_json())
    assert again == manifest == Manifest.from_tree(json.loads(json.dumps(manifest.tree())))
    assert_array_equal(rebuild(again, TRUTH), y)


def test_only_the_given_training_labels_change() -> None:
    before = dataset()
    noisy, _ = corrupt(before, NoiseConfig(name="symmetric", ratio=0.4), seed=0)
    assert noisy.train.images is before.train.images
    assert noisy.test is before.test
    assert_array_equal(before.train.y, TRUTH)


def test_the_noise_has_a_seed_of_its_own_if_it_wants() -> None:
    cfg = NoiseConfig(name="symmetric", ratio=0.4)
    fixed = NoiseConfig(name="symmetric", ratio=0.4, seed=5)
    labels = {seed: corrupt(dataset(), cfg, seed)[0].train.y for seed in (4, 5)}
    assert (labels[4] != labels[5]).any()
    for seed in (4, 5):
        noisy, manifest = corrupt(dataset(), fixed, seed)
        assert_array_equal(noisy.train.y, labels[5])
        assert manifest.seed == 5


def test_labels_that_came_with_the_data_count_as_truth_when_noise_is_put_in() -> None:
    noisy, manifest = corrupt(dataset(y_true=None), NoiseConfig(name="symmetric", ratio=0.4), seed=0)
    assert noisy.y_true is not None
    assert_array_equal(noisy.y_true, TRUTH)
    assert manifest.ratio_measured == 0.4


def test_noise_is_put_on_the_truth_and_not_on_other_noise() -> None:
    given = (TRUTH + 1) % K
    noisy, manifest = corrupt(dataset(given, TRUTH), NoiseConfig(name="symmetric", ratio=0.4), seed=0)
    assert manifest.ratio_measured == 0.4
    assert_array_equal(rebuild(manifest, TRUTH), noisy.train.y)


def test_no_noise_changes_nothing_and_claims_nothing_unknown() -> None:
    for data, measured in ((dataset(), 0.0), (dataset((TRUTH + 1) % K), 1.0), (dataset(y_true=None), None)):
        same, manifest = corrupt(data, NoiseConfig(), seed=0)
        assert same is data
        assert manifest.ratio_measured == measured
        assert (manifest.counts is None) == (manifest.true_sha256 is None) == (measured is None)
        assert_array_equal(rebuild(Manifest.from_json(manifest.to_json()), data.train.y), data.train.y)
        with pytest.raises(NoiseError, match=r"rebuilt labels are not those of the manifest.*the labels given"):
            rebuild(manifest, data.train.y[::-1])


@pytest.mark.parametrize(("ratio", "asked"), [(0.3, 0.3), (0.0, None)])
def test_a_matrix_from_a_file(tmp_path: Path, ratio: float, asked: float | None) -> None:
    model = NoiseModel.pair(K, 0.3)
    np.savetxt(tmp_path / "matrix.csv", model.C if ratio else model.F, delimiter=",")
    cfg = NoiseConfig(name="matrix", ratio=ratio, file=str(tmp_path / "matrix.csv"))
    noisy, manifest = corrupt(dataset(), cfg, seed=2)
    assert manifest.ratio_asked == asked
    assert manifest.ratio_measured == 0.3
    (tmp_path / "matrix.csv").unlink()
    assert_array_equal(rebuild(manifest, TRUTH), noisy.train.y)


def test_a_manifest_is_itself_a_matrix_file(tmp_path: Path) -> None:
    noisy, manifest = corrupt(dataset(), NoiseConfig(name="confusion-cifar10", ratio=0.6), seed=2)
    (tmp_path / "noise.json").write_text(manifest.to_json())
    again, _ = corrupt(dataset(), NoiseConfig(name="matrix", file=str(tmp_path / "noise.json")), seed=2)
    assert_array_equal(again.train.y, noisy.train.y)


@pytest.mark.parametrize(
    "name", ["symmetric", "symmetric-inclusive", "pair", "patrini-cifar10", "confusion-cifar10", "none"]
)
def test_a_model_with_a_name_needs_no_matrix_in_its_manifest(name: NoiseName, tmp_path: Path) -> None:
    ratio = 0.0 if name == "none" else 0.4
    noisy, manifest = corrupt(dataset(), NoiseConfig(name=name, ratio=ratio), seed=2)
    assert manifest.C is None
    assert_array_equal(rebuild(Manifest.from_json(manifest.to_json()), TRUTH), noisy.train.y)
    assert_array_equal(manifest.model().P, manifest.P)
    # as it was written before: with C
    old = {**manifest.tree(), "C": manifest.model().C.tolist()}
    assert_array_equal(rebuild(Manifest.from_tree(old), TRUTH), noisy.train.y)
    (tmp_path / "old.json").write_text(json.dumps(old))
    (tmp_path / "new.json").write_text(manifest.to_json())
    models = [NoiseModel.from_file(tmp_path / f"{age}.json") for age in ("old", "new")]
    assert_array_equal(models[0].F, models[1].F)


def test_the_manifest_of_labels_by_people_is_no_matrix(tmp_path: Path) -> None:
    export_labels(tmp_path / "given.npy", TRUTH, dataset().classes)
    _, manifest = corrupt(dataset(), NoiseConfig(name="labels", file=str(tmp_path / "given.npy")), seed=0)
    (tmp_path / "noise.json").write_text(manifest.to_json())
    with pytest.raises(NoiseError, match="'labels' cannot be made from a name and a ratio"):
        NoiseModel.from_file(tmp_path / "noise.json")


def test_labels_from_a_file(tmp_path: Path) -> None:
    data, file = dataset(), tmp_path / "given.npz"
    given = np.where(np.arange(N) < 100, (TRUTH + 3) % K, TRUTH)
    export_labels(file, given, data.classes, y_true=TRUTH)
    noisy, manifest = corrupt(data, NoiseConfig(name="labels", file=str(file)), seed=0)
    assert_array_equal(noisy.train.y, given)
    assert manifest.ratio_measured == 0.2
    assert manifest.ratio_asked is manifest.ratio_expected is manifest.P is manifest.C is None
    assert_array_equal(rebuild(Manifest.from_json(manifest.to_json()), TRUTH), given)
    export_labels(file, TRUTH, data.classes)
    with pytest.raises(NoiseError, match=r"rebuilt labels are not those of the manifest.*given\.npz were changed"):
        rebuild(manifest, TRUTH)


def test_labels_from_a_file_for_data_without_truth(tmp_path: Path) -> None:
    data, given = dataset(y_true=None), (TRUTH + 1) % K
    export_labels(tmp_path / "given.npy", given, data.classes)
    noisy, manifest = corrupt(data, NoiseConfig(name="labels", file=str(tmp_path / "given.npy")), seed=0)
    assert noisy.y_true is manifest.ratio_measured is manifest.counts is None
    export_labels(tmp_path / "both.csv", given, data.classes, y_true=TRUTH)
    noisy, manifest = corrupt(data, NoiseConfig(name="labels", file=str(tmp_path / "both.csv")), seed=0)
    assert manifest.ratio_measured == 1.0
    assert noisy.y_true is not None
    assert_array_equal(noisy.y_true, TRUTH)


def test_a_label_file_in_another_order_is_found_out(tmp_path: Path) -> None:
    data = dataset()
    order = np.random.default_rng(1).permutation(N)
    export_labels(tmp_path / "h.npz", TRUTH[order], data.classes, y_true=TRUTH[order])
    first = int(np.flatnonzero(TRUTH[order] != TRUTH)[0])
    with pytest.raises(
        DataError, match=rf"h.npz: its clean labels differ from those of toy, first at example {first};"
    ):
        corrupt(data, NoiseConfig(name="labels", file=str(tmp_path / "h.npz")), seed=0)


def test_a_label_file_of_another_length(tmp_path: Path) -> None:
    export_labels(tmp_path / "short.npy", TRUTH[1:], dataset().classes)
    with pytest.raises(DataError, match=r"short.npy holds 499 labels for 500 training images"):
        corrupt(dataset(), NoiseConfig(name="labels", file=str(tmp_path / "short.npy")), seed=0)


@pytest.mark.parametrize("name", ["patrini-cifar10", "confusion-cifar10", "patrini-cifar100"])
def test_noise_of_another_number_of_classes(name: Any) -> None:
    k = 100 if name == "patrini-cifar100" else 10
    with pytest.raises(NoiseError, match=f"{name} has {k} classes but the data has 12"):
        corrupt(dataset(k=12), NoiseConfig(name=name, ratio=0.4), seed=0)


def test_a_matrix_of_another_number_of_classes(tmp_path: Path) -> None:
    np.save(tmp_path / "F.npy", np.eye(3))
    with pytest.raises(NoiseError, match=r"matrix \(.*F.npy\) has 3 classes but the data has 10"):
        corrupt(dataset(), NoiseConfig(name="matrix", file=str(tmp_path / "F.npy")), seed=0)


def test_noise_that_cannot_be_learnt_is_allowed_with_a_warning() -> None:
    _, manifest = corrupt(dataset(), NoiseConfig(name="symmetric", ratio=0.9), seed=0)
    assert manifest.ratio_measured == 0.9
    assert "cannot be learnt" in str(manifest.warning)
    assert corrupt(dataset(), NoiseConfig(name="symmetric", ratio=0.8), seed=0)[1].warning is None


def test_rebuilding_from_other_labels_is_refused() -> None:
    _, manifest = corrupt(dataset(), NoiseConfig(name="symmetric", ratio=0.4), seed=0)
    with pytest.raises(
        NoiseError, match=r"these 500 labels are not the 500 true labels.*same dataset in the same order"
    ):
        rebuild(manifest, TRUTH[::-1])
    forged = manifest.model_copy(update={"seed": 1})
    with pytest.raises(NoiseError, match="rebuilt labels are not those of the manifest"):
        rebuild(forged, TRUTH)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "no noise manifest of version 1: version"),
        ({"seed": "x"}, "no noise manifest of version 1: seed"),
        ({"more": 1}, "more: Extra inputs"),
    ],
)
def test_manifests_that_are_none(change: dict[str, Any], reason: str) -> None:
    tree = corrupt(dataset(), NoiseConfig(), seed=0)[1].tree()
    with pytest.raises(NoiseError, match=reason):
        Manifest.from_tree({**tree, **change})
    with pytest.raises(NoiseError, match="no noise manifest"):
        Manifest.from_json("{")


def test_digests_do_not_depend_on_the_type_of_the_labels() -> None:
    assert digest(TRUTH) == digest(TRUTH.astype(np.uint8)) == digest(TRUTH.tolist())
    assert digest(TRUTH) != digest(TRUTH[::-1])


def test_human_labels_of_cifar10(tmp_path: Path) -> None:
    """The layout of the official CIFAR-10N file, on data that names its classes."""
    human = {"clean_label": TRUTH, "worse_label": (TRUTH + (np.arange(N) % 5 < 2)) % K, "aggre_label": TRUTH}
    np.savez(tmp_path / "human.npz", **human)
    cfg = NoiseConfig(name="labels", file=str(tmp_path / "human.npz"), key="worse_label")
    noisy, manifest = corrupt(replace(dataset(), name="cifar10"), cfg, seed=0)
    assert manifest.ratio_measured == 0.4
    assert_array_equal(noisy.train.y, human["worse_label"])
