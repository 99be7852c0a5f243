"""The page in a real browser: reviewing by keyboard and by touch, what is kept, what is exported, what is refused."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import PROGRAM, Browser
from suspicious import HOSTILE, material

from rte.data.ids import cell, uncell
from rte.data.types import ArrayVectors
from rte.report.page.write import write_page

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium")
TAKE = """
    window.taken = [];
    URL.createObjectURL = blob => { taken.push(blob); return '#'; };
    HTMLAnchorElement.prototype.click = function () {};
"""
N = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    write_page([material(folder, N)], folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.screen(1280, 900)
    browser.open(page)
    browser.js("localStorage.clear()")
    browser.open(page)
    browser.js(TAKE)
    return browser


def exported(browser: Browser, file: str) -> list[list[str]]:
    browser.js(f"document.querySelector('[data-file={file}]').click()")
    text = browser.js("taken.at(-1).text()")
    return list(csv.reader(io.StringIO(text, newline="")))


def busy(browser: Browser) -> float:
    """Seconds of processor time of the page's thread: what a busy machine does to frames does not count."""
    told = browser.call("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in told if metric["name"] == "TaskDuration")


def decided(browser: Browser) -> int:
    return int(browser.text(".sum").split()[0].replace(",", ""))


def test_names_full_of_html_do_no_harm(opened: Browser) -> None:
    assert opened.complaints() == []
    assert opened.js("document.querySelectorAll('img').length") == 0
    assert opened.js("document.querySelectorAll('script').length") == 2  # the data and the page's own
    assert opened.text(".desk .id") == f"{HOSTILE[0]}/0.jpg"
    options = opened.js("[...document.querySelectorAll('datalist option')].map(o => o.value)")
    assert options == list(HOSTILE)


def test_the_policy_refuses_what_is_not_the_pages_own(opened: Browser) -> None:
    opened.js("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))")
    opened.js(
        "document.body.insertAdjacentHTML('beforeend', '<b style=\"color: red\" onclick=\"window.ran = 1\">x</b>')"
    )
    opened.js("document.querySelector('b[onclick]').click()")
    assert opened.js("typeof window.ran") == "undefined"
    refused = opened.js("fetch('https://example.org/').then(() => 'went', () => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in text for text in opened.complaints())


def test_review_by_keyboard(opened: Browser) -> None:
    shown = json.loads(opened.js("document.querySelector('.data').textContent"))
    opened.js("document.querySelector('.cards').focus()")
    opened.press("a", "k", "n", "m", "c")
    opened.press(*"emoji", "Enter")
    assert decided(opened) == 5
    rows = exported(opened, "decisions")
    assert rows[0] == ["index", "id", "given_label", "decision", "label"]
    assert [row[3] for row in rows[1:]] == ["accept", "keep", "no class", "ambiguous", "relabel"]
    names, chosen = shown["classes"], [row[4] for row in rows[1:]]
    assert [uncell(text) for text in chosen] == [
        names[shown["suggested"][0]],
        names[shown["given"][1]],
        "",
        "",
        HOSTILE[5],
    ]
    for row, index in zip(rows[1:], range(5), strict=True):
        assert row[:3] == [str(index), cell(shown["id"][index]), cell(names[shown["given"][index]])]
    labels = exported(opened, "labels")
    after = [names[k] for k in shown["given"]]  # what nobody has looked at keeps its label
    after[0], after[4] = names[shown["suggested"][0]], HOSTILE[5]
    kept = [k for k in range(N) if k not in (2, 3)]
    assert labels == [["id", "label"], *([cell(shown["id"][k]), cell(after[k])] for k in kept)]
    assert opened.complaints() == []


def test_every_key_shown_does_what_it_says(opened: Browser) -> None:
    said = opened.js("[...document.querySelectorAll('.desk kbd')].map(k => k.textContent.toLowerCase())")
    assert said == ["a", "k", "n", "m", "u", "c"]
    opened.js("document.querySelector('.cards').focus()")
    for key in said[:4]:
        before = decided(opened)
        opened.press(key)
        assert decided(opened) == before + 1
    opened.press("u")
    assert decided(opened) == 3
    opened.press("c")
    assert opened.js("document.activeElement.name") == "other"


def test_keys_are_left_alone_elsewhere(opened: Browser) -> None:
    opened.js("document.querySelector('.filters [name=text]').focus()")
    opened.press(*"ak")
    assert decided(opened) == 0
    assert "match" in opened.text(".count")


def test_undo_goes_back_one_by_one(opened: Browser) -> None:
    opened.js("document.querySelector('.cards').focus()")
    opened.press("a", "a", "k", "Home", "n")
    assert [row[3] for row in exported(opened, "decisions")[1:]] == ["no class", "accept", "keep"]
    opened.press("u")
    assert [row[3] for row in exported(opened, "decisions")[1:]] == ["accept", "accept", "keep"]
    opened.press("u", "u", "u", "u")
    assert decided(opened) == 0
    assert opened.js("document.querySelector('[data-do=undo]').disabled")


def test_progress_is_kept_and_belongs_to_the_run(opened: Browser, page: Path, tmp_path: Path) -> None:
    opened.js("document.querySelector('.cards').focus()")
    opened.press("a", "k", "ArrowRight", "n")
    opened.open(page)
    assert decided(opened) == 3
    opened.js(TAKE)
    assert [row[0] for row in exported(opened, "decisions")[1:]] == ["0", "1", "3"]
    write_page([material(page.parent, N, seed=1)], tmp_path / "other.html")
    opened.open(tmp_path / "other.html")
    assert decided(opened) == 0


def test_decisions_come_back_from_their_file(opened: Browser, page: Path) -> None:
    opened.js("document.querySelector('.cards').focus()")
    opened.press("a", "k", "n", "m", "c")
    opened.press(*"emoji", "Enter")
    before = exported(opened, "decisions")
    text = opened.js("taken.at(-1).text()")
    opened.js("localStorage.clear()")
    opened.open(page)
    opened.js(TAKE)
    assert decided(opened) == 0
    put = """(text => {
        const files = new DataTransfer();
        files.items.add(new File([text], 'decisions.csv'));
        const input = document.querySelector('[type=file]');
        input.files = files.files;
        input.dispatchEvent(new Event('change'));
    })"""
    opened.js(f"{put}({json.dumps(text)})")
    opened.wait(lambda: decided(opened) == 5)
    assert exported(opened, "decisions") == before
    opened.js(f"{put}({json.dumps('index,given_label,decision,label' + chr(10) + '0,of another run,accept,x')})")
    opened.wait(lambda: "do not belong" in opened.text(".message"))
    assert decided(opened) == 5


def test_filters_choose_by_class_pair_state_and_name(opened: Browser) -> None:
    shown = json.loads(opened.js("document.querySelector('.data').textContent"))
    given, suggested = shown["given"], shown["suggested"]

    def choose(name: str, value: object) -> int:
        element = f"document.querySelector('.filters [name={name}]')"
        opened.js(f"{element}.value = {json.dumps(str(value))}")
        opened.js(f"{element}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        found = re.match(r"([\d,]+) of", opened.text(".count"))
        return int(found[1].replace(",", "")) if found else N

    assert choose("given", 2) == given.count(2)
    both = sum(g == 2 and s == suggested[given.index(2)] for g, s in zip(given, suggested, strict=True))
    assert choose("suggested", suggested[given.index(2)]) == both
    opened.js("document.querySelector('.filters').reset()")
    opened.wait(lambda: opened.text(".count").startswith(f"The {N} most"))
    opened.click(".pairs button")
    pairs = list(zip(given, suggested, strict=True))
    assert opened.text(".count").startswith(f"{max(map(pairs.count, pairs))} of")
    opened.click(".pairs button")
    assert opened.text(".count").startswith(f"The {N} most")
    assert choose("text", "photos/1") == sum("photos/1" in name for name in shown["id"])
    choose("text", "")
    opened.js("document.querySelector('.cards').focus()")
    opened.press("a", "a")
    assert choose("state", "done") == 2
    assert choose("state", "open") == N - 2
    opened.js("document.querySelector('.cards').focus()")
    opened.press("k", "k")  # what is decided leaves the list, and the next one takes its place
    assert opened.text(".count").startswith(f"{N - 4} of")


def test_review_by_touch_on_a_phone(opened: Browser, page: Path) -> None:
    opened.screen(390, 844)
    opened.open(page)
    assert opened.js("document.documentElement.scrollWidth") <= 390
    small = opened.js(
        "[...document.querySelectorAll('.buttons button')].filter(b => b.getBoundingClientRect().height < 44).length"
    )
    assert small == 0
    opened.click(".card[data-at='3']")
    opened.click("[data-do=accept]")
    opened.click("[data-do='no class']")
    assert decided(opened) == 2
    opened.click("[data-do=undo]")
    assert decided(opened) == 1
    assert opened.complaints() == []


def test_pictures_are_of_the_examples_they_stand_for(opened: Browser, page: Path) -> None:
    source = material(page.parent, N).source
    assert source is not None
    pixel = "[...document.querySelector(\"{}\").getContext('2d').getImageData(12, 20, 1, 1).data].slice(0, 3)"
    for at in (0, 7, 13):
        card = pixel.format(f".card[data-at='{at}'] canvas")
        expected = source.fetch(np.array([at]))[0][20, 12].tolist()
        opened.wait(lambda card=card, expected=expected: np.abs(np.array(opened.js(card)) - expected).max() < 3)


def test_ten_thousand_suspects_scroll_smoothly(browser: Browser, tmp_path: Path) -> None:
    n = 10_000
    write_page([material(tmp_path, n)], tmp_path / "many.html")
    assert (tmp_path / "many.html").stat().st_size < 15_000_000
    browser.screen(1280, 900)
    browser.open(tmp_path / "many.html")
    browser.call("Performance.enable", timeDomain="threadTicks")
    before = busy(browser)
    most = browser.js("""new Promise(done => {
        const grid = document.querySelector('.cards'), high = grid.scrollHeight;
        let most = 0, k = 0;
        requestAnimationFrame(function turn() {
            most = Math.max(most, document.querySelectorAll('.card').length);
            grid.scrollTop = high * ++k / 60;
            if (k < 60) requestAnimationFrame(turn);
            else done(most);
        });
    })""")
    frame = (busy(browser) - before) / 60
    browser.call("Performance.disable")
    assert most < 100  # cards in the document, however many there are
    assert frame < 0.05, "seconds of the page's own thread for a frame in which all cards change"
    browser.js("document.querySelector('.cards').focus()")
    browser.press("End", "a")
    assert browser.js(f"Boolean(document.querySelector('.card[data-at=\"{n - 1}\"]'))")
    assert browser.complaints() == []


def test_several_runs_have_a_tab_each(browser: Browser, tmp_path: Path) -> None:
    write_page([material(tmp_path / "a", 30), material(tmp_path / "b", 20, seed=1)], tmp_path / "both.html")
    browser.screen(1280, 900)
    browser.open(tmp_path / "both.html")
    browser.js("localStorage.clear()")
    shown = "[...document.querySelectorAll('article')].filter(a => !a.hidden).map(a => a.id)"
    assert browser.js(shown) == ["compared"]
    browser.click(".tabs a:nth-child(3)")
    browser.wait(lambda: browser.js(shown) == ["run-1"])
    browser.wait(lambda: browser.js("document.querySelectorAll('#run-1 .card').length") == 20)
    browser.js("document.querySelector('#run-1 .cards').focus()")
    browser.press("a")
    assert browser.text("#run-1 .sum").startswith("1 of 20")
    assert browser.complaints() == []


def test_vectors_are_rows_of_numbers(browser: Browser, tmp_path: Path) -> None:
    values = np.arange(200.0).reshape(20, 10)
    write_page([material(tmp_path, 20, source=ArrayVectors(values))], tmp_path / "vectors.html")
    browser.open(tmp_path / "vectors.html")
    assert browser.text(".values").startswith("0 1 2 3 4 5 6 7 …")
    assert browser.js("document.querySelectorAll('.card').length") > 3
    assert browser.js("document.querySelectorAll('.card canvas').length") == 0
    assert browser.complaints() == []


def test_decisions_of_an_earlier_review_are_there(browser: Browser, tmp_path: Path) -> None:
    m = material(tmp_path, 20, seed=3)
    assert m.audit is not None
    said = {0: "accept", 4: "no class", 5: HOSTILE[3]}
    write_page([replace(m, audit=m.audit.reviewed(said))], tmp_path / "again.html")
    browser.open(tmp_path / "again.html")
    assert browser.text(".sum").startswith("3 of 20")


def test_without_script_and_on_paper_the_findings_are_there(browser: Browser, page: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        assert browser.js("document.querySelector('.tool').hidden")
        assert browser.js("document.querySelectorAll('svg.chart').length") > 4
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        browser.open(page)
        assert browser.js("getComputedStyle(document.querySelector('.review')).display") == "none"
        assert browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
