"""A network's output on a whole set of images."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rte.methods.base import Predict
from rte.views.loader import Loader


def outputs(
    model: nn.Module, predict: Predict, loader: Loader, *, batch: int, device: torch.device, mirror: bool = False
) -> Tensor:
    """`predict` on every un-augmented image, (N, K) float32 on the CPU, in index order.

    With `mirror`, the logarithm of the mean of the probabilities of an image and of its mirror image. The whole
    `model` is put in evaluation mode meanwhile, so that `predict` may use any of its networks.
    """

    def logits(x: Tensor) -> Tensor:
        if not mirror:
            return predict(x)
        both = torch.stack([predict(x), predict(x.flip(3))]).log_softmax(2)
        return both.logsumexp(0) - math.log(2)

    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            parts = [logits(x.to(device, non_blocking=True)).float().cpu() for x in loader.plain(batch)]
    finally:
        model.train(was_training)
    return torch.cat(parts).clone()
