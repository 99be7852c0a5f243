"""Labels by people, CIFAR-10N and CIFAR-100N, from the files to a training run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rte.config import RunConfig, resolve
from rte.errors import DataError
from rte.noise.config import parse_noise
from rte.run.build import load_dataset, make_trainer, prepare

RATES = {
    ("cifar10", "aggre_label"): 0.09010,
    ("cifar10", "random_label1"): 0.17234,
    ("cifar10", "random_label2"): 0.18122,
    ("cifar10", "random_label3"): 0.17640,
    ("cifar10", "worse_label"): 0.40208,
    ("cifar100", "noisy_label"): 0.40200,
}


def human(folder: Path, data: str, key: str, **settings: object) -> RunConfig:
    file = folder / f"{data}n.npz"
    if not file.is_file():
        pytest.skip(f"there is no {file.name} beside CIFAR")
    noise = parse_noise(f"labels:{file}:{key}")
    return resolve("default", {"data": {"name": data}, "noise": noise, "method": {"name": "ce"}, **settings})


@pytest.mark.parametrize(("data", "key"), RATES)
def test_the_share_of_wrong_labels_is_the_published_one(data: str, key: str, cifar: Path) -> None:
    config = human(cifar, data, key)
    prepared = prepare(config, load_dataset(config, cifar))
    assert prepared.manifest.ratio_measured == pytest.approx(RATES[data, key], abs=1e-5)
    assert prepared.manifest.ratio_asked is None
    assert prepared.manifest.key == key


def test_a_run_trains_on_them(cifar: Path) -> None:
    config = human(cifar, "cifar10", "worse_label", train={"epochs": 1, "device": "cpu"}, net={"name": "compact"})
    prepared = prepare(config, load_dataset(config, cifar))
    trainer, examiner = make_trainer(prepared, save=lambda name, state: None)
    before = [p.clone() for p in trainer.method.parameters()]
    steps = trainer.steps()
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert any(not a.equal(b) for a, b in zip(before, trainer.method.parameters(), strict=True))
    assert examiner.dataset.y_true is not None
    wrong = np.mean(examiner.dataset.y_true != prepared.dataset.train.y)
    assert wrong == pytest.approx(0.40208)


def test_labels_of_other_images_are_found_out(cifar: Path, tmp_path: Path) -> None:
    human(cifar, "cifar10", "worse_label")
    held = dict(np.load(cifar / "cifar10n.npz"))
    np.savez(tmp_path / "cifar10n.npz", **{name: column[::-1] for name, column in held.items()})
    config = human(tmp_path, "cifar10", "worse_label")
    with pytest.raises(DataError, match="clean labels differ from those of cifar10"):
        prepare(config, load_dataset(config, cifar))
