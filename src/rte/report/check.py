"""The screen of `rte data check`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

FEW = 12
"""Classes that are all shown; of more, the largest and the smallest."""
NAMES = 3
"""Examples that are named of each kind of finding."""


def screen(tree: dict[str, Any], left_out: list[str], choices: list[str]) -> RenderableType:
    """What `Findings.tree` says, in one screen; `choices` are the lines on what `rte fit` would do, if known."""
    parts: list[RenderableType] = [_heading(tree), _classes(tree)]
    found = [*left_out, *problems(tree)]
    parts += ["", f"{len(found)} finding{'s' * (len(found) != 1)}:" if found else "Nothing to mend was found."]
    parts += [f"  {k}. {text}" for k, text in enumerate(found, 1)]
    if choices:
        parts += ["", "`rte fit` would choose:", *(f"  {line}" for line in choices)]
    return Group(*parts)


def _heading(tree: dict[str, Any]) -> str:
    tested = f", {tree['test']:,} to test on" if tree["test"] else ", none set apart for testing"
    text = f"{tree['name']}: {tree['train']:,} {tree['kind']} of {len(tree['classes'])} classes{tested}"
    if (sizes := tree["sizes"]) is not None:
        small, middle, large = (f"{w} x {h}" for h, w in (sizes[k] for k in ("smallest", "median", "largest")))
        text += f"; all {small} pixels" if small == large else f"; {small} to {large} pixels, half below {middle}"
        grey, n = tree["grey"], tree["train"] + tree["test"]
        text += ", all grey" if grey == n else f", {grey:,} of them grey" if grey else ""
    return text + "."


def _classes(tree: dict[str, Any]) -> Table:
    """A bar for each class, by its number of training examples."""
    counts = {name: count["train"] for name, count in tree["classes"].items()}
    ranked = sorted(counts, key=lambda name: -counts[name])
    shown = ranked if len(ranked) <= FEW else [*ranked[: FEW // 2], "", *ranked[-FEW // 2 :]]
    table = Table(show_header=False, box=None, pad_edge=False)
    most = max(counts.values())
    for name in shown:
        if name:
            table.add_row(f"  {_short(name)}", f"{counts[name]:,}", "━" * max(1, round(30 * counts[name] / most)))
        else:
            table.add_row("  …", "", f"{len(ranked) - FEW} classes between")
    table.columns[1].justify = "right"
    return table


def problems(tree: dict[str, Any]) -> Iterator[str]:
    """A sentence for each finding, what matters most first."""
    kind = tree["kind"]
    if bad := tree["unreadable"]:
        yield f"{_many(len(bad), 'file')} cannot be read, such as {_some(bad)}; `rte fit --skip-bad` leaves them out."
    if tree["missing"]:
        yield f"{_many(tree['missing'], kind.removesuffix('s'))} with missing or infinite values."
    if tree["constant"]:
        yield f"{_many(tree['constant'], 'number')} the same in all {kind}: of no use."
    for names in tree["alike"]:
        yield f"The classes {_quoted(names)} differ only by case or blanks; are they one?"
    if once := tree["seen_once"]:
        yield f"{_many(len(once), 'class', 'classes')} with a single example, such as {_quoted(once[:NAMES])}."
    if tree["imbalance"] >= 3:
        yield f"The largest class has {tree['imbalance']:.0f} times as many examples as the smallest."
    for how, words in (("exact", "equal"), ("near", "nearly equal")):
        copies = tree["copies"][how]
        if groups := copies["contradicting"]:
            yield f"{_many(len(groups), 'group')} of {words} {kind} with different labels, such as {_pair(groups[0])}."
        if groups := copies["train_and_test"]:
            pair = _pair(groups[0], across=True)
            yield f"{_many(len(groups), 'group')} of {words} {kind} to train on and to test on, such as {pair}."
        if groups := [g for g in copies["groups"] if len({one["label"] for one in g}) == 1]:
            spare = sum(map(len, groups)) - len(groups)
            yield f"{spare:,} {kind} {words} to another one with the same label, such as {_pair(groups[0])}."


def _many(n: int, one: str, more: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else more or one + 's'}"


def _some(names: Any) -> str:
    return ", ".join(list(names)[:NAMES])


def _quoted(names: list[str]) -> str:
    return " and ".join(f"'{_short(name)}'" for name in names)


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"


def _pair(group: list[dict[str, str]], *, across: bool = False) -> str:
    """Two examples of a group that differ, where any do: by their labels, or with `across` by their splits."""
    by = "split" if across else "label"
    other = next((one for one in group if one[by] != group[0][by]), group[1])
    return " and ".join(f"{one['id']} ({one[by]})" for one in (group[0], other))
