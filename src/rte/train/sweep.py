"""A network's output on a whole set of images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rte.methods.base import Predict
from rte.views.loader import Loader


def outputs(model: nn.Module, predict: Predict, loader: Loader, *, batch: int, device: torch.device) -> Tensor:
    """`predict` on every un-augmented image, (N, K) float32 on the CPU, in index order.

    The whole `model` is put in evaluation mode meanwhile, so that `predict` may use any of its networks.
    """
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            parts = [predict(x.to(device, non_blocking=True)).float().cpu() for x in loader.plain(batch)]
    finally:
        model.train(was_training)
    return torch.cat(parts).clone()
