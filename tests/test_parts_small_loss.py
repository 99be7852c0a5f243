"""Small-loss selection against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from rte.parts.small_loss import SmallLossSettings, smallest


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_share_that_is_kept_falls_to_that_of_right_labels(exponent: float) -> None:
    cfg = SmallLossSettings(ramp=0.25, exponent=exponent)
    for epoch in range(20):
        expected = 1 - 0.4 * min((np.float64(epoch) / 20 / 0.25) ** exponent, 1.0)
        assert cfg.keep(tiny.at(epoch, 20), 0.4) == pytest.approx(expected)
    assert SmallLossSettings(ramp=0.0).keep(tiny.at(0, 4, j=1, J=2), 0.4) == pytest.approx(0.8), "an epoch, at least"


def test_the_smallest_losses_are_found_and_one_at_least() -> None:
    losses = torch.tensor(np.random.default_rng(0).normal(size=11), requires_grad=True)
    order = np.argsort(tiny.array(losses))
    assert set(smallest(losses, 0.4).tolist()) == set(order[:4].tolist())  # 4.4 are rounded
    assert smallest(losses, 0.0).tolist() == [order[0]]
    assert len(smallest(losses, 1.0)) == 11
