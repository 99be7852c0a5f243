"""Methods and networks that are not part of the package: found, checked, recorded, and run only where trusted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import QUICK, quick
from sklearn.datasets import load_digits

from rte import code, registry
from rte.cli import main
from rte.code import CodeChanged
from rte.config import RunConfig, merge, resolve
from rte.errors import CheckpointError, ConfigError, UntrustedCode, UserError
from rte.files import read_json, write_json
from rte.report.catalogue import catalogue
from rte.run.folder import evaluate, read_config, reopen
from rte.run.predictor import Predictor
from rte.run.start import resume, start
from rte.search.definition import read_plan
from rte.search.schedule import FoundSchedule, resolve_with
from rte.train import checkpoint

METHOD = """
from rte.methods.base import Method
from rte.parts.losses import cross_entropy
from rte.settings import Settings, setting


class Sharp(Method):
    summary = "cross-entropy of sharper logits"

    class Config(Settings):
        scale: float = setting(2.0, "factor of the logits", gt=0.0, search=(1.0, 4.0))

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.net = task.build()

    def loss(self, batch, t):
        return {"loss": cross_entropy(self.cfg.scale * self.net(batch.x), batch.y).mean()}

    def predict(self, x):
        return self.cfg.scale * self.net(x)
"""
NET = '''
from torch import nn

from rte.nets import Net


class Flat(Net):
    """Three layers."""

    def __init__(self, channels, classes, size):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(channels * size[0] * size[1], 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def features(self, x):
        return self.body(x)


def build(channels, classes, **rest):
    """No features, only logits."""
    return nn.Sequential(nn.Conv2d(channels, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(classes))
'''


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(code, "_loaded", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "my.py").write_text(METHOD)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def own(method: str = "my.py:Sharp", net: str = "net.py:Flat", **settings: Any) -> RunConfig:
    options = merge(QUICK, {"data": {"name": "digits"}, "method": {"name": method}, "net": {"name": net}})
    return resolve("digits", merge(options, settings))


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["rte", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


# ---- it works


def test_it_trains_is_recorded_resumes_and_predicts(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = own(train={"epochs": 3})
    assert (config.method_name, config.method_label) == (f"{mine}/my.py:Sharp", "Sharp")
    result = start(config, mine / "whole")
    assert result["method"] == "Sharp"
    recorded = read_json(mine / "whole" / "environment.json")["code"]
    assert [(r["kind"], r["name"], r["file"]) for r in recorded] == [
        ("method", f"{mine}/my.py:Sharp", f"{mine}/my.py"),
        ("net", f"{mine}/net.py:Flat", f"{mine}/net.py"),
    ]
    assert all(len(r["sha256"]) == 64 for r in recorded)

    states: list[Any] = []
    usual = checkpoint.save
    monkeypatch.setattr(
        checkpoint, "save", lambda path, state, **how: (usual(path, state, **how), states.append(path.read_bytes()))
    )
    start(config, mine / "cut")
    monkeypatch.undo()
    (mine / "cut" / "checkpoint.pt").write_bytes(states[0])  # of the first epoch
    (mine / "cut" / "result.json").unlink()
    monkeypatch.setattr(code, "_loaded", {})  # as in a new process
    monkeypatch.chdir("/")
    again = resume(mine / "cut", trust_code=True)
    measured = {"train_seconds": 0, "memory": 0}
    assert {**again, **measured} == {**result, **measured}

    x = (load_digits().images[:20] * (255 / 16)).astype(np.uint8)
    one, other = (Predictor.load(mine / name, trust_code=True) for name in ("whole", "cut"))
    from rte.data.arrays import as_images

    np.testing.assert_array_equal(one.probabilities(as_images(x, "x")), other.probabilities(as_images(x, "x")))
    assert evaluate(mine / "whole", trust_code=True)["test"]["top1"] == result["test"]["last"]


def test_all_ways_to_name_it_mean_the_same(mine: Path) -> None:
    (mine / "p.toml").write_text('[method]\nname = "my.py:Sharp"\nscale = 3.0\n[net]\nname = "net.py:Flat"\n')
    named = resolve("digits", {"method": {"name": "my.py:Sharp"}}, ["net.name=net.py:Flat", "method.scale=3.0"])
    by_preset = resolve("p.toml", trust_code=True)
    assert named.method == by_preset.method
    assert (named.method_name, named.net.name) == (by_preset.method_name, by_preset.net.name)
    assert resolve("p.toml", {"method": {"name": "./my.py:Sharp"}, "net": {"name": "net.py:Flat"}}) == by_preset
    assert RunConfig.from_tree(by_preset.tree(), trust=True) == by_preset


def test_tables_of_a_preset_for_it_count(mine: Path) -> None:
    (mine / "p.toml").write_text('[for."my.py:Sharp".train]\nepochs = 7\n')
    assert resolve("p.toml", {"method": {"name": "my.py:Sharp"}}).train.epochs == 7


def test_a_module_beside_and_a_package_below_the_folder_one_is_in(mine: Path) -> None:
    (mine / "beside_it.py").write_text("SCALE = 5.0\n")
    (mine / "my.py").write_text(
        METHOD.replace("2.0", "SCALE").replace("\nfrom", "\nfrom beside_it import SCALE\nfrom", 1)
    )
    package = mine / "a_package_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text('__version__ = "1.2"\n')
    (package / "nets.py").write_text(NET)
    config = own(net="a_package_of_mine.nets:build")
    assert config.method.scale == 5.0  # type: ignore[attr-defined]
    assert config.code[1]["version"] == "1.2"
    assert config.code[1]["file"] == str(package / "nets.py")


def test_a_network_without_features_serves_methods_that_need_none(mine: Path) -> None:
    config = own(method="ce", net="net.py:build", train={"epochs": 1})
    assert start(config, mine / "run")["epochs"] == 1
    net = registry.network(config.net.name)(channels=1, classes=10, size=(8, 8))
    with pytest.raises(ConfigError, match=r"net\.py:build for features; derive it from rte\.nets\.Net"):
        net.features(next(net.parameters()))


def test_classes_and_functions_of_the_program() -> None:
    from rte.methods.ce import CrossEntropy

    first = type("Mine", (CrossEntropy,), {"__module__": __name__})
    second = type("Mine", (CrossEntropy,), {"__module__": __name__})
    names = [registry.adopt("method", cls) for cls in (first, second, first)]
    assert names == [f"{__name__}:Mine", f"{__name__}:Mine#2", f"{__name__}:Mine"]
    assert registry.method(names[1]) is second


def test_an_edited_file_is_read_again(mine: Path) -> None:
    before = registry.method(own().method_name)
    assert registry.method(f"{mine}/my.py:Sharp", trusted=True) is before
    (mine / "my.py").write_text(METHOD.replace("2.0", "2.5"))
    assert registry.method(f"{mine}/my.py:Sharp") is before  # runs already
    after = registry.method(f"{mine}/my.py:Sharp", trusted=True)
    assert (before.Config().scale, after.Config().scale) == (2.0, 2.5)  # type: ignore[attr-defined]


def test_a_folder_and_its_code_may_be_moved(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mine / "there").mkdir()
    start(own(train={"epochs": 2}), mine / "there" / "run")
    kept = read_config(mine / "there" / "run").digest
    moved = shutil.move(mine / "there", mine / "here")
    run = Path(moved) / "run"
    monkeypatch.setattr(code, "_loaded", {})
    for name, place in (("my.py", run), ("net.py", mine / "here")):
        shutil.move(mine / name, place / name)
    with pytest.raises(ConfigError, match=r"net\.py cannot be read .* put it into the folder of the run"):
        read_config(run, trust_code=True)
    monkeypatch.chdir(mine / "here")
    config = read_config(run, trust_code=True)
    assert (config.method_name, config.net.name) == (f"{run}/my.py:Sharp", f"{mine}/here/net.py:Flat")
    assert config.digest == kept
    assert resume(run, trust_code=True)["epochs"] == 2
    (run / "my.py").write_text(METHOD + "# changed")
    with pytest.warns(CodeChanged, match=r"my\.py has changed"):
        read_config(run, trust_code=True)


# ---- entry points


@pytest.fixture
def plugin(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = mine / "site"
    site.mkdir()
    asking = METHOD.replace("Sharp", "Asking").replace("summary =", "told =").replace("setting(2.0", "setting(...")
    (site / "my_plugin_for_rte.py").write_text(METHOD + NET + asking)
    info = site / "my_plugin-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 0.3\n")
    points = [
        "[rte.methods]",
        "sharp = my_plugin_for_rte:Sharp",
        "broken = my_plugin_for_rte:Nothing",
        "asking = my_plugin_for_rte:Asking",
        "ce = os:system",
    ]
    points += ["[rte.nets]", "flat-net = my_plugin_for_rte:Flat"]
    (info / "entry_points.txt").write_text("\n".join(points))
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("plugin")
def test_entry_points_are_names_like_the_packages_own(mine: Path) -> None:
    rows = catalogue()
    assert rows["methods"]["sharp"] == "cross-entropy of sharper logits (of my-plugin 0.3)"
    assert rows["nets"]["flat-net"] == "Three layers. (of my-plugin 0.3)"
    assert "there is no Nothing" in rows["methods"]["broken"]
    assert rows["methods"]["ce"] == "plain cross-entropy"
    config = own("sharp", "flat-net", train={"epochs": 1})
    start(config, mine / "run")
    recorded = read_json(mine / "run" / "environment.json")["code"]
    assert [(r["name"], r["code"], r["package"], r["version"]) for r in recorded] == [
        ("sharp", "my_plugin_for_rte:Sharp", "my-plugin", "0.3"),
        ("flat-net", "my_plugin_for_rte:Flat", "my-plugin", "0.3"),
    ]
    with pytest.raises(ConfigError, match="there is no method 'shrp'; did you mean 'sharp'"):
        quick("shrp")
    code._loaded.clear()
    with pytest.raises(UntrustedCode, match=r"is flat-net \(my_plugin_for_rte:Flat of my-plugin 0\.3\), code that is"):
        read_config(mine / "run")
    shutil.rmtree(mine / "site")
    with pytest.raises(CheckpointError, match=r"the method is sharp of the package my-plugin 0\.3, .* not installed"):
        read_config(mine / "run", trust_code=True)


@pytest.mark.usefixtures("plugin")
def test_the_list_is_shown_whatever_packages_bring(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("list", "methods", monkeypatch=monkeypatch) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "sharp: cross-entropy of sharper logits" in said
    assert "broken: my_plugin_for_rte:Nothing: there is no Nothing" in said
    assert re.search(r"asking: asking failed at .*: ValidationError: .*scale", said)


# ---- nobody's code runs by itself


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    start(quick("ce", train={"epochs": 1}), folder)
    return folder


@pytest.fixture
def hostile(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A run folder that somebody sent, and the file that their code would write."""
    marker = tmp_path / "marker"
    harm = f"open({str(marker)!r}, 'w').close()\n"
    (tmp_path / "evil.py").write_text(harm + METHOD + NET)
    package = tmp_path / "evil_package"
    package.mkdir()
    (package / "__init__.py").write_text(harm)
    (package / "inner.py").write_text(harm + METHOD + NET)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Path(shutil.copytree(trained, tmp_path / "sent")), marker


