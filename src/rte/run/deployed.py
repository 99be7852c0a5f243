"""A trained run as one module that others can run: raw pixels, or numbers, in; class probabilities out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import rte
from rte.errors import ConfigError
from rte.run.inputs import FeatureSpec, ImageSpec, VectorSpec
from rte.run.predictor import Predictor

RESIZED = 8 / 7
"""Of the model's side: what the shorter side of an image is brought to before its middle is cut out."""


class Deployed(nn.Module):
    """uint8 images (N, H, W, C), or floats (N, D), to probabilities (N, K): normalisation, network and softmax."""

    mean: Tensor
    std: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        spec = predictor.spec
        if not isinstance(spec, ImageSpec | FeatureSpec | VectorSpec):
            raise ConfigError("models of tables are not exported yet; `rte predict` has their predictions.")
        self.images = not isinstance(spec, VectorSpec)
        self.method = predictor.method
        self.look = None if predictor.look is None else predictor.look.net
        self.twice = self.images and getattr(predictor.config.views, "mirror", False)
        first = spec.images if isinstance(spec, FeatureSpec) else spec
        self.register_buffer("mean", torch.tensor(first.mean))
        self.register_buffer("std", torch.tensor(first.std))
        if isinstance(spec, FeatureSpec):
            self.register_buffer("centre", torch.tensor(spec.vectors.mean))
            self.register_buffer("scale", torch.tensor(spec.vectors.std))
        self.shape = (*first.size, first.channels) if self.images else (first.channels,)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        x = (x.float() / 255 if self.images else x.float()) - self.mean
        x = x / self.std
        if self.images:
            x = x.permute(0, 3, 1, 2)
        if self.look is not None:
            features = self.look.features(x)
            if self.twice:
                features = (features + self.look.features(x.flip(3))) / 2
            return self.method.predict((features - self.centre) / self.scale).softmax(1)
        probs: Tensor = self.method.predict(x).softmax(1)
        return (probs + self.method.predict(x.flip(3)).softmax(1)) / 2 if self.twice else probs

    def raw(self, x: Tensor) -> Tensor:
        """What the viewer shows (B, C, H, W), or (B, D), as this module takes it."""
        if not self.images:
            return x * self.std + self.mean
        return ((x.permute(0, 2, 3, 1) * self.std + self.mean) * 255).round().clamp(0, 255).to(torch.uint8).contiguous()


def described(predictor: Predictor, module: Deployed) -> dict[str, str]:
    """What goes into a file beside the weights: classes, and how an image becomes an input."""
    steps: dict[str, Any] = {"input": "float32 (N, D)", "output": "probabilities (N, K)"}
    if module.images:
        height, width, channels = module.shape
        steps |= {
            "input": "uint8 (N, height, width, channels)", "height": height, "width": width, "channels": channels,
            "resize_shorter_side_to": round(min(height, width) * RESIZED), "filter": "bilinear", "then": "crop centre",
            "unless": "the image has that height and width already", "normalisation": "inside",
        }  # fmt: skip
    return {
        "classes": json.dumps(list(predictor.spec.classes), ensure_ascii=False),
        "preprocessing": json.dumps(steps),
        "method": predictor.config.method_label,
        "net": predictor.config.net.name,
        "rte": rte.__version__,
    }


def some_inputs(predictor: Predictor, module: Deployed, source: Any, n: int = 8) -> tuple[Tensor, np.ndarray[Any, Any]]:
    """Some examples as the module takes them, and what the run predicts for them."""
    rows = np.linspace(0, len(source) - 1, min(n, len(source))).astype(np.int64)
    viewer = predictor.viewer
    x = viewer.tensor(torch.from_numpy(viewer.plain(viewer.fetch(source, rows))))
    return module.raw(x), predictor.predicted(x)
