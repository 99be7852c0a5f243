"""The presets of the paper's experiments, field by field against its tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

import pytest
import torch

from rte import nets
from rte.config import RunConfig, resolve
from rte.methods.base import Progress
from rte.methods.rte import RobustTemporalEnsembling

Three = tuple[float, float, float]
"""A schedule at the start, in the middle and at the end of the run."""


@dataclass(frozen=True)
class Row:
    """A row of the table "Manual hyperparameter configurations", with what the text of the appendix adds to it."""

    weight_decay: float
    beta: float
    dropout: float
    batch: int
    lr: Three
    jsd: float
    ecr: float
    q: Three
    views: int
    alpha: float
    net: str
    epochs: int
    size: int | None
    noise: tuple[str, float]


NONE = ("none", 0.0)
TABLE = {
    # lr 0.03 cos(7 pi k / 16 K): cos(7 pi / 32) = 0.773010, cos(7 pi / 16) = 0.195090
    # q 0.6 sin(13 pi k / 16 K): sin(13 pi / 32) = 0.956940, sin(13 pi / 16) = 0.555570
    "cifar10": Row(
        weight_decay=0.001, beta=0.9, dropout=0.01, batch=128, lr=(0.03, 0.0231903, 0.00585271), jsd=12, ecr=1,
        q=(0, 0.574164, 0.333342), views=10, alpha=0.99, net="wrn-28-6", epochs=300, size=None, noise=NONE,
    ),
    # lr 0.04 with the cosine of CIFAR-10
    "cifar100": Row(
        weight_decay=0.0005, beta=0.9, dropout=0.01, batch=128, lr=(0.04, 0.0309204, 0.00780361), jsd=5, ecr=3,
        q=(0.3, 0.3, 0.3), views=8, alpha=0.99, net="wrn-28-6", epochs=300, size=None, noise=NONE,
    ),
    "imagenet": Row(
        weight_decay=0.001, beta=0.9, dropout=0, batch=256, lr=(0.1, 0.01, 0.001), jsd=12, ecr=10,
        q=(0.3, 0.3, 0.3), views=3, alpha=0.99, net="resnet50", epochs=300, size=224, noise=("symmetric", 0.4),
    ),
    # lr 10^-3 b^k: 10^-3, 10^-4.5, 10^-6
    "webvision": Row(
        weight_decay=0.0001, beta=0.9, dropout=0, batch=256, lr=(1e-3, 3.162278e-5, 1e-6), jsd=12, ecr=5,
        q=(0.3, 0.3, 0.3), views=3, alpha=0.99, net="resnet50", epochs=100, size=224, noise=NONE,
    ),
    "food101n": Row(
        weight_decay=0.01, beta=0.9, dropout=0, batch=128, lr=(0.1, 0.01, 0.001), jsd=12, ecr=1,
        q=(0.1, 0.1, 0.1), views=2, alpha=0.99, net="resnet50", epochs=30, size=224, noise=NONE,
    ),
}  # fmt: skip
EXPECTED = {
    "cifar10": ("95.67", "94.84", "93.09"),
    "cifar100": ("79.71", "76.70", "64.02"),
    "imagenet": ("74.79", "91.26"),
    "webvision": ("80.84", "97.24"),
    "food101n": ("86.46",),
}
"""The paper's accuracies, which the notes of a preset must name."""


def rte_settings(config: RunConfig) -> RobustTemporalEnsembling.Config:
    assert isinstance(config.method, RobustTemporalEnsembling.Config)
    return config.method


