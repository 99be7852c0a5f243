"""The optimiser of a run: rates set in every step, gradients collected over pieces and processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from rte.methods.base import Clock, Group, Method
from rte.nets.base import Net
from rte.train.config import TrainConfig
from rte.train.distributed import World
from rte.train.muon import Muon

ALL = 1 - 1e-4
"""The mean of ones over the processes, as far as it is rounded."""


class Optimizer:
    """Moves the parameters of a method; what it must remember is in `state_dict`."""

    def __init__(self, cfg: TrainConfig, method: Method, world: World) -> None:
        self.cfg, self.method, self.world = cfg, method, world
        self.groups = [part for group in method.groups() for part in _parts(group, method) if len(part.parameters)]
        self.torch = self._build()
        self.owners = [self._owner(group["params"][0]) for group in self.torch.param_groups]
        self.fine = torch.ones(1)  # where the losses of this step's pieces are finite
        self.bad: Tensor | None = None  # whether a loss or gradient was not finite since it was last asked
        self.lr = 0.0

    def _build(self) -> torch.optim.Optimizer:
        cfg, groups = self.cfg, []
        for group in self.groups:
            own: dict[str, Any] = {"params": list(group.parameters)}
            momentum = cfg.momentum if group.momentum is None else group.momentum
            if cfg.optimizer == "adam":
                own["betas"] = (momentum, 0.999)
            elif cfg.optimizer == "sgd":
                own |= {"momentum": momentum, "nesterov": cfg.nesterov and momentum > 0}
            elif group.momentum is not None:
                own["momentum"] = group.momentum
            groups.append(own)
        if cfg.optimizer == "adam":
            return torch.optim.Adam(groups, lr=1.0)
        if cfg.optimizer == "muon":
            return Muon(groups, lr=1.0, momentum=cfg.momentum)
        return torch.optim.SGD(groups, lr=1.0)

    def _owner(self, parameter: nn.Parameter) -> Group:
        return next(group for group in self.groups if any(parameter is own for own in group.parameters))

    def set_rates(self, clock: Clock) -> float:
        """Learning rate and weight decay of the step to come; returns the learning rate."""
        self.lr, decay = self.cfg.lr.at(clock.moment) * clock.rate, self.cfg.weight_decay.at(clock.moment)
        for own, group in zip(self.owners, self.torch.param_groups, strict=True):
            group["lr"], group["weight_decay"] = self.lr * own.rate, decay * own.decay
        return self.lr

    def restart(self, parameters: Iterable[nn.Parameter]) -> None:
        """Forget what is remembered of these parameters."""
        for parameter in parameters:
            self.torch.state.pop(parameter, None)

    def update(self, loss: Tensor, scale: float, *, first: bool, last: bool) -> None:
        """Add the gradient of `scale` * loss; with the last piece of a batch, make the step.

        Not under autocast, which would compute the optimiser's own products in half precision.
        """
        with torch.autocast(loss.device.type, enabled=False):
            if first:
                self.torch.zero_grad(set_to_none=True)
                self.fine = torch.ones(1, device=loss.device)
            self.fine *= loss.detach().isfinite()
            (loss * scale if scale != 1 else loss).backward()  # type: ignore[no-untyped-call]
            if last:
                self._step()
        if last and torch.is_autocast_enabled(loss.device.type):
            torch.clear_autocast_cache()  # of weights as they were before the step

    def _step(self) -> None:
        parameters = [p for p in self.method.parameters() if p.grad is not None]
        gradients = [p.grad for p in parameters if p.grad is not None]
        self.world.average([*gradients, self.fine])  # so that all processes know of a bad loss in one
        norm = torch.nn.utils.get_total_norm(gradients)
        bad = ~norm.isfinite() | (self.fine < ALL)
        self.bad = bad if self.bad is None else self.bad | bad
        if norm.device.type == "cpu" and bool(self.bad):
            return  # elsewhere nobody waits for the answer: nothing is saved before `broken` was asked
        if self.cfg.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.cfg.clip, norm)
        self.torch.step()

    @property
    def broken(self) -> bool:
        """Whether a loss or a gradient was not finite; waits for the device."""
        return self.bad is not None and bool(self.bad)


def _parts(group: Group, method: Method) -> list[Group]:
    """A group, parted where networks that start from trained weights learn more slowly than their heads."""
    nets = (net for net in method.modules() if isinstance(net, Net) and net.share != 1.0)
    shares = {id(p): net.share for net in nets for p in net.backbone()}
    parts: dict[float, list[nn.Parameter]] = {}
    for p in group.parameters:
        parts.setdefault(shares.get(id(p), 1.0), []).append(p)
    return [replace(group, parameters=each, rate=share * group.rate) for share, each in parts.items()]
