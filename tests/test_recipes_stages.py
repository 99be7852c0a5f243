"""Networks that follow one another within a run: their targets, and which stage it is."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from rte.recipes.policy import LESSON, Stage
from rte.recipes.stages import AGAIN, Stages, evened

# ---- targets


def test_targets_name_each_class_as_often_as_the_labels_do() -> None:
    p = torch.tensor(np.random.default_rng(0).dirichlet([4.0, 1.0, 1.0, 0.3], size=500))
    wanted = torch.tensor([100, 150, 150, 100])
    out = evened(p, wanted)
    assert torch.allclose(out.sum(1), torch.ones(500, dtype=torch.float64))
    assert torch.allclose(out.mean(0), wanted.double() / 500, atol=2e-3)
    odds = (out[:, 0] / out[:, 1]) / (p[:, 0] / p[:, 1])
    assert torch.allclose(odds, odds[0].expand(500)), "classes are weighted, images are not"


def test_targets_that_are_even_stay_and_what_was_never_predicted_does_no_harm() -> None:
    even = torch.eye(4).repeat(3, 1)
    assert torch.allclose(evened(even, torch.ones(4)), even)
    never = torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]])
    out = evened(never, torch.ones(3))
    assert torch.isfinite(out).all()
    assert torch.equal(out[:, 2], torch.zeros(2))


def test_what_is_taught_is_evened_to_the_labels_and_part_of_the_state() -> None:
    p = torch.tensor(np.random.default_rng(1).dirichlet(np.ones(tiny.K), size=tiny.N), dtype=torch.float32)
    y = torch.tensor([0] * 6 + [1] * 3 + [2] * 3)  # class 3 never
    stages, other = Stages(tiny.K), Stages(tiny.K)
    assert stages.targets.shape == (0, tiny.K)
    stages.teach(p, y)
    assert torch.equal(stages.targets, evened(p, torch.tensor([6, 3, 3, 0])))
    other.load_state_dict(stages.state_dict())
    assert torch.equal(other.targets, stages.targets)
    stages.load_state_dict(Stages(tiny.K).state_dict())
    assert stages.targets.shape == (0, tiny.K), "of a run that was not there yet"


# ---- whose turn it is


def thirds() -> tuple[Stage, ...]:
    """Three networks of a third of the run each."""
    stages = [Stage(False, 1 / 3)]
    for k in (1, 2):
        stages += [Stage(True, (k + LESSON) / 3), Stage(False, (k + 1) / 3)]
    return tuple(stages)


def test_without_a_plan_nothing_changes() -> None:
    one = Stages(tiny.K)
    for epoch in range(10):
        t = tiny.at(epoch, 10)
        assert not one.due(t)
        assert one.moment(t) is t
    assert (one.network, one.teaching) == (0, False)


def test_each_stage_has_its_part_of_the_run() -> None:
    stages, seen = Stages(tiny.K), []
    stages.plan(thirds())
    for epoch in range(20):
        t = tiny.at(epoch, 20)
        due = stages.due(t)
        m = stages.moment(t)
        seen.append((due, stages.network, stages.teaching, m.epoch, m.epochs, round(m.fraction, 3)))
    assert [(epoch, *entry[1:]) for epoch, entry in enumerate(seen) if entry[0]] == [
        (7, 1, True, 0, 3, 0.0),  # a third is 6.7 epochs; taught to the end of 0.45 of the next third, 9.7
        (10, 1, False, 10, 20, AGAIN),  # back at the labels, as in the middle of the run
        (13, 2, True, 0, 3, 0.0),
        (16, 2, False, 10, 20, AGAIN),
    ]
    fractions = [entry[5] for entry in seen]
    assert fractions[:7] == pytest.approx([e / (20 / 3) for e in range(7)], abs=1e-3)
    assert [entry[3:5] for entry in seen[:7]] == [(epoch, 7) for epoch in range(7)]
    assert fractions[7:10] == pytest.approx([e / (29 / 3 - 7) for e in range(3)], abs=1e-3)
    assert fractions[16:] == pytest.approx([AGAIN + e / 8 for e in range(4)], abs=1e-3)
    assert stages.moment(tiny.at(19, 20, j=5, J=5)).fraction == 1.0


def test_the_stage_under_way_is_part_of_the_state() -> None:
    stages, other = Stages(tiny.K), Stages(tiny.K)
    stages.plan(thirds())
    for epoch in range(15):
        stages.due(tiny.at(epoch, 20))
    other.load_state_dict(stages.state_dict())
    assert (other.network, other.teaching) == (2, True)
    for epoch in range(15, 20):
        t = tiny.at(epoch, 20)
        assert stages.due(t) == other.due(t)
        assert stages.moment(t) == other.moment(t)


def test_more_stages_than_there_are_epochs_do_no_harm() -> None:
    stages = Stages(tiny.K)
    many = [Stage(False, 1 / 9)]
    for k in range(1, 9):
        many += [Stage(True, (k + LESSON) / 9), Stage(False, (k + 1) / 9 if k < 8 else 1.0)]
    stages.plan(many)
    for epoch in range(3):
        t = tiny.at(epoch, 3)
        stages.due(t)
        assert 0.0 <= stages.moment(t).fraction <= 1.0
        assert stages.moment(t).epochs >= 1


def test_a_stage_begins_with_the_nearest_epoch() -> None:
    for until, begins in ((0.54, 5), (0.56, 6)):
        stages = Stages(tiny.K)
        stages.plan([Stage(False, until), Stage(True, 1.0)])
        assert next(epoch for epoch in range(10) if stages.due(tiny.at(epoch, 10))) == begins
