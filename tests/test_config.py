from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rte import registry
from rte.config import RunConfig, merge, parse_data, parse_override, read_preset, resolve
from rte.errors import ConfigError, UserError
from rte.methods.base import Progress
from rte.parts.schedules import Cosine, Sine
from rte.settings import Changing, limits_of
from rte.train.config import TrainConfig


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
        ("method=ce", ["method is 'ce'", "method.name=ce"]),
        ("data=cifar10", ["data is 'cifar10'", "data.name=cifar10"]),
        ("train=3", ["train is 3", "section"]),
        ("method.name=7", ["method.name is 7", "rte list"]),
        ("seed=1e400", ["seed", "inf"]),
        ("seed=99999999999999999999", ["seed", "2**63"]),
        ("train.epochs=" + 5000 * "9", ["train.epochs", "valid integer"]),
        ("train.lr=nan", ["train.lr = nan", "finite"]),
        ("train.lr=-1", ["train.lr = -1", "at least 0", "takes the value -1"]),
        ("train.lr=0.1*cos(7*pi*k/K)", ["train.lr", "at least 0", "takes the value -0.1"]),
        ("train.lr=0.1*cos(pi*k/(0*K))", ["train.lr", "divides by 0"]),
        ("train.weight_decay=-1", ["train.weight_decay = -1", "at least 0"]),
        ("train.resolution=0", ["train.resolution = 0", "above 0"]),
        ("train.resolution=1.5", ["train.resolution = 1.5", "at most 1"]),
        ("method.q=2", ["method.q = 2", "at most 1"]),
        ("method.q={kind='linear', start=0.5, end=2}", ["method.q", "at most 1", "takes the value 2"]),
        ("method.views=-3", ["method.views = -3", "at least 0"]),
        ("method.views=1000000", ["method.views", "at most 100"]),
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


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("list.json", b"[1, 2]", "holds no sections"),
        ("text.json", b'"x"', "holds no sections"),
        ("numbers.json", b'{"data": 3}', "data is 3, but it is a section"),
        ("method.json", b'{"method": ["ce"]}', "but it is a section"),
        ("latin.toml", b"# caf\xe9\nseed = 1\n", "no text in UTF-8"),
        ("latin.json", b'{"seed": "\xe9"}', "no text in UTF-8"),
        ("deep.json", 100_000 * b"[", "recursion"),
        ("twice.json", b'{"seed": 1, "seed": 2}', "the key 'seed' stands twice"),
        ("for.toml", b"for = 3\n", "for.METHOD.SECTION"),
        ("for2.toml", b"[for]\nce = 3\n", "for.METHOD.SECTION"),
        ("for3.toml", b"[for.ce]\ntrain = 3\n", "train is 3, but it is a section"),
        ("for4.toml", b"[for.gce.trian]\nepochs = 3\n", "did you mean 'train'"),
    ],
)
def test_a_preset_of_another_shape_is_refused(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        resolve(str(file))
    assert "\n" not in str(caught.value)


def test_an_unreadable_preset_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("seed = 1")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(UserError, match=r"mine\.toml cannot be read \(Permission denied\)"):
        resolve(str(file))


@pytest.mark.parametrize("section", ["train", *registry.methods()])
def test_every_schedule_says_within_which_limits_it_has_to_stay(section: str) -> None:
    model = TrainConfig if section == "train" else registry.method(section).Config
    for name, field in model.model_fields.items():
        if not isinstance(field.default, Changing):
            continue
        limits = limits_of(model, name)
        assert limits, f"{section}: say ge=0 or other limits of {name} in its setting(...)"
        extra = field.json_schema_extra
        searched = extra.get("search", []) if isinstance(extra, dict) else []
        for value in (field.default, *searched):  # type: ignore[misc]
            assert model.model_validate({name: value})


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


def test_data_specifications(tmp_path: Path) -> None:
    assert parse_data("cifar10") == {"name": "cifar10"}
    assert parse_data("folder:some/where") == {"name": "folder", "path": "some/where"}
    options = {"columns": ["path=file"], "labels": None, "group": "patient", "skip_bad": True}
    found = {"columns": {"path": "file", "group": "patient"}, "skip_bad": True}
    assert parse_data("table:a.csv", **options) == {"name": "table", "path": "a.csv", **found}
    assert parse_data(f"folder:{tmp_path}", group="^[a-z]+", labels="y.csv") == {
        "name": "folder", "path": str(tmp_path), "group": "^[a-z]+", "labels": "y.csv",
    }  # fmt: skip
    with pytest.raises(ConfigError, match="digits takes no --labels; leave it out"):
        parse_data("digits", labels="y.csv")
    assert parse_data("table:a.csv") == {"name": "table", "path": "a.csv"}


@pytest.mark.parametrize("wrong", [3, ["train"], "train"])
def test_settings_that_are_no_table_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="give a table of sections"):
        merge({"train": {}}, wrong)
