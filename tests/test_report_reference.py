"""The generated parts of the methods' pages are up to date, complete and readable back."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path

import pytest
from reference import _value, hyperparameter_table, update

from rte import registry
from rte.errors import ConfigError
from rte.parts.schedules import Steps

PAGES = Path(__file__).parents[1] / "docs" / "methods"


def rows(name: str) -> dict[str, list[str]]:
    lines = [line.strip("|").split(" | ") for line in hyperparameter_table(name).splitlines()]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in lines[2:]}


def test_the_committed_pages_are_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "methods"
    shutil.copytree(PAGES, folder)
    stale = [path.name for path in update(folder)]
    assert stale == [], "run: python tools/reference.py docs/methods"


@pytest.mark.parametrize("name", registry.methods())
def test_every_setting_has_a_row(name: str) -> None:
    fields = registry.method(name).Config.model_fields
    table = rows(name)
    assert list(table) == list(fields)
    assert [cells[-1] for cells in table.values()] == [field.description for field in fields.values()]


def test_a_row_says_default_range_and_search_range() -> None:
    table = rows("rte")
    assert table["q"][:3] == ["`0.6*sin(13*pi*k/(16*K))`", "schedule in [0, 1]", "0 to 1"]
    assert table["views"][:3] == ["`10`", "schedule in [0, 100]", "3, 4, 5, 6, 7, 8, 9, 10"]
    assert table["decay"][:3] == ["`0.99`", "[0, 1)", ""]
    assert table["warmup"][:3] == ["`false`", "true or false", ""]
    assert rows("dividemix")["temperature"][1] == "(0, 1]"
    assert rows("dividemix")["history"][1] == "whole number ≥ 1"
    assert rows("co_teaching")["noise_rate"][1] == "[0, 1) or none"


@pytest.mark.parametrize("name", registry.methods())
def test_a_printed_default_is_read_back_as_the_default(name: str) -> None:
    config = registry.method(name).Config
    for key, cells in rows(name).items():
        text = cells[0].strip("`")
        value = None if text == "none" else text if "K" in text else json.loads(text)
        assert config.model_validate({key: value}) == config(), key


def test_a_schedule_without_a_formula_is_printed_as_a_table() -> None:
    steps = Steps(values=(0.1, 0.01), epochs=(0, 100))
    assert _value(steps) == '{ kind = "steps", values = [0.1, 0.01], epochs = [0, 100] }'
    assert _value(None) == "none"


def test_only_generated_blocks_change(tmp_path: Path) -> None:
    page = tmp_path / "gce.md"
    page.write_text(
        "# A\n<!-- hyperparameters:gce -->\nold\n<!-- end -->\nB\n<!-- figure:gce -->\nC\n<!-- end -->\n", "utf-8"
    )
    untouched = tmp_path / "other.md"
    untouched.write_text("no blocks\n", "utf-8")
    assert update(tmp_path) == [page]
    table = hyperparameter_table("gce")
    expected = f"# A\n<!-- hyperparameters:gce -->\n{table}<!-- end -->\nB\n<!-- figure:gce -->\nC\n<!-- end -->\n"
    assert page.read_text("utf-8") == expected
    assert update(tmp_path) == []


def test_a_block_without_an_end_is_an_error(tmp_path: Path) -> None:
    text = "<!-- hyperparameters:gce -->\nand the rest of the page\n"
    (tmp_path / "gce.md").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"gce\.md: the block hyperparameters:gce does not end; put <!-- end -->"):
        update(tmp_path)
    assert (tmp_path / "gce.md").read_text("utf-8") == text


def test_a_block_of_an_unknown_method_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("<!-- hyperparameters:gcce -->\n<!-- end -->\n", "utf-8")
    with pytest.raises(ConfigError, match="no method 'gcce'; did you mean 'gce'"):
        update(tmp_path)


@pytest.mark.parametrize("name", registry.methods())
def test_the_settings_in_the_examples_exist(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text("utf-8")
    config = registry.method(name).Config
    named = re.findall(r"method\.(\w+)=", text)
    python = re.findall(r'settings=\{(?:"train": \{.*?\}, )?"method": (\{.*?\})\}', text)
    assert set(named) <= set(config.model_fields)
    assert len(python) == min(1, len(config.model_fields))
    for example in python:
        config.model_validate(ast.literal_eval(example))