NAMES = ("evil.py:{}", "./evil.py:{}", "{folder}/evil.py:{}", "evil:{}", "evil_package.inner:{}", "evil.py")
OPENERS: dict[str, Callable[[Path], object]] = {
    "resume": resume,
    "evaluate": evaluate,
    "reopen": reopen,
    "read_config": read_config,
    "Predictor.load": Predictor.load,
    "preset": lambda folder: resolve(str(folder / "config.json")),
}


@pytest.mark.parametrize("kind", ["method", "net", "wider"])
@pytest.mark.parametrize("opener", OPENERS)
def test_a_folder_that_was_sent_executes_nothing(opener: str, kind: str, hostile: tuple[Path, Path]) -> None:
    folder, marker = hostile
    whole = read_json(folder / "config.json")
    for name in NAMES:
        tree = json.loads(json.dumps(whole))
        spelt = name.format("Sharp" if kind == "method" else "build", folder=folder.parent)
        if kind == "wider":
            tree["net"]["wider"] = [spelt]
        else:
            tree[kind] = {**tree[kind], "name": spelt}
        write_json(folder / "config.json", tree)
        with pytest.raises(UserError, match=r"code that is not part of rte; .* --trust-code"):
            OPENERS[opener](folder)
        assert not marker.exists()
    with pytest.raises((UserError, UserWarning)):  # told to, it does run: the test is able to fail
        read_config(folder, trust_code=True)
    tree["net"] = {**tree["net"], "name": "evil.py:build", "wider": []}
    write_json(folder / "config.json", {**tree, "method": whole["method"]})
    read_config(folder, trust_code=True)
    assert marker.exists()


