"""The systems that the paper compares with: our own run of each, beside the number that the paper quotes for it.

The quoted numbers come from many papers, with networks and schedules of their own; ours have the run's. Every method
has its authors' settings, those in epochs as shares of the run.
"""

from __future__ import annotations

from typing import Any

from rte.reproduce.define import Cell, Value

Changes = dict[str, Any]

SYMMETRIC: dict[str, tuple[Changes, tuple[Value, Value], tuple[Value, Value]]] = {
    # CIFAR-10 and CIFAR-100, each at 40 and 80 %; numbers of 80 % for GCE, MixUp and Meta-Learning, and GCE's of 40 %,
    # stand in parentheses in the paper: they were measured with less noise
    "Reed-Hard": ({"name": "bootstrapping", "kind": "hard"}, (69.66, None), (51.34, None)),
    "S-Model": ({"name": "s_model"}, (70.64, None), (49.10, None)),
    "MentorNet PD": ({"name": "mentornet"}, (77.0, 33.0), (56.0, 14.0)),
    "Forward T": ({"name": "forward"}, (83.25, 54.64), (31.05, 8.90)),
    "Open Set": ({"name": "open_set"}, (78.15, None), (None, None)),
    "Rand Weights": ({"name": "rand_weights"}, (86.06, None), (58.01, None)),
    "Bi-Level": ({"name": "bi_level"}, (89.0, None), (61.6, None)),
    "GCE (truncated)": ({"name": "truncated_gce"}, (87.12, 64.07), (61.77, 29.16)),
    "Co-Teaching": ({"name": "co_teaching"}, (81.85, 29.22), (55.95, 23.22)),
    "MixUp": ({"name": "mixup"}, (None, 71.6), (None, 30.8)),
    "SELFIE": ({"name": "selfie"}, (86.5, None), (62.9, None)),
    "RoG": ({"name": "rog"}, (81.83, None), (55.68, None)),
    "M-DYR-H": ({"name": "m_dyr"}, (None, 86.6), (None, 48.2)),
    "PENCIL": ({"name": "pencil"}, (None, None), (69.12, "fail")),
    "Meta-Learning": ({"name": "mlnt"}, (None, 77.4), (None, 42.4)),
    "SELF": ({"name": "self"}, (93.70, 69.91), (71.98, 42.09)),
    "DivideMix": ({"name": "dividemix"}, (94.9, 79.8), (75.2, 60.2)),
}
PATRINI: dict[str, tuple[Changes, Value]] = {
    "SELF": ({"name": "self"}, 89.07),
    "PENCIL": ({"name": "pencil"}, 91.16),
    # the authors' bonus for the entropy of predictions in the warm-up, where noise is asymmetric
    "DivideMix": ({"name": "dividemix", "entropy_weight": 1.0}, 93.40),
}
IMAGENET: dict[str, tuple[Changes, Value, Value]] = {  # top-1, top-5
    "MentorNet": ({"name": "mentornet"}, 65.1, 85.9),
    "SELF": ({"name": "self"}, 71.31, 89.92),
}
WEBVISION: dict[str, tuple[Changes, Value, Value]] = {
    "F-correction": ({"name": "forward"}, 57.36, 82.36),
    "D2L": ({"name": "d2l"}, 57.80, 81.36),
    "MentorNet": ({"name": "mentornet"}, 57.80, 79.92),
    "Decoupling": ({"name": "decoupling"}, 58.26, 82.26),
    "Co-teaching": ({"name": "co_teaching"}, 61.48, 84.70),
    "Iterative-CF": ({"name": "incv"}, 61.60, 84.98),
    "DivideMix": ({"name": "dividemix"}, 75.20, 90.84),
}
FOOD101N: dict[str, tuple[Changes, Value]] = {
    "Baseline": ({"name": "ce"}, 81.44),
    "CleanNet (hard)": ({"name": "cleannet", "weighting": "hard"}, 83.47),
    "CleanNet (soft)": ({"name": "cleannet", "weighting": "soft"}, 83.95),
    "Deep Self Learning": ({"name": "deep_self_learning"}, 85.11),
}
TRUSTED = "food101n_verified.txt"
"""Names of the images whose labels people have found right, a line each: docs/datasets/food101n.md makes it."""


def symmetric() -> tuple[Cell, ...]:
    """The rows of the main table."""
    return tuple(
        Cell(
            row,
            f"{title} {100 * ratio:g} %",
            {"noise": {"name": "symmetric", "ratio": ratio}, "method": method},
            {} if number is None else {"accuracy": number},
            data,
            laptop=data == "cifar10",
        )
        for row, (method, *quoted) in SYMMETRIC.items()
        for data, title, numbers in zip(("cifar10", "cifar100"), ("CIFAR-10", "CIFAR-100"), quoted, strict=True)
        for ratio, number in zip((0.4, 0.8), numbers, strict=True)
        if number is not None or data == "cifar10"
    )


def patrini() -> tuple[Cell, ...]:
    """The rows under Patrini's noise."""
    noise = {"name": "patrini-cifar10", "ratio": 0.4}
    return tuple(
        Cell(row, "40 %", {"noise": noise, "method": method}, {"accuracy": number})
        for row, (method, number) in PATRINI.items()
    )


def large(data: str, column: str) -> tuple[Cell, ...]:
    """The rows of ImageNet or WebVision."""
    rows = {"imagenet": IMAGENET, "webvision": WEBVISION}[data]
    return tuple(
        Cell(row, column, {"method": method}, {"accuracy": top1, "top5": top5}, data)
        for row, (method, top1, top5) in rows.items()
    )


def food101n() -> tuple[Cell, ...]:
    """The rows of Food-101N; CleanNet learns from labels that people have verified."""
    return tuple(
        Cell(
            row,
            "Food-101N",
            {"method": method, **({"train": {"trusted": TRUSTED}} if method["name"] == "cleannet" else {})},
            {"accuracy": number},
            "food101n",
        )
        for row, (method, number) in FOOD101N.items()
    )
