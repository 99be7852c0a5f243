"""What the tests of methods are made of: small networks, batches without a loader, updates without a trainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rte.methods.base import Method, Predict, Progress, Sweep, Task, Update
from rte.nets import Net
from rte.views.batch import Batch, ViewPlan

K, SHAPE = 4, (2, 3, 3)
N = 12
Y = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 3, 2, 1, 0])


class Plain(Net):
    """A network for digits without batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh())
        self.head = nn.Linear(32, 10)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x)
        return features


class Small(Net):
    """A network for digits with what trips careless methods: batch norm, dropout, convolutions."""

    def __init__(self, shape: tuple[int, ...] = (1, 8, 8), classes: int = 10) -> None:
        super().__init__()
        conv = nn.Conv2d(shape[0], 16, 3, stride=2, padding=1)
        self.body = nn.Sequential(conv, nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(16, classes)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.dropout(self.body(x))
        return features


class Table(Net):
    """A network that is a table of logits (N, K): its input's first pixel is the number of a row.

    Which rows have a gradient shows which examples were learnt from.
    """

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.rows = nn.Parameter(logits.clone())
        self.head = nn.Identity()  # type: ignore[assignment]

    @property
    def width(self) -> int:
        return self.rows.shape[1]

    def features(self, x: Tensor) -> Tensor:
        return self.rows[x.flatten(1)[:, 0].round().long()]


def table(losses: Sequence[float], y: Tensor = Y) -> Table:
    """A table whose cross-entropy with the given labels is as told."""
    p = torch.exp(-torch.tensor(losses))
    rest = (1 - p) / (K - 1)
    probs = torch.where(nn.functional.one_hot(y, K).bool(), p[:, None], rest[:, None])
    return Table(probs.log())


def linear() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(SHAPE)), K))


class Normed(Net):
    """With batch normalisation, whose statistics tell who ran in which mode."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.Linear(int(np.prod(SHAPE)), 8)
        self.body = nn.Sequential(nn.Flatten(), layer, nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, K)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x)
        return features


def normed() -> Net:
    return Normed()


def task(
    build: Callable[[], nn.Module] | Sequence[nn.Module] = linear, y: Tensor = Y, trusted: Sequence[int] = ()
) -> Task:
    """A task whose networks are built, or are those of a list in turn."""
    made = build if callable(build) else iter(build).__next__
    return Task(y, K, lambda k=0: made(), torch.tensor(trusted, dtype=torch.int64))


def images(i: Sequence[int], view: int = 0) -> Tensor:
    """Some image of each example and view, (B, *SHAPE): always the same for the same pair."""
    rows = [np.random.default_rng([k, view]).normal(size=SHAPE) for k in i]
    return torch.tensor(np.array(rows), dtype=torch.float32)


def numbers(i: Sequence[int], view: int = 0) -> Tensor:
    """Images for a `Table`: every pixel of example i is the number i."""
    return torch.tensor(i, dtype=torch.float32)[:, None, None, None].expand(-1, *SHAPE)


def batch(
    i: Sequence[int],
    plan: ViewPlan | None = None,
    *,
    make: Callable[[Sequence[int], int], Tensor] = images,
    second: Batch | None = None,
    y: Tensor = Y,
) -> Batch:
    plan = plan or ViewPlan()
    views = torch.cat([make(i, view) for view in range(plan.total)])
    return Batch(views, y[list(i)], torch.tensor(list(i)), plan, second)


def at(epoch: int = 0, epochs: int = 10, **rest: Any) -> Progress:
    return Progress(epoch, epochs, **rest)


def sgd(method: Method, lr: float = 0.1) -> Update:
    """As the trainer updates: one optimiser of all weights, with momentum and weight decay."""
    optimizer = torch.optim.SGD(method.parameters(), lr=lr, momentum=0.9, weight_decay=0.1)

    def update(loss: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return update


def sweep(method: Method, make: Callable[[Sequence[int], int], Tensor] = images, n: int = N) -> Sweep:
    """Outputs on all examples, as the trainer makes them."""

    def run(predict: Predict, *, reported: bool = False) -> Tensor:
        before = method.training
        method.eval()
        with torch.no_grad():
            out = predict(make(range(n), 0))
        method.train(before)
        return out

    return run


def copy_state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(module: nn.Module, before: dict[str, Tensor]) -> set[str]:
    """The names of what differs from an earlier state."""
    return {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}


def array(values: Tensor) -> Any:
    return values.detach().double().numpy()


def number(value: Tensor | float) -> float:
    """A term of an objective, as a plain number."""
    return float(torch.as_tensor(value).detach())