def moments(epochs: int) -> list[Progress]:
    """The first step, the one in the middle, and the end."""
    return [Progress(0, epochs, j=0, J=10), Progress(epochs // 2, epochs, j=0, J=10), Progress(epochs, epochs, J=10)]


@pytest.mark.parametrize("name", TABLE)
def test_optimisation(name: str) -> None:
    config, row = resolve(name), TABLE[name]
    train, times = config.train, moments(row.epochs)
    assert (train.epochs, train.batch, config.net.name) == (row.epochs, row.batch, row.net)
    assert (train.optimizer, train.momentum, train.nesterov) == ("sgd", row.beta, True)
    assert config.net.dropout == row.dropout
    assert [train.weight_decay.at(t) for t in times] == [row.weight_decay] * 3
    assert [train.lr.at(t) for t in times] == pytest.approx(row.lr, rel=1e-5)
    assert (train.clip, train.holdout) == (None, 0.0)


@pytest.mark.parametrize("name", TABLE)
def test_objective(name: str) -> None:
    config, row = resolve(name), TABLE[name]
    method, times = rte_settings(config), moments(row.epochs)
    assert config.method_name == "rte"
    assert [method.q.at(t) for t in times] == pytest.approx(row.q, rel=1e-5, abs=1e-12)
    for schedule, value in ((method.jsd_weight, row.jsd), (method.ecr_weight, row.ecr), (method.views, row.views)):
        assert [schedule.at(t) for t in times] == [value] * 3
    assert (method.decay, method.warmup) == (row.alpha, False)


@pytest.mark.parametrize("name", TABLE)
def test_data_noise_and_views(name: str) -> None:
    config, row = resolve(name), TABLE[name]
    views = config.views
    assert config.data_name == name
    assert (config.noise.name, config.noise.ratio, config.noise.sampling) == (*row.noise, "exact")
    assert (views.strong, views.width, views.severity, views.depth) == ("augmix", 3, 3.0, -1)
    assert (views.size, views.flip) == (row.size, True)
    if row.size is None:
        assert (views.pad, views.border) == (4, "zero")
    else:
        assert views.scale == (0.08, 1.0)


def test_imagenet_steps_at_epochs_100_and_200() -> None:
    lr = resolve("imagenet").train.lr
    rates = [lr.at(Progress(epoch, 300, j=j, J=7)) for epoch in (99, 100, 199, 200, 299) for j in (0, 6)]
    assert rates == [0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.001, 0.001, 0.001, 0.001]


@pytest.mark.parametrize("epochs", [30, 3, 90])
def test_food101n_steps_exactly_after_each_third_of_the_run(epochs: int) -> None:
    lr = resolve("food101n", {"train": {"epochs": epochs}}).train.lr
    third, steps = epochs // 3, 2384
    last = [lr.at(Progress(k * third - 1, epochs, j=steps - 1, J=steps)) for k in (1, 2, 3)]
    first = [lr.at(Progress(k * third, epochs, j=0, J=steps)) for k in (0, 1, 2)]
    assert last == first == [0.1, 0.01, 0.001]


def test_webvision_decays_evenly_by_three_orders_of_magnitude() -> None:
    lr = resolve("webvision").train.lr
    rates = [lr.at(Progress(epoch, 100)) for epoch in (0, 33, 34, 66, 67, 100)]
    ratios = [rates[k] / rates[k + 1] for k in (1, 3)]
    assert ratios == pytest.approx([10**0.03] * 2)
    assert rates[0] / rates[-1] == pytest.approx(1000)


def test_webvision_is_the_first_fifty_classes_tested_on_imagenet() -> None:
    tree = resolve("webvision").tree()["data"]
    assert (tree["classes"], tree["test"]) == (50, "imagenet")


def test_resnet50_has_the_papers_number_of_parameters() -> None:
    config = resolve("imagenet")
    with torch.device("meta"):
        net = nets.build(config.net.name, channels=3, classes=1000, size=(224, 224))
    assert f"{sum(p.numel() for p in net.parameters()) / 1e6:.1f}M" == "25.6M"


@pytest.mark.parametrize("name", TABLE)
def test_a_preset_opens_with_its_command_its_cost_and_the_papers_result(name: str) -> None:
    text = resources.files("rte.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    notes = "".join(re.findall(r"^#.*\n", text, re.MULTILINE))
    assert text.startswith(f"# rte fit {name} --preset {name}")
    assert text.startswith(notes)
    assert "Cost" in notes
    _, _, result = notes.partition("Expected (paper)")
    assert re.findall(r"\d\d\.\d\d", result) == list(EXPECTED[name])
