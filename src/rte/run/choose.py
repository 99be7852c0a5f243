"""What suits data and machine where nobody says anything: one pure function, and the lines that explain it.

    choose(facts, machine, said, seconds=..., epochs=...) -> Choices

Each choice comes with its reason and with the flag that overrules it; what was said counts, and the rest suits itself
to it. Each constant says where it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Tree = dict[str, Any]
Kind = Literal["images", "vectors", "table", "text"]

MODEL = "all-MiniLM-L6-v2"
"""What embeds texts; it comes with the extra `text`."""
START = "efficientnet-lite0"
"""What photographs start from: its weights come with the extra `weights`."""
PHOTOGRAPH = 64
"""Pixels a side from which images count as photographs, for which a trained network has eyes."""
FEW = 5000
"""Smaller images in colour, up to so many, are better seen by a trained network, too. 4,000 of CIFAR-10, half of the
labels wrong: 74.7 % in 30 s; from nothing, 5,000 with 40 % wrong: 73.8 % in six minutes (results/small-data.json)."""
SIDES = (96, 128, 160, 192, 224)
"""Pixels a side at which a trained network may look."""
LOOKING = 0.5
"""Share of the time that looking may take."""
MOST = 0.8
"""Share of the time that it must not exceed; else training from nothing has to do."""
USUAL = 600.0
"""Seconds of a run that nobody set a time for, at most."""
PASSES = 60
"""Epochs that training from nothing gets, where there is time: auto has 73.8 % after 60 of 5,000 images."""
LEAST = 500
"""Images of which the held-out tenth says something."""
HELD = 0.1
MIXED = 64
"""Side of the views of large images, or images of differing size, from nothing: as `rte.run.inputs` has it."""
TINY = 24
"""Images smaller than that are seen at their own size from the beginning: of 8 pixels, 5 say little."""
MIDDLE = 8 / 7
"""The part of an image that is looked at is its middle: so much larger is it read."""
STEP = 0.01
"""Seconds that a step takes at least, however small the images are."""
FLOPS = 6.0 * 28e6 / 32**2
"""Of a step for each pixel of an image: of `swift-24`, there and back."""
EFFICIENCY = 0.3
"""FLOP/s that it reaches against a wide convolution."""
VECTOR_EPOCHS, MANY_VECTORS, FEWEST = 30, 20_000, 4
"""Of the preset `vectors`; with more examples than that, as many steps in fewer epochs, but no fewer than four.
Banking77, 40 % wrong: 18 epochs of 39 steps have 90.5 %, 30 have 90.7 % (one seed)."""
ROW = 2e-5
"""Seconds that a vector takes in an epoch of a linear layer."""


@dataclass(frozen=True)
class Facts:
    """What is known of the data: n labelled examples of so many classes; images have channels and a usual side."""

    kind: Kind
    n: int
    classes: int
    tested: bool
    """Whether there is a test set."""
    side: int = 0
    """Of the shorter side of most images; their only one where all are alike."""
    alike: bool = True
    """Whether all images have one size."""
    channels: int = 0
    dim: int = 0
    """Numbers of a vector, or columns of a table."""


@dataclass(frozen=True)
class Machine:
    """What is known of the machine: `speed` in FLOP/s of a convolution in single precision."""

    cores: int
    device: str = "cpu"
    speed: float = 1e11
    half: bool = False
    """Whether bfloat16 is faster here."""
    look: float | None = None
    """Seconds for which a trained network looks at an image of 96 pixels; None: there is no trained network."""


class Line(NamedTuple):
    """A choice, why it was made, and what overrules it."""

    what: str
    value: str
    reason: str
    flag: str


@dataclass(frozen=True)
class Choices:
    """The preset to start from, the settings to put on it, the seconds to train for or None, and why."""

    preset: str
    tree: Tree
    seconds: float | None
    lines: tuple[Line, ...] = field(default=())
    holdout: str = ""
    """What is held out, in a sentence; empty where nothing is."""
    shorter: int | None = None
    """What the shorter side of image files is reduced to while they are read: what is looked at, and no more."""


def choose(
    facts: Facts,
    machine: Machine,
    said: Mapping[str, Any] | None = None,
    *,
    seconds: float | None = None,
    epochs: int | None = None,
) -> Choices:
    """`said`: the settings that somebody gave, as a tree; `seconds`, `epochs`: the length of the run, where given."""
    said = said or {}
    usual = seconds or USUAL
    start = _start(facts, machine, said, usual)
    preset = "vectors" if facts.kind != "images" else "features" if start.once else "laptop"
    tree: Tree = {"net": start.tree} if start.tree else {}
    images, side = _images(facts, machine, said, start, usual)
    views: Tree = {} if side is None else {"size": side}
    if _get(said, "views", "flip") is False:
        views["mirror"] = False  # what must not be flipped is not predicted from its mirror image
    if views:
        tree["views"] = views
    train: Tree = {}
    if preset == "laptop" and 0 < facts.side < TINY:
        train["resolution"] = 1.0
    batch, why = _batch(facts, preset)
    if batch is not None:
        train["batch"] = batch
    rest, sentence = held_out(facts, said)
    train |= rest.get("train", {})
    time, budget, passes = _time(facts, machine, start, preset, side, seconds, epochs, said)
    if passes is not None:
        train["epochs"] = passes
    if train:
        tree["train"] = train
    asked = _get(said, "train", "batch")
    amount = f"batches of {asked or batch or {'laptop': 128}.get(preset, 256)}"
    lines = (
        _method(said),
        Line("network", start.value, start.reason, start.flag),
        images,
        Line("steps", f"{amount}, {_precision(preset, machine, said)}",
             _GIVEN if asked else why, "--set train.batch=, train.precision="),
        time,
    )  # fmt: skip
    seen = _get(said, "views", "size") or side
    shorter = None if seen is None else round(MIDDLE * seen) if start.once else 2 * seen
    reduced = shorter if shorter is not None and facts.side > shorter else None
    return Choices(preset, tree, budget, lines, sentence, reduced)


_GIVEN = "as you said"


class _Start(NamedTuple):
    """The network, whether it starts from weights, and whether it sees the images but once."""

    value: str
    reason: str
    flag: str
    tree: Tree
    trained: bool
    once: bool


def _start(facts: Facts, machine: Machine, said: Mapping[str, Any], seconds: float) -> _Start:
    net, init = _get(said, "net", "name"), _get(said, "net", "init")
    part = _get(said, "net", "train")
    if facts.kind != "images":
        long = facts.kind == "text" or (facts.kind == "vectors" and facts.dim >= 100)
        usual = "linear" if long else "mlp"
        what = {"table": f"a table of {facts.dim:,} columns", "text": "texts, which become long vectors"}
        what["vectors"] = f"vectors of {facts.dim:,} numbers"
        reason = _GIVEN if net else f"{what[facts.kind]}, of which a {usual} classifier takes most"
        return _Start(str(net or usual), reason, "--net", {}, False, False)
    if net is not None:
        return _Start(f"{net}, from nothing", _GIVEN, "--net", {}, False, False)
    if init is None and "init" in said.get("net", {}):
        return _Start("swift, from nothing", _GIVEN, "--net, --init", {"init": None}, False, False)
    if init is None and part is not None and machine.look is not None:
        init = START
    if init is not None:
        once = part in (None, "frozen")
        value = f"{init}, {'as it is: its features and a linear layer' if once else f'{part} of it learns'}"
        reason = "trained weights beat a short run from nothing" if once else _GIVEN
        tree = {"init": init, **({"train": "frozen"} if part is None else {})}
        return _Start(value, reason, "--set net.train=whole", tree, True, once)
    photographs = facts.side >= PHOTOGRAPH
    looking = facts.n * (machine.look or 0.0)
    if machine.look is not None and for_trained_eyes(facts) and looking <= MOST * seconds:
        reason = (
            f"images of {facts.side} px: it knows photographs" if photographs
            else f"{facts.n:,} images are too few to learn to see from"
        )  # fmt: skip
        return _Start(f"{START}, as it is, and a linear layer on its features", reason, "--net, --init", {}, True, True)
    if looking > MOST * seconds and for_trained_eyes(facts):
        reason = f"a trained network is better, but would look at {facts.n:,} images for {_duration(looking)}"
    elif photographs:
        reason = "no trained network is installed: pip install 'robust-temporal-ensembling[weights]' does much better"
    else:
        reason = f"{facts.n:,} images of {facts.side} px, which a small network learns best from nothing"
    return _Start("swift, as wide as the time allows, from nothing", reason, "--net, --init", {}, False, False)


def for_trained_eyes(facts: Facts) -> bool:
    """Whether a trained network that stays as it is sees such images better than a short run from nothing learns to."""
    return facts.side >= PHOTOGRAPH or (facts.channels == 3 and facts.n <= FEW)


def _method(said: Mapping[str, Any]) -> Line:
    name = _get(said, "method", "name")
    reason = _GIVEN if name else "it estimates how many labels are wrong, and suits itself to that"
    return Line("method", str(name or "auto"), reason, "--method")


def _images(
    facts: Facts, machine: Machine, said: Mapping[str, Any], start: _Start, usual: float
) -> tuple[Line, int | None]:
    flag = "--set views.size="
    if facts.kind == "text":
        model = _get(said, "data", "model")
        usual_model = "it is installed, and nothing is fetched"
        return Line(
            "texts", f"embedded by {model or MODEL}", _GIVEN if model else usual_model, "--set data.model="
        ), None
    if facts.kind != "images":
        return Line(
            "examples", "as they are, standardised", "no number should count for its unit", "--set views."
        ), None
    if (given := _get(said, "views", "size")) is not None:
        return Line("images", f"{given} px", _GIVEN, flag), None
    if start.trained:
        look = machine.look or 96 * 96 * 5e-7
        largest = next((side for side in SIDES if side >= facts.side), SIDES[-1])
        there_is_time = [
            side for side in SIDES
            if side <= largest and facts.n * look * (side / SIDES[0]) ** 2 <= LOOKING * usual
        ]  # fmt: skip
        side = max(there_is_time, default=SIDES[0])
        took = facts.n * look * (side / SIDES[0]) ** 2
        reason = f"all are looked at in about {_duration(took)}"
        if side < largest:
            reason += f"; {largest} px would take too long"
        elif largest < SIDES[-1]:
            reason += f"; the pictures have but {facts.side} px"
        return Line("images", f"{side} px", reason, flag), side
    if facts.alike and facts.side <= 2 * MIXED:
        return Line("images", f"{facts.side} px", "as they are", flag), None
    return Line("images", f"{MIXED} px", "larger ones cost more time than they bring from nothing", flag), MIXED


def _batch(facts: Facts, preset: str) -> tuple[int | None, str]:
    usual = 128 if preset == "laptop" else 256
    most = max(1, facts.n // 4)
    if most < usual:
        return most, f"{facts.n:,} examples: at least four steps in an epoch"
    return None, "as measured with this preset"


def _precision(preset: str, machine: Machine, said: Mapping[str, Any]) -> str:
    given = _get(said, "train", "precision")
    if given is not None:
        return str(given)
    return "bf16, faster here" if preset == "laptop" and machine.half else "fp32"


def held_out(facts: Facts, said: Mapping[str, Any]) -> tuple[Tree, str]:
    """The settings that hold labels out where there is no test set, and a sentence that says so."""
    if facts.tested or facts.n < LEAST or _get(said, "train", "holdout") is not None:
        return {}, ""
    return {"train": {"holdout": HELD}}, (
        f"There is no test set: {round(HELD * facts.n):,} of the {facts.n:,} labels are held out, noisy as they are, "
        "to select and to report by (--set train.holdout=0 trains on all)."
    )


def _time(
    facts: Facts,
    machine: Machine,
    start: _Start,
    preset: str,
    side: int | None,
    seconds: float | None,
    epochs: int | None,
    said: Mapping[str, Any],
) -> tuple[Line, float | None, int | None]:
    """The line, the seconds of a run by the clock, and the epochs of another one."""
    epochs = epochs or _get(said, "train", "epochs")
    if epochs is not None:
        return Line("time", f"{epochs} epochs", _GIVEN, "--epochs, --budget"), None, None
    if seconds is not None:
        what = "at most " if preset != "laptop" else ""
        return Line("time", what + _duration(seconds), _GIVEN, "--budget"), seconds, None
    if preset != "laptop":
        passes = 20 if preset == "features" else vector_epochs(facts.n)
        foreseen = ROW * passes * facts.n * max(1.0, facts.dim / 1000)
        if start.once:
            foreseen += facts.n * (machine.look or 5e-3) * ((side or SIDES[-1]) / SIDES[0]) ** 2
        if foreseen <= 2 * USUAL:
            value = f"{passes} epochs, about {_duration(foreseen)} in all"
            line = Line("time", value, "a small network learns no more after that", "--epochs, --budget")
            return line, None, passes if passes != VECTOR_EPOCHS else None
        return Line("time", _duration(2 * USUAL), "for more: --budget 1h", "--budget"), 2 * USUAL, None
    pixels = (side or facts.side or MIXED) ** 2
    step = max(STEP, 128 * FLOPS * pixels / (EFFICIENCY * machine.speed))
    foreseen = PASSES * step * facts.n / 128
    if foreseen <= USUAL:
        value = f"{PASSES} epochs, about {_duration(foreseen)}"
        return (
            Line("time", value, "enough for so few images; for more: --epochs 200", "--epochs, --budget"),
            None,
            PASSES,
        )
    return Line("time", _duration(USUAL), "a first result; for more: --budget 1h", "--budget"), USUAL, None


def vector_epochs(n: int) -> int:
    """Epochs of a run on n vectors: as many steps as pay, and no more."""
    return max(FEWEST, min(VECTOR_EPOCHS, round(VECTOR_EPOCHS * MANY_VECTORS / n)))


def _get(tree: Mapping[str, Any], section: str, key: str) -> Any:
    table = tree.get(section)
    return table.get(key) if isinstance(table, Mapping) else None


def _duration(seconds: float) -> str:
    """Rounded as one would say it: 40 s, 3 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds, -1) if seconds > 15 else round(seconds)):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
