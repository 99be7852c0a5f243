"""A network's output on a whole set of examples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from rte.methods.base import Predict
from rte.views.loader import Loader


def outputs(
    model: nn.Module, predict: Predict, loader: Loader, *, batch: int, device: torch.device, mirror: bool = False
) -> Tensor:
    """`predict` on every un-augmented example, (N, K) float32 on the CPU, in index order; see `streamed`."""
    return all_outputs(model, [predict], loader, batch=batch, device=device, mirror=mirror)[0]


def all_outputs(
    model: nn.Module,
    predicts: Sequence[Predict],
    loader: Loader,
    *,
    batch: int,
    device: torch.device,
    mirror: bool = False,
) -> list[Tensor]:
    """Each of `predicts` on every un-augmented example, (N, K) float32 on the CPU; every example is read once."""
    parts = list(streamed(model, predicts, loader, batch=batch, device=device, mirror=mirror))
    return [torch.cat(of).clone() for of in zip(*parts, strict=True)]


def streamed(
    model: nn.Module,
    predicts: Sequence[Predict],
    loader: Loader,
    *,
    batch: int,
    device: torch.device,
    mirror: bool = False,
) -> Iterator[list[Tensor]]:
    """What `all_outputs` returns, batch by batch (B, K), so that they need not all be kept.

    With `mirror`, where the viewer has a second look at examples (`views.mirror`: the mirror image), the logarithm of
    the mean of both probabilities. The whole `model` is put in evaluation mode meanwhile, so that `predicts` may use
    any of its networks.
    """

    def logits(predict: Predict, x: Tensor) -> Tensor:
        again = loader.viewer.mirrored(x) if mirror else None
        if again is None:
            return predict(x)
        both = torch.stack([predict(x), predict(again)]).float().log_softmax(2)
        return both.logsumexp(0) - math.log(2)

    was_training = model.training
    model.eval()
    try:
        for images in loader.plain(batch):
            with torch.inference_mode():
                x = images.to(device, non_blocking=images.is_pinned())
                yield [logits(predict, x).float().cpu() for predict in predicts]
    finally:
        model.train(was_training)
