"""What two processes decide together: one decides, and bad numbers in one end both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WORKER = '''
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import torch
import torch.distributed as dist
from conftest import quick
from rte.errors import TrainingError
from rte.run.build import load_dataset, make_trainer, prepare
from rte.train.distributed import World

torch.set_num_threads(1)
world, found = World.join(), {}

def barrier(*rest, **named):
    raise AssertionError("nccl would have to guess a GPU")

dist.barrier = barrier
world.wait()

def trainer(config):
    saved = {}
    made, _ = make_trainer(prepare(config, load_dataset(config, None)), save=saved.__setitem__, world=world)
    return made, saved

for bad in ("constant", "gradient"):
    made, saved = trainer(quick("ce", train={"epochs": 1}))
    healthy = made.method.loss
    def loss(batch, t):
        terms = healthy(batch, t)
        if t.step == 2 and world.rank == 1:
            nan = torch.tensor(float("nan"))
            terms = {"loss": terms["loss"] + nan, "task": nan} if bad == "constant" else {"loss": terms["loss"] * nan}
        return terms
    made.method.loss = loss
    try:
        made.fit()
    except TrainingError as error:
        found[bad] = [str(error), sorted(saved), all(bool(p.isfinite().all()) for p in made.method.parameters())]

made, _ = trainer(quick("dividemix", train={"epochs": 2}))
exact = made._sweep
def rough(predict, **rest):
    """As on a machine of another kind: with errors of 1e-4."""
    return exact(predict, **rest) + 1e-4 * (1 + world.rank) * torch.randn(1297, 10)
made._sweep = rough
made.fit()
found["split"] = made.method.clean.tolist()
Path(sys.argv[1], str(world.rank)).write_text(json.dumps(found))
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "worker.py").write_text(WORKER)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [*command, str(folder / "worker.py"), str(folder), str(Path(__file__).parent)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = (json.loads((folder / str(rank)).read_text()) for rank in range(2))
    return one, two


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "what"), [("constant", "the term 'task' is nan"), ("gradient", "the term 'loss' is")])
def test_a_bad_number_in_one_process_ends_both_with_one_sentence(bad: str, what: str, found: Any) -> None:
    one, two = found
    assert one[bad] == two[bad]
    sentence, saved, sound = one[bad]
    assert sentence.startswith(f"step 2 of epoch 0: {what}")
    assert saved == []
    assert sound, "no weight was moved by it"


@pytest.mark.slow
def test_the_first_process_decides_who_is_believed(found: Any) -> None:
    one, two = found
    assert one["split"] == two["split"]
    assert 0 < sum(p > 0.5 for p in one["split"][0]) < 1297
