"""Several processes are one run: same weights everywhere, same data, same loss, same folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import quick
from tiny import Plain
from torch.distributed import HashStore

from rte import registry
from rte.config import RunConfig
from rte.errors import TrainingError
from rte.files import write_json
from rte.methods.base import Method
from rte.run.build import load_dataset, make_trainer, prepare
from rte.run.start import start
from rte.train import checkpoint
from rte.train.distributed import World, meet
from rte.train.journal import read

PATIENCE = 600.0

WORKER = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
from rte.config import resolve
from rte.run import start
from rte.train.distributed import World
world = World.join()
kept = []
make = start.make_trainer
def spy(*a, **k):
    made = make(*a, **k); kept.append(made[0]); return made
start.make_trainer = spy
for folder in map(Path, sys.argv[2:]):
    start.resume(folder) if sys.argv[1] == "resume" else start.start(resolve(f"{folder}.json"), folder)
    torch.save(kept[-1].method.state_dict(), folder / f"rank{world.rank}.pt")
"""


def launch(runs: dict[Path, RunConfig], how: str = "start", ranks: int = 2, before: str = "") -> subprocess.Popen[str]:
    """torchrun with workers that train in these folders in turn and leave their final states there.

    The folders have one parent; `before` runs first in each worker.
    """
    worker = next(iter(runs)).parent / "worker.py"
    worker.write_text(before + WORKER)
    for folder, config in runs.items():
        write_json(folder.parent / f"{folder.name}.json", config.tree())
    return torchrun(str(worker), how, *map(str, runs), ranks=ranks)


def torchrun(*command: str, ranks: int = 2, restarts: int = 0) -> subprocess.Popen[str]:
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    start += [f"--nproc-per-node={ranks}", f"--max-restarts={restarts}", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(start, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.02)


def ranks_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """The processes that torchrun has started: {rank: pid}."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it has just ended, or is somebody else's
            rank = [int(text[5:]) for text in variables if text.startswith(b"RANK=")]
            if parent == process.pid and rank:
                found[rank[0]] = int(entry.name)
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds its victims in /proc")


def finish(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output[-3000:]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def ends(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The final states of both ranks."""
    one, two = (torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2))
    return one, two


OWN = ("tables", "epoch_start", "epoch_end", "restarted", "passes", "step", "groups")
"""What of a method several processes must agree on; methods that have nothing of it take the same path as these two."""


def special(name: str) -> bool:
    cls = registry.method(name)
    return name in ("ce", "rte") or any(getattr(cls, own) is not getattr(Method, own) for own in OWN)


SMALL: dict[str, Any] = {"net": {"name": "compact-8"}, "train": {"examples": 400, "batch": 128}}
PAIRED = {name: quick(name, **SMALL) for name in registry.methods() if special(name)}
PAIRED["sampling"] = quick("auto", noise={"name": "none", "ratio": 0.0}, train={"epochs": 6, "batch": 64})


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of `PAIRED` by two ranks, which make all of them, since to start costs more than to train."""
    parent, many = tmp_path_factory.mktemp("paired"), "import rte.recipes.policy; rte.recipes.policy.MANY = 1"
    finish(launch({parent / name: config for name, config in PAIRED.items()}, before=many))  # as if images were many
    return parent


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRED)
def test_two_ranks_hold_the_same_weights_and_tables(name: str, paired: Path) -> None:
    one, two = ends(paired / name)
    assert same(one, two)
    saved = checkpoint.load(paired / name / "checkpoint.pt")
    assert same(saved["method"], one)
    events = read(paired / name / "journal.jsonl", "epoch")
    assert [event["epoch"] for event in events] == list(range(1, PAIRED[name].train.epochs + 1))


@pytest.mark.slow
def test_two_ranks_sample_by_gradients_that_both_have_seen(paired: Path) -> None:
    one, _ = ends(paired / "sampling")
    assert one["sampling.drawn"].any()
    assert len(one["sampling.gradient"].unique()) > len(one["sampling.gradient"]) / 2


@pytest.mark.parametrize("method", ["ce", "rte", "elr"])
@pytest.mark.parametrize("pieces", [2, 3])
def test_accumulated_pieces_give_the_step_of_the_whole_batch(
    method: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rte.nets.build", lambda *a, **k: Plain())
    states = []
    for accumulate in (1, pieces):
        config = quick(method, train={"accumulate": accumulate, "epochs": 1})
        prepared = prepare(config, load_dataset(config, None))
        trainer, _ = make_trainer(prepared, save=lambda name, state: None)
        trainer.fit()
        states.append(trainer.method.state_dict())
    for key, value in states[0].items():
        torch.testing.assert_close(states[1][key], value, rtol=1e-4, atol=1e-5)


NO_NORM = """
import torch
import rte.nets
class Plain(rte.nets.Net):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Tanh())
        self.head = torch.nn.Linear(32, 10)
    def forward(self, x):
        return self.head(self.body(x))