@pytest.mark.parametrize(
    "command", ["resume", "evaluate", "predict", "noise from-model", "fit --preset", "tune --resume"]
)
def test_no_command_executes_what_was_sent(
    command: str, hostile: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, marker = hostile
    tree = {**read_json(folder / "config.json"), "method": {"name": "evil.py:Sharp"}}
    write_json(folder / "config.json", tree)
    write_json(folder / "tune.json", {"config": tree, "search": {}, "space": {}, "data_dir": None})
    np.savez("new.npz", x=np.zeros((2, 8, 8), np.uint8))
    end = {"predict": ["new.npz"], "noise from-model": ["--out", "c.csv"]}.get(command, [])
    sent = folder / "config.json" if command == "fit --preset" else folder
    before = command.split()[:1] + (["digits"] if command == "fit --preset" else []) + command.split()[1:]
    assert run(*before, str(sent), *end, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the method is " in said
    assert "evil.py:Sharp, code that is not part of rte" in said
    assert not marker.exists()


def test_a_schedule_that_was_sent_executes_nothing(hostile: tuple[Path, Path], mine: Path) -> None:
    _, marker = hostile
    lengths: dict[str, Any] = {"members": [0, 0], "values": {"method.scale": [1.0, 2.0]}}
    common: dict[str, Any] = {"data": "digits", "epochs": 2, "interval": 1, "population": 2, "seed": 0, "score": 0.5}
    found = FoundSchedule(method=f"{mine}/evil.py:Sharp", **common, **lengths)
    with pytest.raises(UntrustedCode):
        resolve_with(found, "digits", {})
    assert not marker.exists()
    assert resolve_with(found, "digits", {"method": {"name": "evil.py:Sharp"}}).method_label == "Sharp"


def test_a_name_that_was_typed_is_trusted_alone(mine: Path) -> None:
    (mine / "p.toml").write_text('[net]\nname = "net.py:Flat"\n')
    with pytest.raises(UntrustedCode, match=r"net\.py:Flat"):
        resolve("p.toml", {"method": {"name": "my.py:Sharp"}})


def test_a_search_goes_on_only_with_code_that_is_trusted(hostile: tuple[Path, Path]) -> None:
    folder, marker = hostile
    tree = {**read_json(folder / "config.json"), "net": {"name": "evil.py:Flat"}}
    write_json(folder / "tune.json", {"config": tree, "search": {}, "space": {}, "data_dir": None})
    with pytest.raises(UntrustedCode):
        read_plan(folder)
    assert not marker.exists()
    assert read_plan(folder, trust_code=True).config.net.name.endswith("evil.py:Flat")


def test_a_changed_file_is_said(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start(own(train={"epochs": 1}), mine / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_config(mine / "run", trust_code=True)
    (mine / "my.py").write_text(METHOD.replace("2.0", "2.5"))
    with pytest.warns(CodeChanged, match=r"my\.py has changed since the run began .* by the new code"):
        read_config(mine / "run", trust_code=True)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("evaluate", "run", "--trust-code", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().err
    assert said.startswith(f"rte: {mine}/my.py has changed since the run began")
    assert said.count("\n") == 1


# ---- mistakes, each in one sentence and before anything is written

MISTAKES = [
    ("method", "nosuch.py:Sharp", "", r"nosuch\.py cannot be read \(there is no such file\); give its path, or"),
    ("method", "my.py", METHOD, r"say what in it is meant, as in my\.py:NAME"),
    ("method", "my.py:", METHOD, r"say what in it is meant, as in .*my\.py:NAME"),
    ("method", "my.py:Shrap", METHOD, r"there is no Shrap in .*my\.py; did you mean 'Sharp'\?"),
    ("method", "my.py:Sharp.Config", METHOD, r"Config is no method; derive a class from rte\.methods\.base\.Method"),
    ("method", "my.py:Sharp", METHOD.replace("(Settings)", ""), r"Sharp has no settings; write `class Config"),
    ("method", "my.py:Sharp", METHOD.replace("def predict", "def foretell"), r"write predict\(self, x\) and loss"),
    ("method", "my.py:Sharp", METHOD.replace("def loss", "def lose"), r"write predict\(self, x\) and loss"),
    (
        "method",
        "my.py:Sharp",
        METHOD.replace("batch, t)", "batch)"),
        r"Sharp\.loss cannot be called .* loss\(self, batch, t\)",
    ),
    (
        "method",
        "my.py:Sharp",
        METHOD.replace("cfg, task):", "cfg, task, k):"),
        r"__init__ cannot be called .*\(self, cfg, task\)",
    ),
    ("method", "my.py:Sharp", METHOD + "\n    views = 3\n", r"Sharp\.views cannot be called .* views\(self, t\)"),
    (
        "method",
        "my.py:Sharp",
        METHOD + "\n\nraise OSError('no\\nway')\n",
        r"my\.py, line 24: OSError: no way; mend it\.$",
    ),
    ("method", "my.py:Sharp", METHOD + "\n\nimport sys; sys.exit(3)\n", r"my\.py, line 24: SystemExit: 3"),
    ("method", "my.py:Sharp", METHOD + "\ndef f(:\n", r"my\.py, line 23: SyntaxError: invalid syntax"),
    (
        "method",
        "my.py:Sharp",
        METHOD + "\nimport nosuch_module\n",
        r"my\.py, line 23: ModuleNotFoundError: .*nosuch_module",
    ),
    ("method", "nosuch_package.x:Y", "", r"there is no module nosuch_package; install its package"),
    ("net", "my.py:Sharp", METHOD, r"Sharp asks for 'cfg'; it is called with channels, classes, size and dropout"),
    ("net", "my.py:METHODS", "METHODS = 3", r"builds no network; give a function that returns a Net"),
    ("net", "my.py:Config", "class Config: pass", r"builds no network"),
    ("net", "os:system", "", r"asks for 'command'"),
    ("net", "my.py:f", "def f(): return 3", r"my\.py:f returned int, not a network; return a Net"),
    ("net", "my.py:f", "def f(classes):\n    return 1 / 0", r"f failed at .*my\.py, line 2: ZeroDivisionError"),
    (
        "net",
        "my.py:f",
        "from torch import nn\ndef f(): return nn.Flatten()",
        r"\(2, 64\) of 2 examples; it must return logits of shape \(2, 10\)",
    ),
    (
        "net",
        "my.py:f",
        "from torch import nn\ndef f(classes): return nn.Linear(3, classes)",
        r"f failed at .*: RuntimeError",
    ),
]


@pytest.mark.parametrize(("kind", "name", "text", "message"), MISTAKES)
def test_mistakes(
    kind: str,
    name: str,
    text: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if text:
        (tmp_path / "my.py").write_text(text)
    assert run("fit", "digits", f"--{kind}", name, *["--epochs", "1", "--out", "run"], monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert re.search(message, said), said
    assert not (tmp_path / "run").exists()


def test_settings_are_validated_by_its_own_config(mine: Path) -> None:
    with pytest.raises(ConfigError, match=r"method\.scale = -1: input should be greater than 0"):
        resolve("digits", {"method": {"name": "my.py:Sharp", "scale": -1}})
    with pytest.raises(ConfigError, match=r"there is no setting 'method\.scael'; did you mean 'scale'"):
        resolve("digits", {"method": {"name": "my.py:Sharp"}}, ["method.scael=1"])
    with pytest.raises(ConfigError, match=r"net\.dropout is 0\.5, which .*Flat does not take"):
        start(resolve("digits", {"net": {"name": "net.py:Flat", "dropout": 0.5}}), mine / "run")
    assert not (mine / "run").exists()


@pytest.mark.parametrize("returned", ["3", "{}", '{"losses": 3}', '{"loss": batch.y.float()}'])
def test_a_loss_of_another_form_is_said(returned: str, mine: Path) -> None:
    (mine / "my.py").write_text(METHOD.replace("return {", f"return {returned}\n        return {{"))
    with pytest.raises(ConfigError, match=r"Sharp\.loss must return a dict of numbers with the key 'loss'"):
        start(own(), mine / "run")


# ---- several processes, and searches


@pytest.mark.slow
def test_several_processes_train_it(mine: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29577"]
    command += ["-m", "rte", "fit", "digits", "--method", "my.py:Sharp", "--net", "net.py:Flat", "--out", "run"]
    done = subprocess.run(
        [*command, "--epochs", "1", "--set", "train.batch=256"],
        cwd=mine,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert read_json(mine / "run" / "result.json")["method"] == "Sharp"


@pytest.mark.slow
def test_a_search_trains_it(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    package = mine / "some_nets_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text(NET)
    command = [sys.executable, "-m", "rte", "tune", "digits", "--method", "my.py:Sharp"]
    command += ["--net", "some_nets_of_mine:Flat", "--set", "train.batch=256", "--out", "found"]
    command += ["--population", "2", "--interval", "1", "--epochs", "2"]
    done = subprocess.run(command, cwd=mine, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "method.scale" in read_json(mine / "found" / "schedule.json")["values"]
    with pytest.raises(UntrustedCode):
        read_config(mine / "found")
    assert read_config(mine / "found", trust_code=True).method_label == "Sharp"
