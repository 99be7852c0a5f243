"""A trained method, ready to be given images it has never seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rte.config import RunConfig
from rte.data import text
from rte.data.arrays import read_images
from rte.data.files import FileImages, image_files
from rte.data.tabular import read_rows
from rte.data.types import Source
from rte.data.vectors import read_vectors
from rte.errors import ConfigError
from rte.files import expanded
from rte.methods.base import Method, Predict
from rte.nets.base import Featureless, Net
from rte.run.embedded import embeddings
from rte.run.features import Extractor, batch_of
from rte.run.folder import load_method
from rte.run.frozen import looking, opened
from rte.run.inputs import FeatureSpec, InputSpec, TableSpec, VectorSpec
from rte.train.device import choose_device
from rte.train.sweep import outputs
from rte.views.loader import Loader
from rte.views.viewer import Viewer


@dataclass(frozen=True)
class Predictor:
    """Class probabilities for images."""

    method: Method
    config: RunConfig
    spec: InputSpec
    device: torch.device
    look: Extractor | None = None
    """By what a run with `--frozen` sees images."""

    @classmethod
    def load(
        cls, folder: Path, *, which: str | None = None, device: str = "auto", trust_code: bool = False
    ) -> Predictor:
        """The trained method of a run folder; `trust_code`: also where that runs code outside the package."""
        where = choose_device(device)
        method, config, spec = load_method(folder, where, which, trust_code=trust_code)
        return cls.of(method, config, spec, where, folder)

    @classmethod
    def of(
        cls, method: Method, config: RunConfig, spec: InputSpec, device: torch.device, folder: Path | None
    ) -> Predictor:
        """Of a trained method, with the network of its run folder, where that stayed as it is."""
        look = opened(config, spec.images, folder) if isinstance(spec, FeatureSpec) else None
        return cls(method, config, spec, device, look)

    def probabilities(self, source: Source) -> NDArray[np.float64]:
        """(N, K), in the order of `spec.classes`."""
        probs: NDArray[np.float64] = self._outputs(self.method.predict, source, mirror=True).double().softmax(1).numpy()
        return probs

    @property
    def viewer(self) -> Viewer:
        """What shows the examples."""
        return self.spec.viewer(self.config) if self.look is None else self.look.viewer

    def predicted(self, x: torch.Tensor) -> NDArray[np.float64]:
        """Class probabilities (B, K) of images as the viewer shows them (B, C, H, W)."""
        predict: Predict = self.method.predict
        again = None
        if self.look is not None and isinstance(self.spec, FeatureSpec):
            predict = looking(self.spec, self.look, predict)
        else:
            again = self.viewer.mirrored(x)
        with torch.inference_mode():
            looks = [predict(each.to(self.device)).double().softmax(1) for each in (x, again) if each is not None]
        probs: NDArray[np.float64] = torch.stack(looks).mean(0).cpu().numpy()
        return probs

    def features(self, source: Source) -> NDArray[np.float32]:
        """What the last layers see from which is predicted, (N, D); of several networks, side by side."""
        seen: list[torch.Tensor] = []
        heads = [net.head for net in self.method.modules() if isinstance(net, Net) and not isinstance(net, Featureless)]
        hooks = [head.register_forward_pre_hook(lambda _, given: seen.append(given[0])) for head in heads]

        def features(x: torch.Tensor) -> torch.Tensor:
            seen.clear()
            self.method.predict(x)
            if not seen:
                raise ConfigError(
                    f"the method {self.config.method_name} predicts without the last layer of a network that has "
                    "features; take another run."
                )
            return torch.cat(seen, 1)

        try:
            found: NDArray[np.float32] = self._outputs(features, source, mirror=False).numpy()
        finally:
            for hook in hooks:
                hook.remove()
        return found

    def _outputs(self, predict: Predict, source: Source, *, mirror: bool) -> torch.Tensor:
        self.spec.check(source)
        y, train = np.zeros(len(source), np.int64), self.config.train
        viewer, batch = self.viewer, train.evaluate_batch
        if self.look is not None and isinstance(self.spec, FeatureSpec):
            predict, mirror, batch = looking(self.spec, self.look, predict), False, batch_of(viewer, batch)
        loader = Loader(source, y, viewer, seed=0, threads=train.threads)
        return outputs(self.method, predict, loader, batch=batch, device=self.device, mirror=mirror)

    def open(self, source: str) -> Source:
        """The examples of a file or folder, seen as the training examples were.

        Vectors: a .npy file, or an .npz file with an array x. Images: such an .npz file, a folder, which is searched
        through, or an image file.
        """
        path = expanded(source)
        if isinstance(self.config.data, text.Config):
            return embeddings(self.config, text.read_texts(path, self.config.data.columns))
        if isinstance(self.spec, TableSpec):
            return read_rows(path, self.spec.columns)
        if isinstance(self.spec, VectorSpec):
            return read_vectors(path)
        if path.suffix == ".npz":
            return read_images(path)
        data = self.config.data
        alike = {name: getattr(data, name) for name in ("shorter", "megapixels") if hasattr(data, name)}
        return FileImages.open(image_files(path), channels=self.spec.channels, cache_mb=0, **alike)
