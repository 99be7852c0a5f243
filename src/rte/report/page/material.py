"""What a page is made of: the files of a run folder, and the examples that its audit doubts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rte.audit.records import SUMMARY, Audit
from rte.audit.records import read as read_audit
from rte.data.text import Texts
from rte.data.types import ArrayVectors, Source
from rte.errors import CheckpointError, UserError
from rte.files import read_json
from rte.run import measured
from rte.run.audit import Auditor
from rte.run.build import load_dataset
from rte.run.folder import data_folder, read_environment
from rte.train.journal import read as read_journal

CORRUPTIONS = "corruptions.json"
"""In a run folder: what `rte evaluate --corruptions` measured."""
Tree = dict[str, Any]


@dataclass(frozen=True)
class Material:
    """What is known of one run; `source` are its training examples, by the `index` of the audit's rows."""

    folder: Path
    config: Tree
    environment: Tree
    noise: Tree
    journal: list[Tree]
    result: Tree = field(default_factory=dict)
    measured: Tree = field(default_factory=dict)
    corruptions: Tree = field(default_factory=dict)
    audit: Audit | None = None
    source: Source | None = None
    notes: tuple[str, ...] = ()
    """What is missing, and why."""

    @property
    def name(self) -> str:
        """What the run is called among others."""
        return self.folder.resolve().name

    @property
    def method(self) -> str:
        """The method as results call it."""
        return str(self.result.get("method") or self.config.get("method", {}).get("name", "?"))

    @property
    def identity(self) -> str:
        """The same for the same run wherever its folder lies: settings, labels and when it began."""
        parts = self.result.get("digest"), self.noise.get("given_sha256"), self.environment.get("started")
        return "-".join(str(part)[:25] for part in parts)


def check(folder: Path) -> None:
    """Refuse what is no run folder."""
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} is no run folder (it has no config.json); give the folder that `rte fit` printed."
        )


def of_folder(folder: Path, source: Source | None = None, notes: tuple[str, ...] = ()) -> Material:
    """What the files of a run folder tell, whichever of them are there."""
    check(folder)
    journal = folder / "journal.jsonl"
    if not (folder / "result.json").is_file():
        notes += ("This run has not ended yet. The page shows how far it has come.",)
    return Material(
        folder,
        _tree(folder / "config.json"),
        read_environment(folder),
        _tree(folder / "noise.json"),
        read_journal(journal) if journal.is_file() else [],
        _tree(folder / "result.json"),
        _tree(folder / measured.FILE),
        _tree(folder / CORRUPTIONS),
        read_audit(folder) if (folder / SUMMARY).is_file() else None,
        source,
        notes,
    )


def collect(
    folder: Path,
    *,
    data_dir: Path | None = None,
    trust_code: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Material:
    """A run folder with its examples. Audits and measures the run where that has not been done since it ended.

    Without the data, or before the end of the run, the page has what the files alone tell.
    """
    check(folder)
    if not (folder / "result.json").is_file():
        return of_folder(folder)
    try:
        auditor = Auditor.load(folder, data_dir=data_dir, trust_code=trust_code)
    except UserError as error:
        return of_folder(folder, notes=(f"There are no pictures, as the run could not be opened: {error}",))
    if measured.outdated(folder, SUMMARY) or measured.outdated(folder, measured.FILE):
        began = time.monotonic()
        measured.look_back(folder, auditor, data_dir)
        say(f"Looked through the labels of {folder} in {time.monotonic() - began:.0f} s.")
    return of_folder(folder, examples(auditor, folder, data_dir))


def examples(auditor: Auditor, folder: Path, data_dir: Path | None) -> Source:
    """The training examples as a person wants to see them: texts, and not the vectors that were made of them."""
    source = auditor.dataset.train.images
    if auditor.config.data_name != "text" or not isinstance(source, ArrayVectors):
        return source
    texts = load_dataset(auditor.config, data_folder(folder, data_dir)).train.images
    return Texts(texts.values, source.rows) if isinstance(texts, Texts) else source


def _tree(path: Path) -> Tree:
    if not path.is_file():
        return {}
    found = read_json(path)
    return found if isinstance(found, dict) else {}
