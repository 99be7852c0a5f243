"""A network's output on a whole set of examples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rte.methods.base import Predict
from rte.views.loader import Loader


def outputs(
    model: nn.Module, predict: Predict, loader: Loader, *, batch: int, device: torch.device, mirror: bool = False
) -> Tensor:
    """`predict` on every un-augmented example, (N, K) float32 on the CPU, in index order; see `all_outputs`."""
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
    """Each of `predicts` on every un-augmented example, (N, K) float32 on the CPU; every example is read once.

    With `mirror`, where the viewer has a second look at examples (`views.mirror`: the mirror image), the logarithm of
    the mean of both probabilities. The whole
    `model` is put in evaluation mode meanwhile, so that `predicts` may use any of its networks.
    """

    def logits(predict: Predict, x: Tensor) -> Tensor:
        again = loader.viewer.mirrored(x) if mirror else None
        if again is None:
            return predict(x)
        both = torch.stack([predict(x), predict(again)]).float().log_softmax(2)
        return both.logsumexp(0) - math.log(2)

    was_training = model.training
    model.eval()
    found: list[list[Tensor]] = [[] for _ in predicts]
    try:
        with torch.inference_mode():
            for images in loader.plain(batch):
                x = images.to(device, non_blocking=images.is_pinned())
                for parts, predict in zip(found, predicts, strict=True):
                    parts.append(logits(predict, x).float().cpu())
    finally:
        model.train(was_training)
    return [torch.cat(parts).clone() for parts in found]