rte.nets.build = lambda *a, **k: Plain()
"""


@pytest.fixture(scope="module")
def unnormed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs without batch norm, by one rank and by two."""
    parent = tmp_path_factory.mktemp("unnormed")
    for ranks in (1, 2):
        runs = {parent / f"{name}-{ranks}": quick(name) for name in ("rte", "elr")}
        finish(launch(runs, ranks=ranks, before=NO_NORM))
    return parent


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rte", "elr"])
def test_without_batch_norm_two_ranks_are_one_process(method: str, unnormed: Path) -> None:
    folders = [unnormed / f"{method}-{ranks}" for ranks in (1, 2)]
    one, two = ([event["loss"] for event in read(folder / "journal.jsonl", "step")] for folder in folders)
    np.testing.assert_allclose(one, two, rtol=1e-5)
    alone, both = (checkpoint.load(folder / "checkpoint.pt")["method"] for folder in folders)
    for key, value in alone.items():
        torch.testing.assert_close(both[key], value, rtol=1e-4, atol=1e-5)


BUDGET = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
from rte.config import resolve
from rte.run import start
from rte.train.distributed import World
kept = []
make = start.make_trainer
def spy(*a, **k):
    made = make(*a, **k); kept.append(made[0]); return made
start.make_trainer = spy
out = Path(sys.argv[1])
start.start(resolve(out / "config.json"), out / "run", budget=20.0)
rank, (trainer,) = World.join().rank, kept
path = [(one.step, one.done, one.pace, one.epochs) for one in trainer.timeline.course.segments]
(out / f"path{rank}").write_text(f"{trainer.step} {path}")
torch.save(trainer.method.state_dict(), out / f"rank{rank}.pt")
"""


@pytest.mark.slow
def test_a_budget_takes_all_ranks_the_same_way(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", quick("ce").tree())
    (tmp_path / "worker.py").write_text(BUDGET)
    finish(torchrun(str(tmp_path / "worker.py"), str(tmp_path)))
    one, two = ((tmp_path / f"path{rank}").read_text() for rank in range(2))
    assert one == two
    assert int(one.split()[0]) > 8, "beyond the steps before which nothing is known of the machine"
    assert same(*ends(tmp_path))


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_run_may_go_on_with_another_number_of_processes(before: int, after: int, tmp_path: Path) -> None:
    config = quick("elr", train={"epochs": 3})
    folder = tmp_path / "run"
    process = launch({folder: config}, ranks=before)
    wait(lambda: (folder / "checkpoint.pt").exists(), process)
    for pid in (process.pid, *ranks_of(process).values()):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    finish(launch({folder: config}, "resume", ranks=after))
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert result["steps"] == 3 * (1297 // 256)
    steps = [event["step"] for event in read(folder / "journal.jsonl", "step")]
    assert steps == sorted(set(steps))


# ---- ranks that die

FIT = ["-m", "rte", "fit", "digits", "--method", "elr", "--epochs", "4", "--set", "train.batch=128"]
FIT += ["--set", "train.holdout=0.1", "--set", "train.device=cpu", "--out"]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    finish(torchrun(*FIT, str(folder)))
    return folder


def entries(folder: Path) -> list[dict[str, Any]]:
    """The journal without what no two runs share: times."""
    return [
        {key: value for key, value in event.items() if key != "seconds"} for event in read(folder / "journal.jsonl")
    ]


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_costs_what_came_after_the_last_checkpoint(victim: int, unbroken: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = torchrun(*FIT, str(folder), restarts=3)
    wait(lambda: (folder / "checkpoint.pt").exists(), process)
    time.sleep(0.3)  # well into the next epoch
    ranks = ranks_of(process)
    os.kill(ranks[victim], signal.SIGSTOP)  # the other one, too, stands still after its current step
    time.sleep(0.5)
    kept, before = checkpoint.load(folder / "checkpoint.pt"), (folder / "journal.jsonl").read_bytes()
    begun = 1 + sum(event["event"] == "epoch" for event in read(folder / "journal.jsonl"))
    assert kept["epoch"] < 4
    os.kill(ranks[victim], signal.SIGKILL)
    wait(lambda: not set(ranks.values()) & set(ranks_of(process).values()), process)
    finish(process)

    assert kept["epoch"] >= begun - 2  # a checkpoint per epoch is what is announced; this one may be half written
    after = (folder / "journal.jsonl").read_bytes()
    assert after[: kept["journal"]] == before[: kept["journal"]]  # with its times: what was saved was not done again
    assert entries(folder) == entries(unbroken)
    mine, other = (checkpoint.load(path / "checkpoint.pt") for path in (folder, unbroken))
    assert same(mine["method"], other["method"])
    result, expected = (json.loads((path / "result.json").read_text()) for path in (folder, unbroken))
    assert {**result, "train_seconds": 0, "memory": 0} == {**expected, "train_seconds": 0, "memory": 0}


LATE = """
import os, signal, sys, time
from pathlib import Path
from rte.train.distributed import World
again, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
if again and rank == 1:
    time.sleep(2)
