"""Which runs a comparison has.

Every method gets the same data, noise, views, network, optimiser, seeds, and epochs or time. With several `rates` each
method first trains once for each of them, with the first seed; the factor with the best accuracy on held-out *noisy*
labels is used for its other seeds. A run with that seed and factor is not repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rte import registry
from rte.config import RunConfig
from rte.errors import ConfigError
from rte.parts.schedules import scaled

HOLDOUT = 0.1
"""Share of the noisy training set that rates are chosen on, where the settings keep nothing aside."""


@dataclass(frozen=True)
class Run:
    """One training run of a comparison; `folder` is its name in the comparison's folder."""

    config: RunConfig
    factor: float
    folder: str


@dataclass(frozen=True)
class Comparison:
    """What is compared: the settings of each method with the first seed, and what is varied."""

    configs: tuple[RunConfig, ...]
    seeds: int = 1
    rates: tuple[float, ...] = (1.0,)
    budget: float | None = None

    def run(self, config: RunConfig, factor: float, seed: int) -> Run:
        """A method's run with this factor of the learning rate; seeds count from that of the settings."""
        several = f"-rate{factor:g}" if len(self.rates) > 1 else ""
        number = config.seed + seed
        lr = config.train.lr if factor == 1.0 else scaled(config.train.lr, factor)
        trained = replace(config.with_train(lr=lr), seed=number)
        return Run(trained, factor, f"{label(config)}{several}-s{number}")

    def trials(self, config: RunConfig) -> list[Run]:
        """The runs that choose a method's learning rate; its first run where there is nothing to choose."""
        return [self.run(config, factor, 0) for factor in self.rates]

    def rest(self, config: RunConfig, factor: float) -> list[Run]:
        """The runs with all further seeds."""
        return [self.run(config, factor, seed) for seed in range(1, self.seeds)]

    def tree(self) -> dict[str, Any]:
        """As plain values; `from_tree` of them gives an equal comparison."""
        return {
            "seeds": self.seeds,
            "rates": list(self.rates),
            "budget": self.budget,
            "methods": [config.tree() for config in self.configs],
        }

    @classmethod
    def from_tree(cls, tree: dict[str, Any], *, trust_code: bool = False) -> Comparison:
        """`trust_code`: code that is not part of the package, and that the settings name, may run."""
        configs = tuple(RunConfig.from_tree(each, trust_code) for each in tree["methods"])
        return cls(configs, int(tree["seeds"]), tuple(map(float, tree["rates"])), tree["budget"])


def plan(
    names: Sequence[str],
    configure: Callable[[str], RunConfig],
    *,
    group: bool = False,
    seeds: int = 1,
    rates: str | None = None,
    budget: float | None = None,
) -> tuple[Comparison, list[str]]:
    """A comparison, and a sentence about the methods of a `group` that cannot be part of it.

    configure: a method's settings by its name.
    """
    configs = [configure(name) for name in names]
    for k, config in enumerate(configs):
        if label(config) in map(label, configs[:k]):
            raise ConfigError(f"--methods names {label(config)} twice; name each method once.")
    notes = []
    if group and not configs[0].train.trusted:
        trusting = [c for c in configs if "trusted examples" in registry.method(c.method_name).needs]
        configs = [c for c in configs if c not in trusting]
        if trusting:
            left_out = ", ".join(c.method_name for c in trusting)
            notes.append(f"left out: {left_out}; they need trusted examples, such as --set train.trusted=100")
    factors = parse_rates(rates)
    if len(factors) > 1:
        configs = [c if c.train.holdout else c.with_train(holdout=HOLDOUT) for c in configs]
    return Comparison(tuple(configs), seeds, factors, budget), notes


def parse_rates(text: str | None) -> tuple[float, ...]:
    """Factors of the learning rate, from "0.3,1,3"."""
    if text is None:
        return (1.0,)
    try:
        factors = tuple(float(part) for part in text.split(","))
    except ValueError:
        factors = ()
    if not factors or not all(0 < factor < float("inf") for factor in factors) or len(set(factors)) < len(factors):
        raise ConfigError(f"--rates {text}: write different factors of the learning rate, such as 0.3,1,3.")
    return factors


def best(values: Sequence[tuple[float, float | None]]) -> float | None:
    """The factor of the highest accuracy on held-out noisy labels, the one nearest to 1 if equal; None: all failed."""
    done = [(value, -abs(math.log(factor)), factor) for factor, value in values if value is not None]
    return max(done)[2] if done else None


def label(config: RunConfig) -> str:
    """What a method is called in tables and folders."""
    return config.method_label
