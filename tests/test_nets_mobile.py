"""Mobile networks: their size, and padding on images of any size. What they compute: test_nets_weights."""

from __future__ import annotations

import pytest
import torch

from rte.nets import build, multiply_adds, parameters
from rte.nets.mobile import FarConv


@pytest.mark.parametrize(
    ("name", "numbers", "cost"), [("mobilenet-v2", 3_504_872, 0.3008e9), ("efficientnet-lite0", 4_652_008, 0.3852e9)]
)
def test_their_size_is_the_published_one(name: str, numbers: int, cost: float) -> None:
    net = build(name, channels=3, classes=1000, size=(224, 224))
    assert parameters(net) == numbers
    assert multiply_adds(net, (224, 224), 3) == pytest.approx(cost, rel=1e-3)
    assert net.width == 1280


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 8), (33, 20)])
@pytest.mark.parametrize("kernel", [3, 5])
def test_a_stride_of_two_halves_upwards_and_pads_the_far_side_more(size: tuple[int, int], kernel: int) -> None:
    conv, x = FarConv(1, 1, kernel, 2, 0, bias=False), torch.randn(1, 1, *size)
    out = conv(x)[0, 0]
    assert tuple(out.shape) == tuple(-(-n // 2) for n in size)
    before = [max((-(-n // 2) - 1) * 2 + kernel - n, 0) // 2 for n in size]
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for a in range(kernel):
                for b in range(kernel):
                    row, column = 2 * i + a - before[0], 2 * j + b - before[1]
                    if 0 <= row < size[0] and 0 <= column < size[1]:
                        total += float(x[0, 0, row, column]) * float(conv.weight.detach()[0, 0, a, b])
            assert float(out.detach()[i, j]) == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("name", ["mobilenet-v2", "efficientnet-lite0"])
def test_any_size_of_image_fits_and_dropout_is_before_the_head(name: str) -> None:
    net = build(name, channels=1, classes=3, size=(33, 47), dropout=0.5)
    assert net.eval()(torch.randn(2, 1, 33, 47)).shape == (2, 3)
    assert (net.train().features(torch.rand(4, 1, 33, 47)) == 0).float().mean() > 0.3