world = World.join()
world.wait()
if not again and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
world.wait()
Path(sys.argv[1], str(rank)).write_text(str(again))
"""


@pytest.mark.slow
def test_a_rank_that_is_early_after_a_restart_waits_for_the_others(tmp_path: Path) -> None:
    """It used to find the address of the dead one in torchrun's store, and to fail for want of an answer."""
    (tmp_path / "late.py").write_text(LATE)
    finish(torchrun(str(tmp_path / "late.py"), str(tmp_path), restarts=1))
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["1", "1"]


@pytest.mark.slow
def test_a_restart_does_not_go_on_in_a_folder_of_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "noise.json").write_text("{}")
    process = torchrun(*FIT, str(folder), restarts=1)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert output.count("exists already; choose another with --out") == 2
    assert [path.name for path in folder.iterdir()] == ["noise.json"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_processes_meet_under_a_number_of_their_own_whoever_comes_first(order: tuple[int, ...]) -> None:
    store = HashStore()
    for number in (1, 2, 3):
        with ThreadPoolExecutor(3) as pool:
            found = []
            for rank in order:
                found.append(pool.submit(meet, store, rank, 3))
                time.sleep(0.02)
        assert [future.result() for future in found] == [number] * 3


def test_a_process_that_died_before_the_others_came_is_not_counted() -> None:
    store = HashStore()
    store.set("rte/waiting/1", "rte/box/of one that died")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(meet, store, 0, 2)
        time.sleep(0.1)
        assert not first.done()
        second = pool.submit(meet, store, 1, 2)
        assert first.result() == second.result() == 1


def test_a_process_that_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rte.train.distributed.MEETING", timedelta(seconds=0.05))
    with pytest.raises(TrainingError, match="process 1 of 2 did not come"):
        meet(HashStore(), 0, 2)


def test_a_run_knows_its_folder_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, folder = World(store=HashStore()), tmp_path / "run"
    assert not world.claimed(folder)
    world.claim(folder)
    monkeypatch.chdir(tmp_path)
    assert world.claimed(Path("run"))
    assert not world.claimed(Path("other"))
    World().claim(folder)
    assert not World().claimed(folder)


def test_a_half_made_folder_is_made_again_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, world = tmp_path / "run", World(store=HashStore())
    monkeypatch.setattr(World, "join", lambda: world)
    world.claim(folder)
    folder.mkdir()
    (folder / "config.json").write_text("")
    config = quick("ce", train={"epochs": 1})
    result = start(config, folder)
    assert result["steps"] == 1297 // 256
    assert start(config, folder) == result  # whole by now, and at its end


def test_alone_in_the_world_nothing_is_sent() -> None:
    world = World()
    tensor = torch.ones(3)
    world.average([tensor])
    world.gather_rows(tensor, torch.tensor([0]))
    world.wait()
    assert world.first
    assert not world.claimed(Path())
    assert world.any([True, False]) == [True, False]
    assert world.told([0.1]) == [0.1]
    np.testing.assert_array_equal(world.slice(np.arange(5)), np.arange(5))


def test_shares_cover_a_batch_once() -> None:
    parts = [World(rank, 3).slice(np.arange(10)) for rank in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(10))
