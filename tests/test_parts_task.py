"""Which loss the given labels have, by the noise that the run has found, and what is remembered of them."""

from __future__ import annotations

import pytest
import torch
from test_parts_selftune import spread_over

from rte.methods.base import Progress
from rte.parts import losses
from rte.parts.selftune import SHORT, NoiseEstimate
from rte.parts.task import task_loss
from rte.parts.visits import Visits
from rte.views.batch import Batch, ViewPlan

B, K = 6, 10
Q = 0.6
EARLY = Progress(3, SHORT, step=300, steps=1000)
LONG = Progress(3, SHORT + 1, step=300, steps=1000)


def batch_and_logits() -> tuple[Batch, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    y, i = torch.randint(K, (B,), generator=generator), torch.tensor([3, 11, 0, 7, 19, 5])
    return Batch(torch.zeros(B, 1, 4, 4), y, i, ViewPlan()), torch.randn(B, K, generator=generator)


def test_without_an_estimate_it_is_l_q() -> None:
    batch, logits = batch_and_logits()
    loss, terms = task_loss(logits, batch, EARLY, q=Q, eager=True)
    assert loss == losses.gce(logits, batch.y, Q).mean()
    assert terms == {"task": loss, "q": Q}


@pytest.mark.parametrize("t", [EARLY, LONG])
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("others", [9, 3])
def test_in_short_runs_it_is_the_likelihood_where_noise_is_even(t: Progress, eager: bool, others: int) -> None:
    batch, logits = batch_and_logits()
    noise, visits = spread_over(others), Visits(20, 0.5)
    loss, terms = task_loss(logits, batch, t, q=Q, noise=noise, visits=visits, eager=eager)
    likely = eager and t is EARLY and others == 9
    formula = losses.forward_corrected(logits, batch.y, noise.share) if likely else losses.gce(logits, batch.y, Q)
    assert loss == formula.mean()
    assert ("q" in terms) != likely
    assert terms["noise"] == noise.share
    pull = torch.ones(20)  # of those who were not seen
    if likely:
        pull[batch.i] = losses.forward_pull(logits, batch.y, noise.share)
    assert torch.equal(visits.pull, pull)


def test_examples_chosen_by_their_pull_tell_nothing_of_the_noise() -> None:
    batch, logits = batch_and_logits()
    for begun in (False, True):
        noise, visits = NoiseEstimate(K), Visits(20, 0.5)
        visits.drawn[0, 0] = begun
        task_loss(logits, batch, EARLY, q=Q, noise=noise, visits=visits, eager=True)
        assert int(noise.count) == (not begun)
