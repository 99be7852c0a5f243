"""What follows an audit: decisions of people, a mended label file, a table for other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rte.audit.decisions import ENOUGH, Decision, next_first, read_decisions, report, words
from rte.audit.export import FORMATS, NAMES, export
from rte.audit.fix import REVIEW, WAYS, mended, write_labels
from rte.audit.records import STEM, Audit
from rte.errors import UserError, did_you_mean
from rte.files import refuse_output


@dataclass(frozen=True)
class Wish:
    """What is wanted of an audit besides itself; checked before the work."""

    run: Path
    on: str = "train"
    apply: str | None = None
    threshold: float | None = None
    reviewed: Path | None = None
    export: str | None = None
    to: Path | None = None
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what cannot be done."""
        if self.apply is not None and self.apply not in WAYS:
            raise UserError(f"--apply {self.apply}: {did_you_mean(self.apply, WAYS)}")
        if self.export is not None and self.export not in FORMATS:
            raise UserError(f"--export {self.export}: {did_you_mean(self.export, FORMATS)}")
        if self.apply == REVIEW and self.reviewed is None:
            raise UserError("--apply review needs --reviewed FILE: the decisions.csv that the review page exported.")
        if self.threshold is not None and (self.apply in (None, REVIEW) or not 0 <= self.threshold <= 1):
            raise UserError("--threshold is a label_score from 0 to 1, for --apply drop or --apply relabel.")
        if self.to is not None and self.apply is None:
            raise UserError("--to names the label file that --apply writes; give --apply too.")
        if self.reviewed is not None and not self.reviewed.is_file():
            raise UserError(f"there is no file {self.reviewed}; give the decisions.csv that the review page exported.")
        for path, option in ((self.labels, "--to"), (self.exported, "--export")):
            if path is not None:
                refuse_output(path, option, overwrite=self.overwrite or (option == "--export"))

    @property
    def stem(self) -> str:
        """The name of the audit's files in the run folder."""
        plain = "".join(c if c.isalnum() else "-" for c in Path(self.on).name)
        return STEM if self.on == "train" else f"{STEM}-{plain}"

    @property
    def labels(self) -> Path | None:
        """The label file to write."""
        return None if self.apply is None else self.to or self.run / "labels.csv"

    @property
    def exported(self) -> Path | None:
        """The table for another program."""
        return None if self.export is None else self.run / NAMES[self.export]


def fulfil(found: Audit, wish: Wish) -> tuple[Audit, list[str]]:
    """The audit with what people decided, and sentences on what was done; writes the files that are wished for."""
    decisions: dict[int, Decision] = {}
    said: list[str] = []
    if wish.reviewed is not None:
        decisions = read_decisions(wish.reviewed, found.rows, found.classes)
        found, said = reviewed(found, decisions)
    if wish.apply is not None and wish.labels is not None:
        label, stays = mended(found.rows, wish.apply, decisions, wish.threshold)
        write_labels(wish.labels, found.rows, found.classes, label, stays)
        changed = int((label != found.rows.given_label)[stays].sum())
        said.append(
            f"{wish.labels}: {int(stays.sum()):,} labels, {changed:,} of them changed, {int((~stays).sum()):,} left "
            f"out; `rte fit DATA --labels {wish.labels}` takes it."
        )
    if wish.export is not None and wish.exported is not None:
        export(wish.exported, found.rows, found.classes, wish.export)
        said.append(f"{wish.exported} is for {wish.export}.")
    return found, said


def reviewed(found: Audit, decisions: dict[int, Decision]) -> tuple[Audit, list[str]]:
    """The audit with decisions: what they say of it, and what is left in the order in which it is worth looking at."""
    noise = found.summary["noise"]
    told: dict[str, Any] = report(found.rows, decisions, (noise["rate"], noise["low"], noise["high"]))
    order = next_first(found.rows, decisions, told.get("noise", noise)["rate"])
    rows = found.rows.only(np.asarray(order, np.int64))
    summary = {**found.summary, "review": told}
    said = [f"{told['decisions']:,} decisions."]
    for name, text in (
        ("suspicion_right", "of the labels called wrong that people looked at, {} are wrong"),
        ("suggestion_right", "of the suggested labels, {} are right"),
    ):
        if (share := told[name]) is not None:
            span = f"{100 * share['share']:.0f} % ({100 * share['low']:.0f} to {100 * share['high']:.0f} %)"
            said.append(text.format(span).capitalize() + ".")
    if told["enough"]:
        better = told["noise"]
        summary |= {"noise": {**noise, **better}, "estimated": noise}
        said.append(
            f"With them, {100 * better['rate']:.0f} % of all labels look wrong ({100 * better['low']:.0f} to "
            f"{100 * better['high']:.0f} %)."
        )
    else:
        said.append(f"From {ENOUGH} decisions on they correct the estimate of the noise.")
    return replace(found, rows=replace(rows, reviewed=words(decisions, found.classes)), summary=summary), said
