"""Networks by name: what each promises, whatever the images, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import rte.nets
from rte.errors import ConfigError
from rte.nets import available, build

SMALL = ["compact-8", "swift-8", "wrn-10-1", "resnet10"]
ALL = ["compact", "wrn-28-6", "preact-resnet18", "resnet10", "resnet50"]
SIZES = [(1, (1, 1)), (1, (8, 8)), (1, (28, 28)), (3, (33, 17)), (3, (32, 32)), (3, (5, 130)), (3, (224, 224))]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("channels", "size"), SIZES)
def test_any_image_size_gives_features_and_logits(name: str, channels: int, size: tuple[int, int]) -> None:
    with torch.device("meta"):  # shapes without arithmetic
        net = build(name, channels=channels, classes=7, size=size)
        x = torch.empty(2, channels, *size)
        assert net.features(x).shape == (2, net.width)
        assert net(x).shape == (2, 7)
    assert isinstance(net.head, nn.Linear)
    assert net.head.in_features == net.width


@pytest.mark.parametrize("name", [*SMALL, "preact-resnet18", "resnet50"])
def test_logits_are_the_head_on_the_features_and_every_weight_gets_a_gradient(name: str) -> None:
    torch.manual_seed(0)
    net = build(name, channels=1, classes=7, size=(8, 8))
    x = torch.randn(4, 1, 8, 8)
    net.train()(x).square().sum().backward()  # also shows that nothing autograd needs is overwritten in place
    assert all(
        p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in net.parameters() if p.requires_grad
    )
    net.eval()
    with torch.no_grad():
        assert torch.equal(net.head(net.features(x)), net(x))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("suffix", "size", "kernel"),
    [("", 32, 3), ("", 99, 3), ("", 100, 7), ("", 224, 7), ("-cifar", 224, 3), ("-imagenet", 32, 7)],
)
def test_the_stem_follows_the_size_or_the_name(name: str, suffix: str, size: int, kernel: int) -> None:
    with torch.device("meta"):
        net = build(name + suffix, channels=3, classes=5, size=(size, size))
    first = next(module for module in net.modules() if isinstance(module, nn.Conv2d))
    pools = [module for module in net.modules() if isinstance(module, nn.MaxPool2d)]
    assert first.kernel_size == (kernel, kernel)
    assert first.stride == ((2, 2) if kernel == 7 else (1, 1))
    assert len(pools) == (kernel == 7)


@pytest.mark.parametrize("name", SMALL)
def test_dropout_acts_in_training_only(name: str) -> None:
    torch.manual_seed(0)
    net = build(name, channels=1, classes=5, size=(8, 8), dropout=0.5)
    assert {m.p for m in net.modules() if isinstance(m, nn.Dropout)} == {0.5}
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.0
    x = torch.randn(4, 1, 8, 8)
    net.train()
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))
    assert not any(isinstance(m, nn.Dropout) for m in build(name, channels=1, classes=5, size=(8, 8)).modules())


@pytest.mark.parametrize("name", SMALL)
def test_channels_last_gives_the_same_result(name: str) -> None:
    torch.manual_seed(0)
    net = build(name, channels=3, classes=5, size=(16, 16)).double().eval()
    x = torch.randn(3, 3, 16, 16, dtype=torch.float64)
    with torch.no_grad():
        plain = net(x)
        net.to(memory_format=torch.channels_last)
        other = net(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(plain, other)


@pytest.mark.parametrize("name", ["compact", "wrn-16-1", "resnet10"])
def test_initial_weights_keep_the_signal(name: str) -> None:
    torch.manual_seed(0)
    net = build(name, channels=3, classes=10, size=(16, 16)).train()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
            assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.15)
            assert module.bias is None
        elif isinstance(module, nn.BatchNorm2d):
            assert (module.weight == 1).all()
            assert (module.bias == 0).all()
    assert (net.head.bias == 0).all()
    with torch.no_grad():
        assert 0.05 < net.features(torch.randn(16, 3, 16, 16)).std() < 5


def test_the_seed_decides_the_weights() -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(build("compact", channels=1, classes=2, size=(8, 8)).parameters())

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_every_name_on_offer_can_be_built() -> None:
    names = available()
    assert {"wrn-28-6", "preact-resnet18", "resnet10", "resnet18", "resnet50", "compact"} <= set(names)
    assert names == {**available("images"), **available("vectors")}
    for kind, size in (("images", (32, 32)), ("vectors", ())):
        for name, summary in available(kind).items():
            assert summary
            if name.startswith("timm:"):  # is not installed here, see test_nets_timm.py
                continue
            with torch.device("meta"):
                real = name.replace("<depth>", "16").replace("<width>", "8").replace("<layers>", "2")
                assert build(real, channels=3, classes=10, size=size).width > 0


def test_networks_of_images_and_of_vectors_are_told_apart() -> None:
    with pytest.raises(ConfigError, match="the network 'compact' is not for vectors; choose one of: cosine, linear"):
        build("compact", channels=8, classes=10, size=())
    with pytest.raises(ConfigError, match="the network 'mlp' is not for images"):
        build("mlp", channels=3, classes=10, size=(32, 32))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("resnet19", "did you mean 'resnet1"),
        ("compct", "did you mean 'compact'?"),
        ("preactresnet18", "did you mean 'preact-resnet18'?"),
        ("WRN-28-6", "did you mean"),
        ("?", "choose one of: compact, "),
        ("", "choose one of: "),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        build(name, channels=3, classes=10, size=(32, 32))
    assert f"there is no network '{name}'; " in str(problem.value)
    assert hint in str(problem.value)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"classes": 1}, "at least 2 classes"),
        ({"channels": 0}, "1 channel"),
        ({"size": (0, 8)}, "0x8 images"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": -0.1}, "dropout is -0.1"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, object], reason: str) -> None:
    settings = {"channels": 1, "classes": 2, "size": (8, 8), **options}
    with pytest.raises(ConfigError, match=reason):
        build("compact", **settings)  # type: ignore[arg-type]


NEW = """
from torch import nn
from rte.nets.base import Net, pool

NAMES = ("average",)
SUMMARY = "a linear model of the mean colour"

class Average(Net):
    def __init__(self, channels, classes):
        super().__init__()
        self.head = nn.Linear(channels, classes)

    def features(self, x):
        return pool(x)

def build(name, *, channels, classes, size, dropout):
    return Average(channels, classes) if name == "average" else None
"""


def test_a_new_network_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "average_colour.py").write_text(NEW)
    monkeypatch.setattr(rte.nets, "__path__", [*rte.nets.__path__, str(tmp_path)])
    try:
        assert available()["average"] == "a linear model of the mean colour"
        net = build("average", channels=3, classes=4, size=(8, 8))
        assert net.width == 3
        assert net(torch.zeros(2, 3, 8, 8)).shape == (2, 4)
    finally:
        sys.modules.pop("rte.nets.average_colour", None)
