"""Several processes are one run: same weights everywhere, same data, same loss, same folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick

from rte import registry, run
from rte.config import RunConfig
from rte.files import write_json
from rte.train import checkpoint
from rte.train.distributed import World
from rte.train.journal import read

WORKER = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
from rte import run
from rte.config import resolve
from rte.train.distributed import World
folder, config = Path(sys.argv[1]), sys.argv[2]
world = World.join()
kept = []
make = run.make_trainer
def spy(*a, **k):
    made = make(*a, **k); kept.append(made[0]); return made
run.make_trainer = spy
go_on = folder.exists() and not world.restarted and len(sys.argv) > 3
run.resume(folder) if go_on else run.start(resolve(config), folder)
torch.save(kept[0].method.state_dict(), folder / f"rank{world.rank}.pt")
"""


def launch(
    folder: Path, config: RunConfig, *extra: str, ranks: int = 2, restarts: int = 0, before: str = ""
) -> subprocess.Popen[str]:
    """torchrun with workers that train in `folder` and leave their final state there; `before` runs first in each."""
    write_json(folder.parent / "config.json", config.tree())
    (folder.parent / "worker.py").write_text(before + WORKER)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"),
        *(
            f"--max-restarts={restarts}",
            str(folder.parent / "worker.py"),
            str(folder),
            str(folder.parent / "config.json"),
        ),
        *extra,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output[-3000:]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.slow
@pytest.mark.parametrize("method", registry.methods())
def test_two_ranks_hold_the_same_weights_and_tables(method: str, tmp_path: Path) -> None:
    finish(launch(tmp_path / "run", quick(method)))
    one, two = (torch.load(tmp_path / "run" / f"rank{rank}.pt", weights_only=True) for rank in range(2))
    assert same(one, two)
    saved = checkpoint.load(tmp_path / "run" / "checkpoint.pt")
    assert same(saved["method"], one)
    events = read(tmp_path / "run" / "journal.jsonl", "epoch")
    assert [event["epoch"] for event in events] == [1, 2]


class Plain(torch.nn.Module):
    """A network without batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Tanh())
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.body(x))
        return logits


@pytest.mark.parametrize("method", ["ce", "rte", "elr"])
@pytest.mark.parametrize("pieces", [2, 3])
def test_accumulated_pieces_give_the_step_of_the_whole_batch(
    method: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rte.nets.build", lambda *a, **k: Plain())
    states = []
    for accumulate in (1, pieces):
        config = quick(method, train={"accumulate": accumulate, "epochs": 1})
        prepared = run.prepare(config, run.load_dataset(config, None))
        trainer, _ = run.make_trainer(prepared, save=lambda name, state: None)
        trainer.fit()
        states.append(trainer.method.state_dict())
    for key, value in states[0].items():
        torch.testing.assert_close(states[1][key], value, rtol=1e-4, atol=1e-5)


def test_views_in_chunks_give_the_same_step_without_batch_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rte.nets.build", lambda *a, **k: Plain())
    states = []
    for chunk in (None, 2, 3):
        config = quick("rte", method={"views": 5, "chunk": chunk}, train={"epochs": 1})
        prepared = run.prepare(config, run.load_dataset(config, None))
        trainer, _ = run.make_trainer(prepared, save=lambda name, state: None)
        trainer.fit()
        states.append(trainer.method.state_dict())
    for other in states[1:]:
        for key, value in states[0].items():
            torch.testing.assert_close(other[key], value, rtol=1e-4, atol=1e-5)


NO_NORM = """
import torch
import rte.nets
class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Tanh())
        self.head = torch.nn.Linear(32, 10)
    def forward(self, x):
        return self.head(self.body(x))
rte.nets.build = lambda *a, **k: Plain()
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rte", "elr"])
def test_without_batch_norm_two_ranks_are_one_process(method: str, tmp_path: Path) -> None:
    config = quick(method)
    losses = {}
    states = {}
    for ranks in (1, 2):
        folder = tmp_path / str(ranks) / "run"
        folder.parent.mkdir()
        finish(launch(folder, config, ranks=ranks, before=NO_NORM))
        losses[ranks] = [event["loss"] for event in read(folder / "journal.jsonl", "step")]
        states[ranks] = checkpoint.load(folder / "checkpoint.pt")["method"]
    np.testing.assert_allclose(losses[1], losses[2], rtol=1e-5)
    for key, value in states[1].items():
        torch.testing.assert_close(states[2][key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_run_may_go_on_with_another_number_of_processes(before: int, after: int, tmp_path: Path) -> None:
    config = quick("elr", train={"epochs": 3})
    folder = tmp_path / "run"
    process = launch(folder, config, ranks=before)
    while not (folder / "checkpoint.pt").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    subprocess.run(["pkill", "-9", "-f", str(tmp_path / "worker.py")], check=False)
    process.communicate()
    finish(launch(folder, config, "resume", ranks=after))
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert result["steps"] == 3 * (1297 // 256)
    steps = [event["step"] for event in read(folder / "journal.jsonl", "step")]
    assert steps == sorted(set(steps))


def test_alone_in_the_world_nothing_is_sent() -> None:
    world = World()
    tensor = torch.ones(3)
    world.average([tensor])
    world.gather_rows(tensor, torch.tensor([0]))
    world.wait()
    assert world.first
    assert not world.restarted
    assert world.any([True, False], torch.device("cpu")) == [True, False]
    np.testing.assert_array_equal(world.share(np.arange(5)), np.arange(5))


def test_shares_cover_a_batch_once() -> None:
    parts = [World(rank, 3).share(np.arange(10)) for rank in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(10))
