from __future__ import annotations

import numpy as np
import pytest
import torch

from rte.methods.base import Pass
from rte.train.order import epoch_slots, occurrences


def test_an_epoch_sees_every_example_at_most_once_and_all_but_a_remainder() -> None:
    slots = epoch_slots([Pass()], n=103, batch=10, seed=0, epoch=0)
    seen = np.concatenate([slot.index for slot in slots])
    assert len(slots) == 10
    assert len(set(seen.tolist())) == 100
    assert set(seen.tolist()) <= set(range(103))


def test_the_order_depends_on_seed_epoch_and_pass_only() -> None:
    def order(seed: int, epoch: int, number: int) -> list[int]:
        slots = epoch_slots([Pass(), Pass()], n=50, batch=5, seed=seed, epoch=epoch)
        return [int(i) for slot in slots if slot.pass_number == number for i in slot.index]

    assert order(1, 2, 0) == order(1, 2, 0)
    assert len({tuple(order(*key)) for key in [(1, 2, 0), (2, 2, 0), (1, 3, 0), (1, 2, 1)]}) == 4


def test_a_second_stream_starts_over_when_it_runs_out() -> None:
    one = Pass(index=torch.arange(20), batch=5, second=torch.arange(100, 107), second_batch=4)
    slots = epoch_slots([one], n=107, batch=64, seed=0, epoch=0)
    second = np.concatenate([slot.second for slot in slots if slot.second is not None])
    assert len(slots) == 4
    assert len(second) == 16
    counts = np.bincount(second - 100, minlength=7)
    assert set(counts.tolist()) <= {2, 3}


def test_a_small_pass_is_one_batch_and_an_empty_one_none() -> None:
    passes = [Pass(index=torch.tensor([4, 7])), Pass(index=torch.tensor([], dtype=torch.int64))]
    slots = epoch_slots(passes, n=10, batch=8, seed=0, epoch=0)
    assert [sorted(slot.index.tolist()) for slot in slots] == [[4, 7]]


def test_an_index_that_comes_again_is_counted() -> None:
    np.testing.assert_array_equal(occurrences(np.array([3, 5, 3, 3, 5, 1])), [0, 0, 1, 2, 1, 0])
    assert occurrences(np.zeros(0, np.int64)).tolist() == []
    index = torch.tensor([7, 7, 7, 2, 2, 9])
    slots = epoch_slots([Pass(index=index, batch=2)], n=10, batch=8, seed=0, epoch=0)
    seen = sorted((int(i), int(k)) for slot in slots for i, k in zip(slot.index, slot.again, strict=True))
    assert seen == [(2, 0), (2, 1), (7, 0), (7, 1), (7, 2), (9, 0)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_step_is_cut_into_shares_and_pieces_that_make_it_whole_again(ranks: int, pieces: int) -> None:
    one = Pass(index=torch.arange(20).repeat(2), batch=12, second=torch.arange(30, 40), second_batch=7)
    slot = epoch_slots([one], n=40, batch=64, seed=0, epoch=0)[0]
    cut = [piece for rank in range(ranks) for piece in slot.cut(rank, ranks, pieces)]
    for name in ("index", "again", "second", "second_again"):
        np.testing.assert_array_equal(np.concatenate([getattr(piece, name) for piece in cut]), getattr(slot, name))
    assert {piece.pass_number for piece in cut} == {0}
