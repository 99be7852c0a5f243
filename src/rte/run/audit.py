"""The audit of a run: its trained method looks at the labels it was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import rte
from rte.audit.evidence import Evidence, gather
from rte.audit.judge import judge
from rte.audit.noise import estimate
from rte.audit.records import Audit
from rte.audit.summary import summarise
from rte.config import RunConfig
from rte.data.ids import ids
from rte.data.types import Dataset
from rte.errors import DataError
from rte.evaluate.examiner import Examiner
from rte.files import expanded
from rte.methods.base import Method, Predict
from rte.run.folder import data_folder, read_config, reopen
from rte.train.sweep import outputs, streamed
from rte.views.loader import Loader


@dataclass(frozen=True)
class Auditor:
    """A trained method and the data it was trained on."""

    method: Method
    config: RunConfig
    dataset: Dataset
    looks: Examiner

    @classmethod
    def load(
        cls, folder: Path, *, data_dir: Path | None = None, which: str | None = None, trust_code: bool = False
    ) -> Auditor:
        """From a run folder."""
        config = read_config(folder, trust_code=trust_code)
        method, looks = reopen(folder, data_dir=data_dir, which=which, trust_code=trust_code)
        return cls(method, config, looks.dataset, looks)

    def evidence(self) -> Evidence:
        """Of every training example, those held out for selection included."""
        y = self.dataset.train.y
        seen = gather(y, self._predictions(), len(self.dataset.classes))
        if type(self.method).trust is Method.trust:  # the predicted probability, which is known already
            return seen
        trust = seen.p_given.copy()
        trust[self.looks.train_rows] = self.method.trust(self._sweep).float().cpu().numpy()
        return seen.trusted(trust)

    def audit(self, root: Path | None = None) -> Audit:
        """Which labels are wrong; ids are below the folder `root`."""
        evidence = self.evidence()
        rows = judge(evidence, ids(self.dataset.train.images, root))
        settings = {"method": self.config.method_label, "net": self.config.net.name, "seed": self.config.seed}
        made = {"settings": settings, "scores": {"from": ["trust"]}, "rte": rte.__version__}
        return Audit(rows, {**summarise(rows, estimate(evidence), self.dataset.classes), **made})

    def _predictions(self) -> Iterator[Tensor]:
        loader = self._loader(np.arange(len(self.dataset.train)))
        batch, device = self.looks.batch, self.looks.device
        for (logits,) in streamed(self.method, [self.method.predict], loader, batch=batch, device=device, mirror=True):
            yield logits

    def _sweep(self, predict: Predict, *, reported: bool = False) -> Tensor:
        loader, looks = self._loader(self.looks.train_rows), self.looks
        found = outputs(self.method, predict, loader, batch=looks.batch, device=looks.device, mirror=reported)
        return found.to(looks.device)

    def _loader(self, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Loader:
        part = self.dataset.train.take(rows)
        return Loader(part.images, part.y, self.looks.viewer, seed=0, threads=self.looks.threads)


def audit_run(
    folder: Path, *, data_dir: Path | None = None, which: str | None = None, trust_code: bool = False
) -> Audit:
    """The audit of a run folder, which is not written yet."""
    with torch.no_grad():
        auditor = Auditor.load(folder, data_dir=data_dir, which=which, trust_code=trust_code)
        return auditor.audit(data_root(auditor.config, data_folder(folder, data_dir)))


def data_root(config: RunConfig, data_dir: Path | None) -> Path | None:
    """The folder from which on the names of a run's files are its ids."""
    from rte.data._places import find

    path = getattr(config.data, "path", None)
    if not isinstance(path, str):
        return data_dir
    try:
        return find(path, data_dir, folder=True)
    except DataError:
        pass
    try:
        return find(path, data_dir, folder=False).parent
    except DataError:
        return expanded(path).parent
