"""Noisy cross-validation (Chen 2019): labels that networks predict which have not seen them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rte.parts.losses import cross_entropy

CANDIDATE, SELECTED, DROPPED = range(3)
"""What becomes of an example."""
HARD, MEDIUM = 0.6, 0.3
"""Shares of wrong labels above which a network's best epoch counts in one or two iterations only, else in four."""


def rate_from_agreement(agreement: float, classes: int) -> float:
    """The share eps of wrong labels, from how often a held-out network that learnt such labels predicts the given one.

    Such a network errs as its labels do. So both are right, or name the same wrong class, with probability
    (1 - eps)^2 + eps^2 / (K - 1), for symmetric noise; the smaller solution, at most 1 - 1/K.
    """
    most = 1.0 - 1.0 / classes
    return most * (1.0 - math.sqrt(max(0.0, (agreement * classes - 1.0) / (classes - 1.0))))


def rate_after_selection(eps: float, classes: int, *, symmetric: bool) -> float:
    """The share of wrong labels among those that agree: eps^2 / (eps^2 + c (1 - eps)^2), c = K - 1, or 1 for a pair."""
    wrong, right = eps**2, (classes - 1 if symmetric else 1) * (1.0 - eps) ** 2
    return wrong / (wrong + right)


class CrossValidation(nn.Module):
    """Which examples are selected, and who has seen which of the others.

    group (N,): CANDIDATE, SELECTED or DROPPED. part (N,): of a candidate the network that learns it, 0 or 1, else -1;
    the other one says whether it agrees with the label, and its loss. `eps` is the share of wrong labels. seen (N,):
    who is learnt in an epoch after the selection.
    """

    group: Tensor
    part: Tensor
    agrees: Tensor
    losses: Tensor
    best: Tensor
    eps: Tensor
    iteration: Tensor
    seen: Tensor

    def __init__(self, n: int, *, symmetric: bool) -> None:
        super().__init__()
        self.symmetric = symmetric
        self.register_buffer("group", torch.full((n,), CANDIDATE))
        self.register_buffer("part", torch.arange(n) % 2)
        self.register_buffer("agrees", torch.zeros(n, dtype=torch.bool))
        self.register_buffer("losses", torch.zeros(n))
        self.register_buffer("best", torch.full((2,), -1.0))
        self.register_buffer("eps", torch.tensor(0.0))
        self.register_buffer("iteration", torch.tensor(0))
        self.register_buffer("seen", torch.ones(n, dtype=torch.bool))

    @property
    def hard(self) -> bool:
        """Whether the noise is such that good epochs are few."""
        return not self.symmetric or float(self.eps) > HARD

    def among(self, group: int) -> Tensor:
        """The indices of a group."""
        return (self.group == group).nonzero().squeeze(1)

    def learnt_by(self, network: int) -> Tensor:
        """The indices that a network learns: what is selected, and its half of the candidates."""
        return ((self.group == SELECTED) | (self.part == network)).nonzero().squeeze(1)

    def halve(self) -> None:
        """Deal the candidates out at random (from torch's global generator); nothing is known of them yet."""
        candidates = self.among(CANDIDATE)
        order = torch.randperm(len(candidates)).to(candidates.device)
        self.part.fill_(-1)
        self.part[candidates[order]] = torch.arange(len(order), device=order.device) * 2 // max(1, len(order))
        self.agrees.fill_(False)
        self.best.fill_(-1.0)

    def validate(self, network: int, logits: Tensor, y: Tensor) -> None:
        """Keep what a network says (N, K) of the half it has not seen: in its best epoch; in late iterations, last."""
        held = self.part == 1 - network
        agrees = (logits.argmax(1) == y)[held]
        score = agrees.float().mean()
        sought = 1 if self.hard else 2 if float(self.eps) > MEDIUM else 4
        if score > self.best[network] or int(self.iteration) >= sought:
            self.best[network], self.agrees[held] = score, agrees
            self.losses[held] = cross_entropy(logits, y)[held].to(self.losses.dtype)

    def select(self, classes: int, rate: float | None) -> None:
        """Take the candidates whose label agrees; drop those of largest loss, where noise is symmetric.

        Of each half, min(2, eps / (1 - eps)) times as many are dropped as were taken. eps is `rate`, or found in the
        first iteration.
        """
        if rate is not None:
            self.eps.fill_(rate)
        elif self.iteration == 0:
            self.eps.fill_(rate_from_agreement(float(self.agrees.float().mean()), classes))
        eps = float(self.eps)
        for k in range(2):
            held = (self.part == k).nonzero().squeeze(1)
            taken = held[self.agrees[held]]
            number = min(len(held), int(min(2.0, eps / (1.0 - eps)) * len(taken))) if self.symmetric else 0
            self.group[held[self.losses[held].topk(number).indices]] = DROPPED
            self.group[taken] = SELECTED
        self.iteration += 1

    def draw(self, *, wider: bool) -> None:
        """Set who is seen: what is selected; if `wider`, also candidates at random, at most half as many.

        Everybody, if nothing was selected.
        """
        self.seen.copy_(self.group == SELECTED)
        selected = int(self.seen.sum())
        if selected == 0:
            self.seen.fill_(True)
        elif wider:
            others = self.among(CANDIDATE)
            order = torch.randperm(len(others)).to(others.device)
            self.seen[others[order[: selected // 2]]] = True

    def remaining(self, classes: int) -> float:
        """eps_S: the share of wrong labels expected among what was selected."""
        return rate_after_selection(float(self.eps), classes, symmetric=self.symmetric)
