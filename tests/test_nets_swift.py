"""The swift network: its cost, its widths, its whitening, and that it learns."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from rte.errors import ConfigError
from rte.nets import build, multiply_adds, parameters
from rte.nets.swift import Whitening


def test_it_costs_what_its_page_says() -> None:
    net = build("swift", channels=3, classes=10, size=(32, 32))
    # first convolutions at 31, 15 and 7 pixels, second ones after halving at 15, 7 and 3
    weights = [9 * 24 * 32, 9 * 32 * 32, 9 * 32 * 64, 9 * 64 * 64, 9 * 64 * 128, 9 * 128 * 128]
    places = [31**2, 15**2, 15**2, 7**2, 7**2, 3**2]
    norms = 2 * 2 * (32 + 64 + 128)
    assert parameters(net) == sum(weights) + norms + 24 + 1290 == 294_818
    convolutions = sum(w * p for w, p in zip(weights, places, strict=True))
    assert multiply_adds(net, (32, 32), 3) == convolutions + 12 * 24 * 31**2 + 1280
    assert multiply_adds(net, (32, 32), 3) == pytest.approx(20e6, rel=0.02)


@pytest.mark.parametrize(("name", "width"), [("swift", 128), ("swift-32", 128), ("swift-16", 64), ("swift-64", 256)])
def test_the_width_is_in_the_name(name: str, width: int) -> None:
    assert build(name, channels=1, classes=2, size=(8, 8)).width == width


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (8, 8), (32, 20), (100, 100), (224, 160)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_it_takes_images_of_any_size(size: tuple[int, int], channels: int) -> None:
    net = build("swift-8", channels=channels, classes=3, size=size)
    x = torch.randn(2, channels, *size)
    net.calibrate(x)
    assert net(x).shape == (2, 3)


def test_widths_that_crash_are_refused() -> None:
    with pytest.raises(ConfigError, match="'swift-4' cannot be built: its width must be at least 8"):
        build("swift-4", channels=1, classes=2, size=(8, 8))


# ---- whitening


def correlated(n: int) -> Tensor:
    """Images whose neighbouring pixels and channels are nearly equal."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.randn(n, 1, 8, 8, generator=generator)
    smooth = nn.functional.interpolate(coarse, (16, 16), mode="bilinear")
    return smooth + 0.05 * torch.randn(n, 3, 16, 16, generator=generator)


def test_whitened_patches_are_uncorrelated_with_variance_one() -> None:
    x = correlated(500)
    layer = Whitening(3, (16, 16), large=False)
    layer.fit(x)
    out = layer(x)[:, : layer.rank, ::2, ::2].transpose(0, 1).flatten(1).double()  # the patches it was fitted on
    covariance = out @ out.T / out.shape[1]
    # floor 5e-4 beside noise of variance 25e-4: the smallest directions come out below one, by that ratio
    assert torch.allclose(covariance - torch.diag(covariance.diag()), torch.zeros_like(covariance), atol=1e-3)
    assert (covariance.diag() <= 1.0 + 1e-5).all()
    assert (covariance.diag() > 0.8).all()


def test_each_direction_comes_with_both_signs() -> None:
    layer = Whitening(3, (16, 16), large=False)
    layer.fit(correlated(50))
    assert torch.equal(layer.weight[: layer.rank], -layer.weight[layer.rank :])


def test_constant_images_leave_it_finite() -> None:
    layer = Whitening(1, (8, 8), large=False)
    layer.fit(torch.zeros(5, 1, 8, 8))
    assert torch.isfinite(layer.weight).all()


def test_the_axes_are_saved_and_not_trained() -> None:
    net = build("swift-8", channels=3, classes=2, size=(16, 16))
    net.calibrate(correlated(50))
    other = build("swift-8", channels=3, classes=2, size=(16, 16))
    other.load_state_dict(net.state_dict())
    x = correlated(3)
    assert torch.equal(net.eval()(x), other.eval()(x))
    assert not net.stem.weight.requires_grad  # type: ignore[union-attr]


# ---- learning


def test_convolutions_begin_with_the_identity() -> None:
    net = build("swift-8", channels=3, classes=2, size=(16, 16))
    second = net.blocks[0].conv2.weight  # type: ignore[union-attr, index]
    assert torch.equal(second.argmax(1)[:, 1, 1], torch.arange(8))
    assert second.sum() == 8


def test_it_learns() -> None:
    torch.manual_seed(0)
    net = build("swift", channels=1, classes=4, size=(8, 8), dropout=0.1)
    x, y = torch.randn(32, 1, 8, 8), torch.arange(32) % 4
    net.calibrate(x)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for _ in range(40):
        loss = nn.functional.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1
