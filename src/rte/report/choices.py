"""What was chosen where nobody said anything, in words; and the choices of an estimator."""

from __future__ import annotations

from rte.config import Tree, merge
from rte.data.types import Dataset
from rte.run.choose import Choices
from rte.run.facts import choices_for


def written(choices: Choices) -> list[str]:
    """The choices as lines of text."""
    return [f"{line.what:<8} {line.value}: {line.reason} [{line.flag}]" for line in choices.lines]


def chosen(
    dataset: Dataset, options: Tree, seconds: float | None, epochs: int | None, device: str, *, verbose: bool
) -> tuple[str, Tree, float | None]:
    """The preset, the options with what was chosen beneath them, and the seconds to train for; nothing is held out."""
    said = merge({"train": {"holdout": 0.0}}, options)
    choices = choices_for(dataset, said, seconds=seconds, epochs=epochs, device=device)
    if choices is None:
        return "vectors", options, seconds  # of tables
    if verbose:
        print("\n".join(written(choices)))
    return choices.preset, merge(choices.tree, options), choices.seconds
