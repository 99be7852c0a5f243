"""A network's output on a whole set of images."""

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
    """`predict` on every un-augmented image, (N, K) float32 on the CPU, in index order; see `all_outputs`."""
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
    """Each of `predicts` on every un-augmented image, (N, K) float32 on the CPU; every image is read once.

    With `mirror`, the logarithm of the mean of the probabilities of an image and of its mirror image. The whole
    `model` is put in evaluation mode meanwhile, so that `predicts` may use any of its networks.
    """

    def logits(predict: Predict, x: Tensor) -> Tensor:
        if not mirror:
            return predict(x)
        both = torch.stack([predict(x), predict(x.flip(3))]).float().log_softmax(2)
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
