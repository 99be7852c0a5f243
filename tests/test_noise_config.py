"""Settings of the noise and their short forms."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from rte.errors import ConfigError
from rte.noise.config import NAMES, NoiseConfig, parse_noise


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("none", {"name": "none"}),
        ("symmetric:0.4", {"name": "symmetric", "ratio": 0.4}),
        ("symmetric-inclusive:0.8", {"name": "symmetric-inclusive", "ratio": 0.8}),
        ("pair:1", {"name": "pair", "ratio": 1.0}),
        ("patrini-cifar100:4e-1", {"name": "patrini-cifar100", "ratio": 0.4}),
        ("matrix:F.csv", {"name": "matrix", "file": "F.csv"}),
        ("matrix:some/C.npz:0.4", {"name": "matrix", "file": "some/C.npz", "ratio": 0.4}),
        (r"matrix:D:\noise\C.JSON:0.4", {"name": "matrix", "file": r"D:\noise\C.JSON", "ratio": 0.4}),
        ("labels:human.pt:worse_label", {"name": "labels", "file": "human.pt", "key": "worse_label"}),
        ("labels:given.csv", {"name": "labels", "file": "given.csv"}),
        ("labels:a.npz.csv", {"name": "labels", "file": "a.npz.csv"}),
    ],
)
def test_short_forms(text: str, fields: dict[str, Any]) -> None:
    assert NoiseConfig(**parse_noise(text)) == NoiseConfig(**fields)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("symetric:0.4", "no noise 'symetric'; did you mean 'symmetric'"),
        ("", "no noise ''; choose one of: confusion-cifar10"),
        ("symmetric", "'symmetric' has no ratio; write it as symmetric:0.4"),
        ("symmetric:", "has no ratio"),
        ("symmetric:40", "ratio '40' is no number between 0 and 1; write 0.4 for 40 %"),
        ("symmetric:x", "ratio 'x' is no number"),
        ("symmetric:nan", "ratio 'nan' is no number"),
        ("none:0.4", "none takes nothing after it"),
        ("matrix", "names no file; write matrix:FILE with a file that ends in .csv"),
        ("matrix:F.xlsx", "names no file"),
        ("matrix:F.csv:much", "ratio 'much' is no number"),
        ("labels:0.4", "names no file; write labels:FILE"),
    ],
)
def test_bad_short_forms(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_noise(text)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "matrix"}, "'matrix' needs a file; set noise.file"),
        ({"name": "labels", "ratio": 0.4, "file": "a.npy"}, "'labels' takes no ratio"),
        ({"name": "none", "ratio": 0.4}, "'none' takes no ratio.*such as symmetric"),
        ({"name": "symmetric", "ratio": 0.4, "file": "a.npy"}, "'symmetric' takes no file"),
        ({"name": "symmetric", "ratio": 0.4, "key": "worse"}, "takes no key"),
        ({"name": "symmetric", "ratio": 1.1}, "less than or equal to 1"),
        ({"name": "symmetric", "ratio": -0.1}, "greater than or equal to 0"),
        ({"name": "symmetrical"}, "Input should be 'none', 'symmetric'"),
        ({"sampling": "fair"}, "'exact', 'bernoulli' or 'stratified'"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"ration": 0.4}, "Extra inputs are not permitted"),
    ],
)
def test_settings_that_contradict_each_other(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        NoiseConfig(**fields)


def test_the_default_is_no_noise_and_all_names_are_known() -> None:
    assert NoiseConfig().name == "none"
    assert NAMES[0] == "none"
    assert len(NAMES) == 9


def test_settings_do_not_need_numpy() -> None:
    code = "import sys, rte.noise.config; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
