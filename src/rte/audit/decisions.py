"""What people said of examples: decisions.csv, as the review page exports it.

Columns index, id, given_label, decision, label; decision is one of `WORDS`, and label the class that results, empty
where there is none.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rte.audit.noise import wilson
from rte.audit.records import Rows
from rte.data.ids import uncell
from rte.errors import UserError

ACCEPT, KEEP, RELABEL, NONE, UNSURE = WORDS = ("accept", "keep", "relabel", "no class", "ambiguous")
HEADER = ("index", "id", "given_label", "decision", "label")
ENOUGH = 50
"""Decisions from which on they say something of all suggestions."""
FEW = 5
"""In a tenth of the examples, decisions from which on they say something of it."""
BINS = 10
"""Groups of examples by score, of each of which the decisions are taken for a sample."""


@dataclass(frozen=True)
class Decision:
    """What a person said of an example; label -1: no class."""

    word: str
    label: int


def read_decisions(path: Path, rows: Rows, classes: Sequence[str]) -> dict[int, Decision]:
    """The decisions in a file, by `index`. They must be of this audit's examples."""
    place = {int(i): at for at, i in enumerate(rows.index)}
    numbers, found = {name: k for k, name in enumerate(classes)} | {"": -1}, {}
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            table = csv.DictReader(file)
            if missing := [name for name in HEADER if name not in (table.fieldnames or ())]:
                raise UserError(
                    f"{path} has no column {missing[0]}; give the decisions.csv that the review page exported."
                )
            for one in table:
                where = f"line {table.line_num} of {path}"
                word, label, index = one["decision"], uncell(one["label"] or ""), one["index"] or ""
                if word not in WORDS:
                    raise UserError(f"{where} has the decision '{word}'; it must be one of {', '.join(WORDS)}.")
                if label not in numbers:
                    raise UserError(f"{where} has the label '{label}', which is no class of this data.")
                if not index.isdigit() or int(index) not in place:
                    raise UserError(f"{where} has the index '{index}', which is no example of this audit.")
                if rows.id[place[int(index)]] != uncell(one["id"] or ""):
                    raise UserError(f"{where} calls example {index} '{one['id']}'; it is of another audit.")
                found[int(index)] = Decision(word, numbers[label])
    except (OSError, csv.Error) as error:
        raise UserError(f"{path} cannot be read ({error}); export the decisions again.") from None
    return found


def words(decisions: dict[int, Decision], classes: Sequence[str]) -> dict[int, str]:
    """As they stand in the column `reviewed`: the word, and for another class its name."""
    return {i: classes[d.label] if d.word == RELABEL and d.label >= 0 else d.word for i, d in decisions.items()}


def report(rows: Rows, decisions: dict[int, Decision], rate: tuple[float, float, float]) -> dict[str, object]:
    """What the decisions say: how often the label was wrong and the suggestion right, and the noise corrected by them.

    The corrected rate takes the decisions of each tenth of the examples by score for a sample of it. Tenths without
    decisions keep the share that the estimate `rate` (with low and high) leaves to them.
    """
    place = {int(i): at for at, i in enumerate(rows.index)}
    at = np.array([place[i] for i in decisions], np.int64)
    said = list(decisions.values())
    wrong = np.array([d.word in (ACCEPT, RELABEL, NONE) for d in said], bool)
    suggested = rows.predicted_label[at] != rows.given_label[at]
    right = np.array(
        [d.word in (ACCEPT, RELABEL) and d.label == rows.predicted_label[k] for d, k in zip(said, at, strict=True)],
        bool,
    )
    out: dict[str, object] = {"decisions": len(said), "enough": len(said) >= ENOUGH}
    out["suspicion_right"] = _share(wrong[rows.is_label_issue[at]])
    out["suggestion_right"] = _share(right[suggested])
    if len(said) >= ENOUGH:
        out["noise"] = corrected(rows, at, wrong, rate)
    return out


