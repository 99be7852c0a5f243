"""The page as text: what stands in it, that no name can become markup, and that its parts may be missing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import quick
from suspicious import HOSTILE, material

from rte.cli.report import LastPage
from rte.data.rows import Column, TableRows
from rte.data.text import Texts
from rte.data.types import ArrayVectors
from rte.errors import UserError
from rte.report.page import words
from rte.report.page.embed import as_script
from rte.report.page.material import collect, of_folder
from rte.report.page.suspects import in_words
from rte.report.page.write import page
from rte.run.measured import FILE
from rte.run.start import start


class Elements(HTMLParser):
    """Which elements a page has, with their attributes, and the text in each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_data(self, data: str) -> None:
        if self.seen and self.seen[-1][0] in self.inside:
            self.inside[self.seen[-1][0]][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.seen.append(("/" + tag, {}))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.seen if name == tag]


def test_names_stay_text(tmp_path: Path) -> None:
    found = Elements(page([material(tmp_path)]))
    assert [attrs.get("type") for attrs in found.all("script")] == ["application/json", None]
    assert found.all("img") == []
    assert not [attrs for _, attrs in found.seen if any(name.startswith("on") or name == "style" for name in attrs)]
    data = json.loads(found.inside["script"][0])
    assert data["classes"] == list(HOSTILE)
    assert data["id"][0] == f"{HOSTILE[0]}/0.jpg"


def test_the_policy_allows_exactly_the_pages_own_script_and_style(tmp_path: Path) -> None:
    found = Elements(page([material(tmp_path)]))
    rule = next(m["content"] for m in found.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert rule is not None
    assert rule.startswith("default-src 'none'; ")
    for name, text in (("script", found.inside["script"][-1]), ("style", found.inside["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in rule
    assert "unsafe" not in rule
    assert "http" not in rule


def test_nothing_is_fetched(tmp_path: Path) -> None:
    found = Elements(page([material(tmp_path)]))
    links = [value for _, attrs in found.seen for name, value in attrs.items() if name in ("src", "href") and value]
    assert links
    assert all(link.startswith("#") for link in links)
    assert "@import" not in found.inside["style"][0]
    assert "url(" not in found.inside["style"][0]


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "]]>", "\udc80\udcff", "\u2028", "&lt;"])
def test_no_text_ends_the_data(text: str) -> None:
    made = as_script({text: text})
    assert json.loads(made) == {text: text}
    assert not set("<>&\u2028") & set(made)


def test_every_chart_says_what_it_shows_and_has_its_numbers(tmp_path: Path) -> None:
    found = Elements(page([material(tmp_path)]))
    charts = [attrs for attrs in found.all("svg") if attrs.get("class") == "chart"]
    assert len(charts) >= 5
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in charts)
    assert len(found.all("figure")) == len(charts)
    assert len(found.all("details")) == len(charts) + 1  # and the settings


def test_a_name_that_is_no_unicode_is_written(tmp_path: Path) -> None:
    m = material(tmp_path)
    assert m.audit is not None
    strange = replace(m, audit=replace(m.audit, rows=replace(m.audit.rows, id=["\udcff.jpg"] * 50)))
    text = page([strange])
    assert "\\udcff.jpg" in text
    text.encode()


def test_next_steps_hold_the_real_paths(tmp_path: Path) -> None:
    m = material(tmp_path / "a run; rm")
    commands = [step.command for step in words.next_steps(m)]
    assert f"rte audit '{m.folder}' --reviewed decisions.csv" in commands
    assert f"rte evaluate '{m.folder}' --corruptions" in commands
    vectors = words.next_steps(replace(m, source=ArrayVectors(np.zeros((50, 2)))))
    assert not any("corruptions" in step.command for step in vectors)
    again = next(command for command in commands if command.startswith("rte fit"))
    assert again == f"rte fit 'folder:a b' --labels labels.csv --out '{m.folder}-mended'"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["/x/bin/rte", "fit", "a b"], "rte fit 'a b'"),
        (["/x/rte/__main__.py", "fit", "d"], "python -m rte fit d"),
        (["my.py", "$(x)"], "python my.py '$(x)'"),
        ([], ""),
    ],
)
def test_the_command_can_be_pasted(tmp_path: Path, command: list[str], shown: str) -> None:
    assert words.command(replace(material(tmp_path), environment={"command": command})) == shown


def test_texts_and_rows_of_tables_are_told_in_words() -> None:
    index = np.array([2, 0])
    assert in_words(Texts(["one", "two", 500 * "x"]), index) == [399 * "x" + "…", "one"]
    columns = (Column("age", "number"), Column("work", "category", ("", "farm", "<b>")))
    rows = TableRows(columns, np.array([[31.5, 1.0], [np.nan, 2.0], [7.0, 0.0]]))
    assert in_words(rows, np.arange(3)) == ["age 31.5, work farm", "age –, work <b>", "age 7, work –"]
    assert in_words(ArrayVectors(np.arange(20.0).reshape(2, 10)), np.array([1])) == ["10 11 12 13 14 15 16 17 …"]


def test_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    text = page([material(tmp_path / "one"), material(tmp_path / "two", seed=1)])
    found = Elements(text)
    assert [attrs["id"] for attrs in found.all("article")] == ["compared", "run-0", "run-1"]
    assert len(re.findall(r"<polyline", text.split('id="run-0"')[0])) >= 4  # two curves in each chart


def test_what_is_unknown_is_left_out(tmp_path: Path) -> None:
    bare = replace(material(tmp_path), audit=None, result={}, journal=[], noise={}, environment={}, source=None)
    found = Elements(page([bare]))
    assert found.all("figure") == []
    assert [attrs.get("type") for attrs in found.all("script")] == [None]
    assert words.next_steps(bare)[0].command == f"rte resume {tmp_path}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    page = LastPage(None)
    start(quick("ce", train={"epochs": 1}), folder, afterwards=page)
    assert str(folder / "report.html") in page.sentence
    return folder


@pytest.mark.core
def test_a_run_ends_with_its_audit_and_its_page(run: Path) -> None:
    assert {"audit.csv", "audit.json", FILE, "report.html"} <= {path.name for path in run.iterdir()}
    text = (run / "report.html").read_text()
    for heading in (
        "What to do next",
        "Review the suspects",
        "Confusions",
        "Loss of right and wrong labels",
        "ce on digits",
    ):
        assert heading in text
    assert "data:image/" in text


@pytest.mark.core
def test_the_page_is_made_again_from_the_folder(run: Path) -> None:
    said: list[str] = []
    m = collect(run, say=said.append)
    assert not said  # nothing is older than the checkpoint
    assert m.source is not None
    (run / "audit.csv").touch()
    (run / FILE).unlink()
    collect(run, say=said.append)
    assert "Looked through the labels" in said[0]
    assert (run / FILE).is_file()


@pytest.mark.core
def test_a_page_without_the_data_has_what_the_files_tell(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    (tmp_path / "copy" / "checkpoint.pt").unlink()
    m = collect(tmp_path / "copy")
    assert "no pictures" in m.notes[0]
    assert "data:image/" not in page([m])
    assert "What is taken for what" in page([m])


@pytest.mark.core
def test_a_run_that_goes_on_has_a_page_already(run: Path, tmp_path: Path) -> None:
    for name in ("config.json", "environment.json", "noise.json", "journal.jsonl"):
        shutil.copy(run / name, tmp_path)
    text = page([collect(tmp_path)])
    assert "has not ended yet" in text
    assert "Objective" in text
    with pytest.raises(UserError, match="is no run folder"):
        of_folder(tmp_path / "none")
