"""Where to compute, and what a processor cannot be asked for."""

from __future__ import annotations

import pytest
import torch
from conftest import quick
from test_train_trainer import trainer

from rte.errors import ConfigError
from rte.train import device


def test_half_precision_that_would_kill_the_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "HALF", "import os; os.abort()")
    with pytest.raises(ConfigError, match=r"train.precision = bf16 ends in an illegal instruction.*use fp32"):
        trainer(quick("gce", train={"precision": "bf16"}))
    device.check_precision(torch.device("cpu"), "fp32")
    device.check_precision(torch.device("cuda"), "bf16")  # another processor's matter


def test_half_precision_that_works_trains() -> None:
    made = trainer(quick("gce", train={"precision": "bf16", "epochs": 1}))
    made.fit()
    assert made.step > 0
    assert all(p.isfinite().all() for p in made.method.parameters())


@pytest.mark.parametrize(("name", "sentence"), [("abacus", "is no device"), ("cuda:99", "is not available")])
def test_devices_that_are_not_there(name: str, sentence: str) -> None:
    if name == "cuda:99" and torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    with pytest.raises(ConfigError, match=sentence):
        device.choose_device(name)