def corrected(
    rows: Rows, at: NDArray[np.int64], wrong: NDArray[np.bool_], rate: tuple[float, float, float]
) -> dict[str, float]:
    """The rate of wrong labels with its interval, from decisions on the examples at some places in the order."""
    n = len(rows)
    tenth = np.minimum(BINS - 1, at * BINS // max(1, n))
    before, shares = expected(rows, rate[0]), expected(rows, fitting(rows, at, wrong))
    doubt = max(rate[2] - rate[0], rate[0] - rate[1]) / max(rate[0], 1e-6)
    total, variance, open_share = 0.0, 0.0, 0.0
    for j in range(BINS):
        here = wrong[tenth == j]
        prior = (shares if len(here) >= FEW else before)[j * n // BINS : (j + 1) * n // BINS]
        mean = float(prior.mean()) if len(prior) else 0.0
        if len(here) < FEW:
            total, open_share = total + mean / BINS, open_share + doubt * mean / BINS
            continue
        share = (float(here.sum()) + 2 * mean) / (len(here) + 2)  # two examples' worth of what was thought before
        total += share / BINS
        variance += share * (1 - share) / (len(here) + 2) / BINS**2
    half = float(np.hypot(1.6449 * np.sqrt(variance), open_share))
    return {"rate": total, "low": max(0.0, total - half), "high": min(1.0, total + half)}


def fitting(rows: Rows, at: NDArray[np.int64], wrong: NDArray[np.bool_]) -> float:
    """The rate under which as many of the examples looked at are expected to be wrong as are."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(rows, middle)[at].sum() < wrong.sum() else (low, middle)
    return low


def expected(rows: Rows, rate: float) -> NDArray[np.float64]:
    """P(label wrong) by place in the order: falls with the score, and has the mean `rate`."""
    doubt = 1.0 - rows.label_score.astype(np.float64)
    odds = doubt / np.maximum(1.0 - doubt, 1e-9)
    low, high = 1e-9, 1e9
    for _ in range(60):  # the factor of the odds that gives the rate, by halving
        factor = np.sqrt(low * high)
        mean = float((factor * odds / (1.0 + factor * odds)).mean()) if len(odds) else 0.0
        low, high = (factor, high) if mean < rate else (low, factor)
    share = low * odds / (1.0 + low * odds)
    return np.asarray(share)


def next_first(rows: Rows, decisions: dict[int, Decision], rate: float) -> NDArray[np.int64]:
    """The order of all rows in which to look: not yet reviewed ones first, those first whose look is worth most.

    Worth is P(label wrong), and half as much again of what it would teach: pairs of classes whose suggestions people
    refused are worth less, by how often they did.
    """
    chance = expected(rows, rate)
    pairs = rows.given_label.astype(np.int64) * (int(rows.predicted_label.max(initial=0)) + 1) + rows.predicted_label
    place = {int(i): at for at, i in enumerate(rows.index)}
    asked: dict[int, list[bool]] = {}
    for i, d in decisions.items():
        asked.setdefault(int(pairs[place[i]]), []).append(d.word in (ACCEPT, RELABEL, NONE))
    factor = np.ones(len(rows))
    for pair, answers in asked.items():
        factor[pairs == pair] = (sum(answers) + 2 * 0.75) / (len(answers) + 2) / 0.75
    worth = np.clip(chance * factor, 0.0, 1.0)
    worth += 0.5 * worth * (1.0 - worth)
    done = np.isin(rows.index, np.array(list(decisions), np.int64))
    return np.lexsort((np.arange(len(rows)), -worth, done))


def _share(hits: NDArray[np.bool_]) -> dict[str, float] | None:
    """A share with its 90 % interval."""
    if not len(hits):
        return None
    low, high = wilson(np.array(hits.mean()), np.array(float(len(hits))))
    return {"share": float(hits.mean()), "low": float(low), "high": float(high), "of": len(hits)}
