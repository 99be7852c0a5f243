"""Mistakes a user can mend. Each message is one sentence: what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake in what the user gave us; the command line prints it without a traceback and exits with 2."""


class ConfigError(UserError):
    """An unknown key, a value out of range, or settings that contradict each other."""


class Unsuitable(ConfigError):
    """A method that can do nothing with the network it is given; others can, so that a comparison goes on."""


class UntrustedCode(ConfigError):
    """Settings that name code outside the package, which nobody said may run."""


class DataError(UserError):
    """A dataset that is missing, damaged, or does not fit what was asked of it."""


class NoiseError(UserError):
    """A noise model that is no transition matrix, or labels it cannot be applied to."""


class CheckpointError(UserError):
    """A run folder or checkpoint that cannot be used."""


class TrainingError(UserError):
    """A run that cannot go on, such as one whose loss is no longer finite."""


class Found(UserWarning):
    """What was found out about the data by looking, which the user may want to overrule."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The end of an error sentence about an unknown name: the nearest right one, or all of them."""
    known = sorted(set(choices))
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"choose one of: {', '.join(known)}."


class InvalidData(DataError, ValueError):
    """A `DataError` for programs that expect a ValueError, as those of scikit-learn do."""


class InvalidConfig(ConfigError, ValueError):
    """A `ConfigError` for programs that expect a ValueError."""
