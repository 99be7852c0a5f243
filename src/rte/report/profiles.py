"""What each method is like, asked of the method itself on a toy task: networks, cost of a step, memory, needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rte import code, registry
from rte.errors import UserError
from rte.methods.base import Method, Predict, Progress, Task
from rte.nets import Net

EXAMPLES, CLASSES, PIXELS = 211, 10, 64
"""Of the toy task; no other dimension of it is as large as the number of examples."""
EPOCHS, MOMENTS = 100, 20
"""Length of its run, and at how many of its epochs a method is asked."""
PLAIN = 3.0
"""Forward passes that an example costs a method with one network, one view and a backward pass: `ce`."""
TRUSTED = 20


@dataclass(frozen=True)
class Profile:
    """A method in figures. `step`: least and greatest cost over a run, relative to plain cross-entropy."""

    name: str
    summary: str
    networks: int
    copies: int
    step: tuple[float, float]
    bytes_per_example: float
    needs: tuple[str, ...]
    paper: str
    reproduced: bool

    def tree(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def profiles() -> list[Profile | tuple[str, str]]:
    """All methods in order of their names, then those of installed packages; (name, reason) for one that is broken."""
    own = registry.methods()
    found: list[Profile | tuple[str, str]] = [profile(name) for name in own]
    for name in code.installed("method"):
        if name not in own:
            try:
                found.append(profile(name))
            except UserError as error:
                found.append((name, str(error)))
            except Exception as error:  # of code that is not ours: the list is shown all the same
                found.append((name, str(code.blame(error, name))))
    return found


def profile(name: str) -> Profile:
    """One method with its default settings."""
    cls = registry.method(name, trusted=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        y = torch.arange(EXAMPLES) % CLASSES
        trusted = torch.arange(TRUSTED if "trusted examples" in cls.needs else 0)
        method = cls(cls.Config(), Task(y, CLASSES, lambda k=0: _Toy(), trusted))
        costs = [cost / PLAIN for cost in _costs(method, torch.randn(EXAMPLES, 1, 8, 8))]
    networks = [module for module in method.modules() if isinstance(module, Net)]
    trained = sum(any(p.requires_grad for p in net.parameters()) for net in networks)
    return Profile(
        name=name,
        summary=cls.summary,
        networks=trained,
        copies=len(networks) - trained,
        step=(round(min(costs), 2), round(max(costs), 2)),
        bytes_per_example=sum(tensor.nbytes for tensor in _tables(method)) / EXAMPLES,
        needs=tuple(cls.needs),
        paper=cls.paper,
        reproduced=cls.reproduced,
    )


def _costs(method: Method, x: Tensor) -> list[float]:
    """What an example costs in some steps of a run in which nothing is learnt, but all is decided as in training.

    What a method decides may take long, so it is spared where the cost of a step is always the same.
    """
    if type(method).cost is Method.cost and type(method).views is Method.views:
        return [float(method.cost(Progress(0, EPOCHS)))]

    def sweep(predict: Predict, *, reported: bool = False) -> Tensor:
        method.eval()
        with torch.no_grad():
            out = predict(x)
        method.train()
        return out

    costs = []
    for epoch in range(0, EPOCHS, EPOCHS // MOMENTS):
        t = Progress(epoch, EPOCHS, step=epoch)
        if "trusted examples" not in method.needs:  # a fit to them takes seconds, and changes no cost
            method.epoch_start(t, sweep)
        costs.append(float(method.cost(t)))
    return costs


def _tables(method: Method) -> list[Tensor]:
    """What a method keeps for each example, but for the given label itself."""
    held = {**dict(method.named_buffers()), **dict(method.named_parameters())}
    return [tensor for name, tensor in held.items() if name != "y" and EXAMPLES in tensor.shape]


class _Toy(Net):
    """A network for the toy task."""

    last_stage = ("body",)

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, 16), nn.ReLU())
        self.head = nn.Linear(16, CLASSES)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x)
        return features
