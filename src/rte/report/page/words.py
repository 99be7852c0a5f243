"""What a page says of a run in words: the headline numbers, what to do next, and how the run was made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rte.data.types import Images
from rte.report.page.material import Material
from rte.report.tables import percent

REPLACED = ("--out", "-o", "--labels", "--noise", "-n")
"""Options of a run that do not hold for one with mended labels: noise was put in, and is in the labels now."""


@dataclass(frozen=True)
class Number:
    """A headline number: what it is, its value, and what it means in a sentence."""

    title: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Step:
    """Something to do next, with the command for it, if it is one."""

    what: str
    command: str = ""


def title(m: Material) -> str:
    """What was trained on what."""
    return f"{m.method} on {m.result.get('data') or m.config.get('data', {}).get('name', '?')}"


def facts(m: Material) -> list[str]:
    """A line of short facts below the title."""
    net = m.result.get("net") or m.config.get("net", {}).get("name", "?")
    examples = f"{m.noise['N']:,} labels, {m.noise['K']} classes" if "N" in m.noise else ""
    found = [examples, noise(m), f"network {net}"]
    if "train_seconds" in m.result:
        found.append(f"{m.result['epochs']} epochs in {duration(m.result['train_seconds'])}")
    began = str(m.environment.get("started", ""))[:16].replace("T", " ")
    return [fact for fact in [*found, f"begun {began}" if began else ""] if fact]


def noise(m: Material) -> str:
    """Which labels were trained on."""
    name, asked = m.noise.get("name"), m.noise.get("ratio_asked")
    if name in (None, "none"):
        return "labels as given"
    if name == "labels":
        return f"labels of {m.noise.get('key') or m.noise.get('file') or 'a file'}"
    return f"{name} noise, {percent(asked)} % put in"


def numbers(m: Material) -> list[Number]:
    """The headline numbers that are known of a run."""
    return [*_accuracy(m), *_labels(m), *_memory(m), *_calibration(m)]


def _accuracy(m: Material) -> Iterator[Number]:
    test, student, val = (m.result.get(name) for name in ("test", "student", "val"))
    if isinstance(test, dict):
        also = f" The student network alone: {percent(student['top1'])} %." if isinstance(student, dict) else ""
        yield Number(
            "Accuracy",
            f"{percent(test['last'])} %",
            f"Share of the test set that is classified right, at the end of training.{also}",
        )
    elif isinstance(val, dict):
        yield Number(
            "Agreement",
            f"{percent(val['last'])} %",
            "Share of the labels kept out of training that are predicted. They are noisy too, so the true accuracy is "
            "higher.",
        )


def _labels(m: Material) -> Iterator[Number]:
    if m.audit is None:
        return
    summary = m.audit.summary
    rate = summary["noise"]
    low, high = percent(rate["low"]), percent(rate["high"])
    wrong = m.result.get("noise", {}).get("trained")
    truth = "" if wrong is None else f" Known here, as the true labels are: {percent(wrong)} %."
    yield Number(
        "Wrong labels",
        f"{percent(rate['rate'])} %",
        f"Estimated share of the labels that are wrong. Labels and predictions allow {low} to {high} %.{truth}",
    )
    found = m.measured.get("found")
    meaning = f"of {summary['n']:,} labels look wrong one by one; the most suspicious ones are below."
    if found and found["flagged"] and found["wrong"]:
        meaning += (
            f" {percent(found['both'] / found['flagged'])} % of them are wrong indeed; they hold "
            f"{percent(found['both'] / found['wrong'])} % of all wrong labels."
        )
    yield Number("Suspects", f"{summary['issues']:,}", meaning)


def _memory(m: Material) -> Iterator[Number]:
    memory = m.result.get("memorisation") or {}
    if memory.get("memorised") is not None:
        yield Number(
            "Memorised",
            f"{percent(memory['memorised'])} %",
            f"Share of the wrong labels that the network repeats. For {percent(memory['recovered'])} % of them it "
            "predicts the true class instead.",
        )


def _calibration(m: Material) -> Iterator[Number]:
    diagram = m.measured.get("reliability")
    if diagram:
        yield Number(
            "Calibration error",
            f"{percent(diagram['ece'])} %",
            "How far stated confidence and accuracy lie apart on average; 0 is ideal.",
        )


def next_steps(m: Material) -> list[Step]:
    """What to do with a run, with commands that hold its real paths."""
    run = shlex.quote(str(m.folder))
    if not m.result:
        return [Step("Train to the end.", f"rte resume {run}")]
    steps = []
    if m.audit is not None and m.audit.summary["issues"]:
        steps += [
            Step("Review the most suspicious labels below. 50 decisions are a good start. Then export both files."),
            Step(
                "Let the audit learn from your decisions: how right its suggestions are, and what to look at next.",
                f"rte audit {run} --reviewed decisions.csv",
            ),
        ]
        again = retrain(m)
        if again:
            steps.append(Step("Train again with the mended labels.", again))
    steps.append(Step("Predict the classes of new examples.", f"rte predict {run} NEW --out predicted.csv"))
    if not m.corruptions and isinstance(m.result.get("test"), dict) and isinstance(m.source, Images):
        steps.append(Step("Measure the accuracy on corrupted images.", f"rte evaluate {run} --corruptions"))
    return steps


def command(m: Material) -> str:
    """The command line that began the run, as it can be pasted."""
    words = m.environment.get("command")
    if not isinstance(words, list) or not words:
        return ""
    program = str(words[0]).replace("\\", "/").rsplit("/", 1)[-1]
    if program == "__main__.py":
        program = "python -m rte"
    elif program != "rte":
        program = "python " + shlex.quote(str(words[0]))
    return " ".join([program, *(shlex.quote(str(word)) for word in words[1:])])


def retrain(m: Material) -> str:
    """The run's own command with the labels that the page exports, into another folder; none where data has its own."""
    words = m.environment.get("command")
    if not isinstance(words, list) or words[1:2] != ["fit"] or "labels" not in m.config.get("data", {}):
        return ""
    kept: list[str] = []
    given = iter(map(str, words[2:]))
    for word in given:
        if word in REPLACED:
            next(given, "")
        elif not word.startswith(tuple(f"{name}=" for name in REPLACED)):
            kept.append(shlex.quote(word))
    return " ".join(["rte fit", *kept, "--labels", "labels.csv", "--out", shlex.quote(f"{m.folder}-mended")])


def made(m: Material) -> list[tuple[str, str]]:
    """The environment of a run as rows of a table."""
    names = {
        "rte": "rte",
        "git": "commit",
        "python": "Python",
        "torch": "PyTorch",
        "numpy": "NumPy",
        "platform": "platform",
        "cpus": "processors",
        "cuda": "accelerator",
        "data_dir": "data folder",
        "started": "begun",
    }
    rows = [(label, str(m.environment[name])) for name, label in names.items() if m.environment.get(name) is not None]
    if "memory" in m.result:
        rows.append(("memory at most", f"{m.result['memory'] / 2**30:.2f} GiB"))
    if "parameters" in m.result:
        rows.append(("trained parameters", f"{m.result['parameters']:,}"))
    return [*rows, ("run folder", str(m.folder.resolve()))]


def settings(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Every setting by its dotted name."""
    for name, value in tree.items():
        if isinstance(value, dict) and "kind" not in value:
            yield from settings(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", "–" if value is None else str(value)


def duration(seconds: float) -> str:
    """A time for people: 45 s, 7 min, 1.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
