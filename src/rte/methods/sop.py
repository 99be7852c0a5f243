"""SOP (Liu 2022): explain wrong labels by parameters of each example, kept sparse by how slowly they grow from zero.

    L_net = -log q_y,            q = normalise(clip(p + U e_y - V, 1e-4))           U, V constant
    U     = clip(u^2, 0, 1),     V_k = clip(v_k^2, 0, 1) for k != y, 0 for k = y

u (N,) descends on -log q_y, v (N, K) on the squared error ||e_argmax(p) + U e_y - V - e_y||^2, in which nothing else
moves. So V takes over what the network predicts instead of the label, U what is missing at the label, and where they
have grown the network has nothing left to memorise. SOP+ adds, weighted, KL(p(x) || p(A(x))) and the class balance.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rte.methods.base import Method, Progress, Sweep, Task, Terms
from rte.parts.losses import class_balance, divergence, probabilities
from rte.settings import Settings, setting
from rte.views.batch import Batch, ViewPlan

LEAST = 1e-4
"""Probabilities are no smaller once the noise has been added."""
START = 1e-8
"""u and v at first: what is not needed never grows out of it."""
BATCH, EPOCHS = 128, 120
"""Of the authors' runs of SOP, for which their learning rates of u and v were found."""


class SparseOverParameterization(Method):
    """A network, and a model of the noise of each single label."""

    summary = "SOP: cross-entropy, with sparse parameters of each example that explain a wrong label"
    paper = "Liu et al., 2022"

    class Config(Settings):
        rate_u: float = setting(
            10.0, "learning rate of u in the authors' runs; 1 for CIFAR-100", ge=0.0, search=(0.1, 100)
        )
        rate_v: float = setting(
            10.0, "learning rate of v in the authors' runs; 100 for asymmetric CIFAR-100", ge=0.0, search=(1, 1000)
        )
        consistency: float = setting(0.0, "weight of the KL divergence of a strong view; SOP+: 0.9", ge=0.0)
        balance: float = setting(0.0, "weight of the term that spreads predictions over classes; SOP+: 0.1", ge=0.0)

    cfg: Config
    tables = ("u", "v")
    u: Tensor
    v: Tensor

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()
        self.register_buffer("u", torch.full((len(task.y),), START))
        self.register_buffer("v", torch.full((len(task.y), task.classes), START))

    def views(self, t: Progress) -> ViewPlan:
        return ViewPlan(strong=int(self.cfg.consistency > 0))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        cfg, logits = self.cfg, self.net(batch.views)
        p, *strong = torch.split(probabilities(logits), len(batch))
        U, V = self._noise(batch, self.u[batch.i], self.v[batch.i])
        q = _explained(p, U, V)
        task = -_at(q, batch.y).log().mean()
        terms: Terms = {"task": task, "explained": _at(U, batch.y).mean()}
        loss = task
        if cfg.balance:
            terms["balance"] = balance = class_balance(q)
            loss = loss + cfg.balance * balance
        if strong:
            terms["consistency"] = apart = divergence(p.detach(), strong[0]).mean()
            loss = loss + cfg.consistency * apart
        self._descend(batch, p.detach(), EPOCHS / BATCH / t.epochs)
        return {"loss": loss, **terms}

    def _noise(self, batch: Batch, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """U e_y and V, both (B, K)."""
        y = F.one_hot(batch.y, self.classes).to(v.dtype)
        return u.square().clamp(max=1)[:, None] * y, v.square().clamp(max=1) * (1 - y)

    @torch.enable_grad()
    def _descend(self, batch: Batch, p: Tensor, share: float) -> None:
        """One step of u and v of the batch's examples, each by the loss of its own example alone."""
        u, v = self.u[batch.i].requires_grad_(), self.v[batch.i].requires_grad_()
        U, V = self._noise(batch, u, v)
        (slope_u,) = torch.autograd.grad(-_at(_explained(p, U, V.detach()), batch.y).log().sum(), u)
        y, hard = (F.one_hot(k, self.classes).to(p.dtype) for k in (batch.y, p.argmax(1)))
        (slope_v,) = torch.autograd.grad((hard + U.detach() - V - y).square().sum(), v)
        cfg = self.cfg  # beyond 1 nothing would call u and v back
        self.u[batch.i] = (u.detach() - cfg.rate_u * share * slope_u).clamp(-1, 1)
        self.v[batch.i] = (v.detach() - cfg.rate_v * share * slope_v).clamp(-1, 1)

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.net(x)
        return logits

    def trust(self, sweep: Sweep) -> Tensor:
        """1 - the larger of U and the largest V: what of the label needs no noise to be explained."""
        return 1 - torch.maximum(self.u, self.v.abs().max(1).values).square().clamp(max=1)


def _explained(p: Tensor, U: Tensor, V: Tensor) -> Tensor:
    """The distribution of the given label, (B, K): the network's, and the noise of this example."""
    q = (p + U - V).clamp(min=LEAST)
    return q / q.sum(1, keepdim=True)


def _at(values: Tensor, y: Tensor) -> Tensor:
    return values.gather(1, y[:, None]).squeeze(1)
