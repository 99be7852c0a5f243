from __future__ import annotations

import json
from pathlib import Path

import pytest

from rte import registry
from rte.config import RunConfig, merge, parse_data, parse_override, read_preset, resolve
from rte.errors import ConfigError
from rte.methods.base import Progress
from rte.parts.schedules import Cosine, Sine


def test_every_preset_resolves_for_every_method_and_survives_json() -> None:
    for preset in registry.presets():
        for method in registry.methods():
            config = resolve(preset, {"method": {"name": method}})
            again = RunConfig.from_tree(json.loads(json.dumps(config.tree())))
            assert again == config
            assert again.digest == config.digest


def test_later_sources_win() -> None:
    assert resolve("digits").train.epochs == read_preset("digits")["train"]["epochs"]
    assert resolve("digits", {"train": {"epochs": 7}}).train.epochs == 7
    assert resolve("digits", {"train": {"epochs": 7}}, ["train.epochs=9"]).train.epochs == 9


def test_overrides_are_toml_values_or_strings() -> None:
    assert parse_override("method.q=0.3") == {"method": {"q": 0.3}}
    assert parse_override("seed=3") == {"seed": 3}
    assert parse_override("net.name=wrn-16-2") == {"net": {"name": "wrn-16-2"}}
    assert parse_override("train.lr={kind='linear', start=0.1, end=0}") == {
        "train": {"lr": {"kind": "linear", "start": 0.1, "end": 0}}
    }
    with pytest.raises(ConfigError, match=r"section\.key=value"):
        parse_override("method.q")


def test_a_formula_is_a_typed_schedule() -> None:
    config = resolve("digits", {}, ["train.lr=0.03*cos(7*pi*k/(16*K))"])
    assert config.train.lr == Cosine(scale=0.03, phase=7 / 16)


def test_the_default_rte_settings_are_the_papers() -> None:
    method = registry.method("rte").Config()
    assert method.q == Sine(scale=0.6, phase=13 / 16)  # type: ignore[attr-defined]
    t = Progress(0, 1)
    assert [getattr(method, name).at(t) for name in ("jsd_weight", "ecr_weight", "views")] == [12, 1, 10]
    assert method.decay == 0.99  # type: ignore[attr-defined]


def test_another_method_does_not_inherit_the_presets_method_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[method]\nname = "rte"\nq = 0.4\n[for.gce.method]\nq = 0.5\n[for.gce.train]\nepochs = 3\n')
    gce = resolve(str(file), {"method": {"name": "gce"}})
    assert gce.method.q.value == 0.5  # type: ignore[attr-defined]
    assert gce.train.epochs == 3
    ce = resolve(str(file), {"method": {"name": "ce"}})
    assert ce.method == registry.method("ce").Config()
    assert ce.train.epochs != 3
    assert resolve(str(file)).method.q.value == 0.4  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("method.qq=1", ["method.qq", "did you mean 'q'"]),
        ("train.epoch=1", ["train.epoch", "did you mean 'epochs'"]),
        ("trian.epochs=1", ["trian", "did you mean 'train'"]),
        ("train.epochs=0", ["train.epochs", "greater than or equal to 1"]),
        ("train.epochs=many", ["train.epochs", "'many'"]),
        ("train.epochs=1.5", ["train.epochs", "1.5"]),
        ("method.name=rtee", ["rtee", "did you mean 'rte'"]),
        ("data.name=cifar", ["cifar", "did you mean 'cifar10"]),
        ("train.lr=fast", ["train.lr", "'fast'", "0.03*cos"]),
        ("train.momentum=0", ["nesterov"]),
        ("seed=-1", ["seed", "-1"]),
        ("method.decay=1.0", ["method.decay", "less than 1"]),
    ],
)
def test_a_wrong_setting_is_one_helpful_sentence(override: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve("digits", {}, [override])
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_unknown_presets_and_broken_files_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'cifar10'"):
        resolve("cifar11")
    with pytest.raises(ConfigError, match="there is no settings file"):
        resolve(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("[train\n")
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        resolve(str(broken))


def test_merge_replaces_a_table_of_another_kind() -> None:
    old = {"lr": {"kind": "cosine", "scale": 1.0}, "a": {"x": 1}}
    assert merge(old, {"lr": {"kind": "sine", "scale": 2.0}}) == {"lr": {"kind": "sine", "scale": 2.0}, "a": {"x": 1}}
    assert merge(old, {"lr": {"scale": 2.0}, "a": {"y": 2}}) == {
        "lr": {"kind": "cosine", "scale": 2.0},
        "a": {"x": 1, "y": 2},
    }


def test_merge_replaces_a_schedule_whose_kind_is_said_anew() -> None:
    by_epochs = {"kind": "steps", "values": [0.0, 1.0], "epochs": [0, 20]}
    by_fractions = {"kind": "steps", "values": [0.0, 2.0], "fractions": [0.0, 0.5]}
    assert merge({"w": by_epochs}, {"w": by_fractions}) == {"w": by_fractions}
    assert merge({"w": {"values": [1.0]}}, {"w": {"kind": "steps"}}) == {"w": {"values": [1.0], "kind": "steps"}}
    over = {"method": {"name": "rte", "jsd_weight": by_fractions}}
    method = resolve("laptop", {"data": {"name": "cifar10"}, **over}).method
    assert method.model_dump()["jsd_weight"]["fractions"] == (0.0, 0.5)


def test_merge_keeps_what_a_table_of_the_same_name_says() -> None:
    assert merge({"m": {"q": 1}}, {"m": {"name": "a"}}) == {"m": {"q": 1, "name": "a"}}
    assert merge({"m": {"name": "a", "q": 1}}, {"m": {"name": "a"}}) == {"m": {"name": "a", "q": 1}}
    assert merge({"m": {"name": "a", "q": 1}}, {"m": {"name": "b"}}) == {"m": {"name": "b"}}


def test_data_specifications() -> None:
    assert parse_data("cifar10") == {"name": "cifar10"}
    assert parse_data("some/file.npz") == {"name": "arrays", "path": "some/file.npz"}
    assert parse_data("folder:some/where") == {"name": "folder", "path": "some/where"}
    assert parse_data("table:a.csv") == {"name": "table", "path": "a.csv"}
