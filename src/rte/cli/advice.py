"""What a run gets where nobody says anything, and the lines that say so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rte.data.types import Dataset
    from rte.run.choose import Choices

Tree = dict[str, Any]
OWN = ("digits",)
"""Data with a preset of their own, which is used where none is named."""


class Advisor:
    """Looks at the data of a run, once, and fills in what its user left open."""

    def __init__(self, data_dir: Path | None, seconds: float | None, epochs: int | None) -> None:
        self.data_dir, self.seconds, self.epochs = data_dir, seconds, epochs
        self.dataset: Dataset | None = None
        self.choices: Choices | None = None
        self.held = ""

    def __call__(self, preset: str | None, options: Tree, settings: Iterable[str]) -> tuple[str | None, Tree]:
        """The preset and the options with what was chosen beneath them.

        A preset that is named decides everything but whether labels are held out, if it says nothing of that.
        """
        from rte.config import merge, parse_override, read_preset, resolve
        from rte.run.build import load_dataset
        from rte.run.choose import held_out
        from rte.run.facts import choices_for, look_at

        said = options
        for text in settings:
            said = merge(said, parse_override(text))
        if said["data"]["name"] in OWN or int(os.environ.get("WORLD_SIZE", "1")) > 1:
            return preset, options  # processes that train together must not choose each for themselves
        config = resolve("default", {"data": said["data"]})
        if preset is not None:
            said = merge(read_preset(preset), said)
            if "holdout" in said.get("train", {}) or said["data"]["name"] not in FILES:
                return preset, options
        self.dataset = load_dataset(config, self.data_dir)
        if preset is not None:
            facts = look_at(self.dataset)
            tree, self.held = held_out(facts, said) if facts else ({}, "")
            return preset, merge(tree, options)
        device = str(said.get("train", {}).get("device", "auto"))
        choices = choices_for(self.dataset, said, seconds=self.seconds, epochs=self.epochs, device=device)
        if choices is None:
            return preset, options
        self.choices, self.held, self.seconds = choices, choices.holdout, choices.seconds
        tree = choices.tree
        if choices.shorter is not None and getattr(config.data, "shorter", 0) is None:
            tree = {**tree, "data": {"shorter": choices.shorter}}
            self.dataset = None  # to be opened anew, as the run reads it
        return choices.preset, merge(tree, options)

    def say(self) -> None:
        """Five lines: each choice, its reason, and what overrules it."""
        if self.choices is not None:
            from rte.report.choices import written

            for line in written(self.choices):
                print(line, file=sys.stderr)
        if self.held:
            print(self.held, file=sys.stderr)


FILES = ("folder", "table", "arrays", "hf", "tabular", "text")
"""Data that may have no test set."""
