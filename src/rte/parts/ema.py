"""A teacher whose weights are the moving average of another network's."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from rte.errors import ConfigError


class EMA(nn.Module):
    """theta' <- a theta' + (1 - a) theta: a frozen copy of a network, in evaluation mode, that follows it.

    Floating-point buffers (batch-norm statistics) are averaged like the weights, all others are copied. With `warmup`,
    a = min(decay, (1 + k) / (10 + k)) for the k-th update, counted from 0, so that a short run soon leaves its
    initial weights behind. `state_dict()` holds the copy and k: restoring it continues exactly. `decay` may be set
    at any time.
    """

    updates: Tensor

    def __init__(self, module: nn.Module, decay: float = 0.99, warmup: bool = False) -> None:
        super().__init__()
        self.decay = _checked(decay)
        self.warmup = warmup
        self.module = copy.deepcopy(module).requires_grad_(False)
        if getattr(module, "_compiled_call_impl", None) is not None:  # a copy is not compiled
            self.module.compile()
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self._known: int | None = 0  # the same number, without waiting for the device
        self.eval()

    @torch.no_grad()
    def update(self, module: nn.Module, decay: float | None = None) -> None:
        """Move towards `module`, which must be built like the original; `decay` replaces the usual one this once."""
        a = self.decay if decay is None else _checked(decay)
        if self.warmup:
            a = min(a, (1 + self._count) / (10 + self._count))
        ours, theirs = _tensors(self.module), _tensors(module)
        if [t.shape for t in ours] != [t.shape for t in theirs]:
            raise ConfigError("EMA.update got a network of another shape; give it the network that EMA was made from.")
        pairs = list(zip(ours, theirs, strict=True))
        moving = [pair for pair in pairs if pair[0].is_floating_point()]
        if moving:
            torch._foreach_lerp_([our for our, _ in moving], [their for _, their in moving], 1.0 - a)
        for our, their in pairs:
            if not our.is_floating_point():
                our.copy_(their)
        self.updates += 1
        self._known = self._count + 1

    @property
    def _count(self) -> int:
        if self._known is None:
            self._known = int(self.updates)
        return self._known

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state, prefix, *rest)
        self._known = None

    @torch.no_grad()
    def restart(self, module: nn.Module) -> None:
        """Follow `module`, built like the original, from where it is now, as if newly made."""
        self.module.load_state_dict(module.state_dict())
        self.updates.zero_()
        self._known = 0

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The copy's output, without gradient."""
        return self.module(*args, **kwargs)

    def train(self, mode: bool = True) -> EMA:
        """Stay in evaluation mode, whatever a parent module asks for."""
        return super().train(False)


def mean_at_first(decay: float, step: int) -> float:
    """min(decay, 1 - 1/(step + 2)) for steps 0, 1, ...: the average is the plain mean of all weights until `decay`."""
    return min(decay, 1.0 - 1.0 / (step + 2))


def _tensors(module: nn.Module) -> list[Tensor]:
    """All parameters and buffers; tied ones once, so that they move once."""
    return [*module.parameters(), *module.buffers()]


def _checked(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ConfigError(f"the decay of a moving average is {decay}; give a number from 0 to 1.")
    return decay
