"""Cross-fitting: networks that each leave out a part of the examples, so that each example has some that never saw it.

    first    L = - mean log sum_a p(a | x) T[a, y]                 the likelihood of the labels under the noise matrix T
    then     L = - mean sum_a r_a log p(a | x)                     r: what is believed of the label,
             r_a = p'(a | x) T[a, y] / sum_b p'(b | x) T[b, y]     by the network p' that never learnt the example

A small network on vectors costs next to nothing, so there can be several: `networks` parts times `strengths` of weight
decay. The mean over parts is steadier than any of them. What is said of examples that were not learnt has nothing
memorised: by that the noise is estimated, the strength chosen, the temperature set, and labels are judged. The
likelihood of held-out labels, as they were given, decides; no true label is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn, vmap
from torch.func import functional_call, stack_module_state

from rte.parts.ema import EMA
from rte.parts.losses import log_mean_probabilities, probabilities, soft_cross_entropy
from rte.parts.temperature import fit_temperature
from rte.parts.transition import (
    believed,
    confident_matrix,
    confident_noise,
    log_joint,
    log_likelihood,
    log_matrix,
    spread,
    symmetric_matrix,
)
from rte.recipes.policy import ASSUMED, EVEN, LOOKS

Predict = Callable[[Tensor], Tensor]
Sweep = Callable[[Predict], Tensor]
VECTOR = 2
"""Dimensions of a bias, (M, D), where those of M networks are one tensor."""


class Stack(nn.Module):
    """Networks built alike, computed as one: x (B, D) -> logits (M, B, K). Their tensors are (M, ...)."""

    def __init__(self, nets: Sequence[nn.Module]) -> None:
        super().__init__()
        parameters, buffers = stack_module_state(list(nets))
        self._alike = [deepcopy(nets[0]).to("meta")]  # in a list, it is no part of this module
        self._names = {name: name.replace(".", "-") for name in (*parameters, *buffers)}
        for name, value in parameters.items():
            self.register_parameter(self._names[name], nn.Parameter(value.detach()))
        for name, value in buffers.items():
            self.register_buffer(self._names[name], value)

    def forward(self, x: Tensor) -> Tensor:
        net = self._alike[0].train(self.training)
        tensors = {name: getattr(self, own) for name, own in self._names.items()}
        found: Tensor = vmap(lambda own: functional_call(net, own, (x,)), randomness="different")(tensors)
        return found


class SideBySide(nn.Module):
    """Networks that see the same examples: x -> their logits (R, M, B, K), of R strengths of weight decay and M parts.

    `kept` is -1, or the one strength whose networks go on: R is 1 from then on.
    """

    kept: Tensor

    def __init__(self, build: Callable[..., nn.Module], parts: int, decays: Sequence[float]) -> None:
        super().__init__()
        self.decays = tuple(decays)
        self.stacks = nn.ModuleList(
            Stack([build(k * parts + m) for m in range(parts)]) for k in range(len(self.decays))
        )
        self.register_buffer("kept", torch.tensor(-1))

    def forward(self, x: Tensor) -> Tensor:
        kept = int(self.kept)
        return torch.stack([stack(x) for stack in (self.stacks if kept < 0 else [self.stacks[kept]])])

    def decayed(self) -> list[tuple[list[nn.Parameter], float]]:
        """Parameters with what their weight decay is multiplied by; biases have none."""
        found = []
        for stack, decay in zip(self.stacks, self.decays, strict=True):
            weights = [p for p in stack.parameters() if p.ndim > VECTOR]
            found += [(weights, decay), ([p for p in stack.parameters() if p.ndim <= VECTOR], 0.0)]
        return found


class Found(NamedTuple):
    """What labels say of predictions that have not seen them: noise matrix, temperature, and mean -log likelihood."""

    log_T: Tensor
    temperature: float
    cost: float


class CrossFit(nn.Module):
    """Who learns what, and what is known of the labels.

    Example i is never learnt by the networks of part `left_out[i]` (N,). What is known is in buffers, so that a resumed
    run goes on with it: the noise matrix T (K, K), the `best` strength and its temperature, how many `looks` were
    taken, and `targets` (N, K), once there are some.
    """

    left_out: Tensor
    log_T: Tensor
    temperature: Tensor
    best: Tensor
    looks: Tensor
    targets: Tensor

    def __init__(self, examples: int, classes: int, parts: int) -> None:
        super().__init__()
        self.parts = parts
        self.register_buffer("left_out", torch.randperm(examples) % parts, persistent=False)
        self.register_buffer("log_T", log_matrix(symmetric_matrix(ASSUMED, classes)))
        self.register_buffer("temperature", torch.ones(()))
        self.register_buffer("best", torch.tensor(0))
        self.register_buffer("looks", torch.tensor(0))
        self.register_buffer("targets", torch.zeros(0, classes))

    @property
    def settled(self) -> bool:
        """Whether there are targets, and one strength is left."""
        return len(self.targets) > 0

    def shares(self, i: Tensor) -> Tensor:
        """What the loss of each example i (B,) counts for each part (M, B): a mean over those that the part learns."""
        learns = self.left_out[i] != torch.arange(self.parts, device=i.device)[:, None]
        return learns / learns.sum(1, keepdim=True).clamp(min=1)

    def loss(self, logits: Tensor, i: Tensor, y: Tensor) -> Tensor:
        """The sum over networks of their objective, by logits (R, M, B, K) of examples i (B,) labelled y (B,)."""
        flat = logits.flatten(0, 2)
        times = len(flat) // len(y)
        if len(self.targets):
            each = soft_cross_entropy(flat, self.targets[i].repeat(times, 1))
        else:
            each = -log_likelihood(flat, y.repeat(times), self.log_T)
        return (self.shares(i) * each.view(logits.shape[:-1])).sum()

    def look(self, fraction: float, student: nn.Module, teacher: EMA, sweep: Sweep, y: Tensor) -> dict[str, float]:
        """If it is time, at that share of the run, estimate the noise anew; what was found.

        The last time, targets are made, and the networks of the best strength alone go on.
        """
        looks = sum(fraction >= look for look in LOOKS)
        if looks <= int(self.looks):
            return {}
        unseen = self._unseen(teacher, sweep)
        found = [judge(logits, y) for logits in unseen]
        best = self._choose(found)
        self.log_T.copy_(found[best].log_T)
        self.looks.fill_(looks)
        if looks == len(LOOKS):
            self.targets = log_joint(unseen[best] / found[best].temperature, y, self.log_T).softmax(1)
            for kept in (student.kept, teacher.module.kept):
                kept.fill_(best)  # type: ignore[operator]
        return {"noise": 1.0 - float(self.log_T.exp().diagonal().mean()), "strength": best}

    def calibrate(self, teacher: EMA, sweep: Sweep, y: Tensor) -> dict[str, float]:
        """Set the temperature by what networks say of examples that they have not learnt."""
        found = [judge(logits, y, self.log_T) for logits in self._unseen(teacher, sweep)]
        return {"temperature": found[self._choose(found)].temperature}

    def mean(self, logits: Tensor) -> Tensor:
        """Logits (R, M, B, K) of all networks -> those of the mean prediction of the best ones, (B, K)."""
        return log_mean_probabilities(list(self._own(logits) / self.temperature))

    def trust(self, teacher: EMA, sweep: Sweep, y: Tensor) -> Tensor:
        """The probability that labels y (N,) are right."""
        return believed(self._own(self._unseen(teacher, sweep)) / self.temperature, y, self.log_T)

    def _own(self, of_all: Any) -> Tensor:
        """Of what there is of each strength, what is of the best one, or of the one that is left."""
        found: Tensor = of_all[int(self.best) if len(of_all) > 1 else 0]
        return found

    def _choose(self, found: Sequence[Found]) -> int:
        """The strength by which labels are most likely, and its temperature."""
        best = min(range(len(found)), key=lambda k: found[k].cost)
        self.temperature.fill_(found[best].temperature)
        if len(found) > 1:
            self.best.fill_(best)
        return best

    def _unseen(self, predict: Predict, sweep: Sweep) -> list[Tensor]:
        """By strength what is said of the examples (N, K) by networks that have not learnt them."""
        at = 0

        def one(x: Tensor) -> Tensor:  # a sweep goes through the examples in the order of their index
            nonlocal at
            left_out = self.left_out[at : at + len(x)]
            at += len(x)
            found: Tensor = predict(x)[:, left_out, torch.arange(len(x), device=x.device)].transpose(0, 1)
            return found.flatten(1)

        found = sweep(one)
        return list(found.view(len(found), -1, len(self.log_T)).unbind(1))

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        if (found := state.get(prefix + "targets")) is not None:
            self.targets = torch.zeros_like(found, device=self.targets.device)
        super()._load_from_state_dict(state, prefix, *rest)


def judge(logits: Tensor, y: Tensor, log_T: Tensor | None = None) -> Found:
    """How well logits (N, K) foresee labels y (N,) that they have not seen, under T or, without one, an estimate."""
    if log_T is None:
        p, classes = probabilities(logits), logits.shape[1]
        noise, counts = confident_noise(p, y)
        even = spread(counts) >= EVEN * (classes - 1)
        T = symmetric_matrix(noise, classes) if even else confident_matrix(p, y, noise)
        log_T = log_matrix(T).to(logits.device)
    temperature = fit_temperature(logits, y, log_T)
    return Found(log_T, temperature, -float(log_likelihood(logits / temperature, y, log_T).mean()))
