"""Where to compute, and what a processor cannot be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from common import trained
from conftest import quick
from test_train_trainer import trainer

from rte.errors import ConfigError
from rte.files import read_json
from rte.run.build import settled
from rte.run.start import resume, start
from rte.train import device
from rte.train.distributed import World


def test_half_precision_that_would_kill_the_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "HALF", "import os; os.abort()")
    with pytest.raises(ConfigError, match=r"train.precision = bf16 ends in an illegal instruction.*use fp32"):
        trainer(quick("gce", train={"precision": "bf16"}))
    device.check_precision(torch.device("cpu"), "fp32")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    device.check_precision(torch.device("cuda"), "bf16")  # another processor's matter


def test_half_precision_that_a_gpu_only_emulates_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Old GPU")
    with pytest.raises(ConfigError, match=r"only emulated on Old GPU.*use tf32 or fp32"):
        device.check_precision(torch.device("cuda"), "bf16")
    device.check_precision(torch.device("cuda"), "fp32")


def test_half_precision_that_works_trains() -> None:
    made = trainer(quick("gce", train={"precision": "bf16", "epochs": 1}))
    made.fit()
    assert made.step > 0
    assert all(p.isfinite().all() for p in made.method.parameters())


@pytest.mark.parametrize(
    ("program", "chosen"),
    [("print(2.0)", "bf16"), ("print(1.1)", "fp32"), ("import os; os.abort()", "fp32")],
    ids=["faster", "hardly faster", "deadly"],
)
def test_auto_takes_half_precision_where_it_is_faster(
    program: str, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "HALF", program)
    config = quick("gce", train={"precision": "auto", "epochs": 1})
    assert trainer(config).cfg.precision == chosen
    start(config, tmp_path / "run")
    assert read_json(tmp_path / "run" / "config.json")["train"]["precision"] == chosen, "so it can be repeated"
    resume(tmp_path / "run")
    assert trained(tmp_path / "run", config)["steps"] > 0, "a benchmark knows it for the same run"


def test_auto_leaves_other_devices_and_what_was_asked_for_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "HALF", "print(9.0)")
    assert not device.faster_in_half(torch.device("cuda"))
    asked = quick("gce", train={"precision": "fp32"})
    assert settled(asked, World()) is asked


def test_the_program_that_measures_it_prints_a_ratio() -> None:
    assert device._measured(device.HALF)[0] not in (0.0, 1.0), "what stands for a signal, and for no output"


@pytest.mark.parametrize(("name", "sentence"), [("abacus", "is no device"), ("cuda:99", "is not available")])
def test_devices_that_are_not_there(name: str, sentence: str) -> None:
    if name == "cuda:99" and torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    with pytest.raises(ConfigError, match=sentence):
        device.choose_device(name)


def test_one_gpu_for_several_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert device.choose_device("auto") == device.choose_device("cuda") == torch.device("cuda", 1)
    assert chosen == [1, 1]
    with pytest.raises(ConfigError, match="would put all processes of torchrun on one GPU; use cuda"):
        device.choose_device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ConfigError, match="process 2 wants GPU 2, but this machine has 2"):
        device.choose_device("cuda")


@pytest.mark.parametrize(("precision", "short"), [("fp32", False), ("tf32", True), ("bf16", True)])
def test_what_gpus_may_round_is_what_was_asked_for(
    precision: str, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda on: asked.append(on))
    asked: list[bool] = []
    kept = {name: getattr(torch.backends.cudnn, name) for name in ("allow_tf32", "benchmark", "deterministic")}
    products = torch.backends.cuda.matmul.allow_tf32
    try:
        device.set_arithmetic(precision, deterministic=True)
        assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == (short, short)
        assert torch.backends.cudnn.deterministic
        assert not torch.backends.cudnn.benchmark
        device.set_arithmetic(precision, deterministic=False)
        assert torch.backends.cudnn.benchmark
        assert asked == [True, False]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = products
        for name, value in kept.items():
            setattr(torch.backends.cudnn, name, value)
