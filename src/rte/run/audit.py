"""The audit of a run: its trained method looks at the labels it was trained on, or at others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import rte
from rte import registry
from rte.audit.evidence import Evidence, gather
from rte.audit.judge import judge
from rte.audit.noise import estimate
from rte.audit.records import Audit
from rte.audit.summary import summarise
from rte.config import RunConfig
from rte.data.ids import ids
from rte.data.types import Dataset, Split
from rte.errors import DataError, UserError
from rte.evaluate.examiner import Examiner
from rte.files import expanded
from rte.methods.base import Method, Predict
from rte.run.folder import data_folder, read_config, reopen
from rte.run.frozen import seen
from rte.run.twins import conflicting
from rte.train import checkpoint
from rte.train.sweep import outputs, streamed
from rte.views.loader import Loader

TRAIN, TEST = "train", "test"


class _Known(Exception):
    """A method asks for its own prediction, which the audit has."""


@dataclass(frozen=True)
class Auditor:
    """A trained method, the data it was trained on, and the margins that training saw (n, 2, parts of the run)."""

    method: Method
    config: RunConfig
    dataset: Dataset
    looks: Examiner
    margins: Tensor | None = None

    @classmethod
    def load(
        cls, folder: Path, *, data_dir: Path | None = None, which: str | None = None, trust_code: bool = False
    ) -> Auditor:
        """From a run folder."""
        config = read_config(folder, trust_code=trust_code)
        method, looks = reopen(folder, data_dir=data_dir, which=which, trust_code=trust_code)
        return cls(method, config, looks.dataset, looks, remembered(folder))

    def evidence(self, split: Split | None = None) -> Evidence:
        """Of every training example, those held out for selection included; or of the examples of another split."""
        part = split or self.dataset.train
        found = gather(part.y, self._predictions(part), len(self.dataset.classes))
        rows = self.looks.train_rows
        if split is not None:
            return found
        if (trust := self._trust()) is not None:
            found = found.trusting(rows, trust.float().cpu().numpy())
        if self.margins is not None and len(self.margins) == len(rows):
            found = found.remembering(rows, self.margins)
        return found

    def _trust(self) -> Tensor | None:
        """What the method says of the labels it was trained on; None where it would only ask its own prediction."""
        looks = self.looks
        loader = self._loader(self.dataset.train.take(looks.train_rows))

        def sweep(predict: Predict, *, reported: bool = False) -> Tensor:
            if predict == self.method.predict:
                raise _Known
            found = outputs(self.method, predict, loader, batch=looks.batch, device=looks.device, mirror=reported)
            return found.to(looks.device)

        if type(self.method).trust is Method.trust:
            return None
        try:
            return self.method.trust(sweep)
        except _Known:
            return None

    def audit(self, root: Path | None = None, split: Split | None = None) -> Audit:
        """Which labels are wrong; ids are below the folder `root`."""
        part, evidence = split or self.dataset.train, self.evidence(split)
        found = estimate(evidence)
        rows = judge(evidence, found.rate, ids(part.images, root), conflicting(part.images, part.y))
        settings = {"method": self.config.method_label, "net": self.config.net.name, "seed": self.config.seed}
        trusts, remembers = (bool(np.isfinite(known).any()) for known in (evidence.trust, evidence.history))
        sources = ["trust"] if trusts else ["prediction", *(["margins seen in training"] if remembers else [])]
        made = {"settings": settings, "scores": {"from": sources}, "rte": rte.__version__}
        return Audit(rows, {**summarise(rows, found, self.dataset.classes), **made})

    def other(self, on: str, data_dir: Path | None) -> Split:
        """The test split, or the labelled examples of another folder or file of the kind of the training data."""
        if on == TEST:
            if self.dataset.test is None or not len(self.dataset.test):
                raise DataError(f"{self.dataset.name} has no test split to audit.")
            return self.dataset.test
        data = self.config.data
        if not hasattr(data, "path"):
            raise UserError(f"--on {on} is neither train nor test, and the data of this run is not of a path.")
        news = {"path": on, **({"labels": None} if hasattr(data, "labels") else {})}
        config = replace(self.config, data=data.model_copy(update=news))
        raw = registry.dataset(config.data_name).load(config.data, data_dir)
        found = seen(config, raw, None)
        places = {name: k for k, name in enumerate(self.dataset.classes)}
        if strange := [name for name in found.classes if name not in places]:
            raise DataError(f"{on} has the class '{strange[0]}', which the run was not trained on; leave it out.")
        return Split(found.train.images, np.array([places[name] for name in found.classes], np.int64)[found.train.y])

    def _predictions(self, part: Split) -> Iterator[Tensor]:
        loader, batch, device = self._loader(part), self.looks.batch, self.looks.device
        for (logits,) in streamed(self.method, [self.method.predict], loader, batch=batch, device=device, mirror=True):
            yield logits

    def _loader(self, part: Split) -> Loader:
        return Loader(part.images, part.y, self.looks.viewer, seed=0, threads=self.looks.threads)


def remembered(folder: Path) -> Tensor | None:
    """The margins in the checkpoint of a run folder; None where there are none, as in runs of earlier versions."""
    file = folder / "checkpoint.pt"
    margins = checkpoint.load(file).get("margins") if file.is_file() else None
    return margins if isinstance(margins, Tensor) else None


def audit_run(
    folder: Path,
    *,
    on: str = TRAIN,
    data_dir: Path | None = None,
    which: str | None = None,
    trust_code: bool = False,
) -> Audit:
    """The audit of a run folder, which is not written yet."""
    with torch.no_grad():
        auditor = Auditor.load(folder, data_dir=data_dir, which=which, trust_code=trust_code)
        split = None if on == TRAIN else auditor.other(on, data_folder(folder, data_dir))
        root = data_root(auditor.config, data_folder(folder, data_dir))
        return auditor.audit(root if on in (TRAIN, TEST) else expanded(on), split)


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
