"""A trained method, ready to be given images it has never seen."""

from __future__ import annotations

import codecs
import csv
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
from numpy.typing import NDArray

from rte.config import RunConfig
from rte.data.arrays import read_images
from rte.data.files import FileImages, image_files
from rte.data.types import Source
from rte.data.vectors import read_vectors
from rte.errors import ConfigError
from rte.files import expanded, write_atomic
from rte.methods.base import Method, Predict
from rte.nets.base import Featureless, Net
from rte.run.features import Extractor, batch_of
from rte.run.folder import load_method
from rte.run.frozen import looking, opened
from rte.run.inputs import FeatureSpec, InputSpec, VectorSpec
from rte.train.device import choose_device
from rte.train.sweep import outputs
from rte.views.loader import Loader


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
        viewer, batch = self.spec.viewer(self.config), train.evaluate_batch
        if self.look is not None and isinstance(self.spec, FeatureSpec):
            predict, mirror, viewer = looking(self.spec, self.look, predict), False, self.look.viewer
            batch = batch_of(viewer, batch)
        loader = Loader(source, y, viewer, seed=0, threads=train.threads)
        return outputs(self.method, predict, loader, batch=batch, device=self.device, mirror=mirror)

    def open(self, source: str) -> Source:
        """The examples of a file or folder, seen as the training examples were.

        Vectors: a .npy file, or an .npz file with an array x. Images: such an .npz file, a folder, which is searched
        through, or an image file.
        """
        path = expanded(source)
        if isinstance(self.spec, VectorSpec):
            return read_vectors(path)
        if path.suffix == ".npz":
            return read_images(path)
        data = self.config.data
        alike = {name: getattr(data, name) for name in ("shorter", "megapixels") if hasattr(data, name)}
        return FileImages.open(image_files(path), channels=self.spec.channels, cache_mb=0, **alike)

    def write_csv(self, source: Source, out: Path | None, *, probabilities: bool = False) -> None:
        """image, label, confidence, and with `probabilities` one column per class."""
        probs = self.probabilities(source)

        def write(file: TextIO | codecs.StreamWriter) -> None:
            rows = csv.writer(file)
            rows.writerow(["image", "label", "confidence", *(self.spec.classes if probabilities else ())])
            for i, row in enumerate(probs):
                shares = [f"{p:.6f}" for p in row] if probabilities else []
                rows.writerow([source.label(i), self.spec.classes[int(row.argmax())], f"{row.max():.6f}", *shares])

        if out is None:
            write(sys.stdout)
        else:  # names of files that are no Unicode stay the bytes they are
            write_atomic(out, lambda file: write(codecs.getwriter("utf-8")(file, "surrogateescape")))
