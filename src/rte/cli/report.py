"""`rte report`, and the page at the end of `rte fit`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console

if TYPE_CHECKING:
    from rte.run.audit import Auditor


@app.command()
def report(
    runs: opt.Runs,
    out: opt.Page = None,
    data_dir: opt.DataDir = None,
    overwrite: opt.Overwrite = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Show runs on one page, a file for any browser, and review their suspicious labels in it.

    The page holds what was trained, how good it is, what to do next, and the most suspicious examples. Your decisions
    on them are exported for `rte audit --reviewed` and `rte fit --labels`.
    """
    from rte.errors import UserError
    from rte.files import refuse_output
    from rte.report.page.material import check, collect
    from rte.report.page.write import FILE, write_page

    for run in runs:
        check(run)
    if len({run.resolve() for run in runs}) < len(runs):
        raise UserError("a run folder is named twice; name each run once.")
    path = out or (runs[0] / FILE if len(runs) == 1 else Path(FILE))
    # the page in a run folder is the run's own: a later one takes its place
    refuse_output(path, "--out", overwrite=overwrite or (out is None and len(runs) == 1))
    found = [collect(run, data_dir=data_dir, trust_code=trust_code, say=_say) for run in runs]
    for material in found:
        for note in material.notes:
            print(f"rte: {material.folder}: {note}", file=sys.stderr)
    write_page(found, path)
    make_console().print(f"The page is {path}; open it in a browser.", highlight=False, soft_wrap=True)


class LastPage:
    """Writes the page of a run that has just ended. A page that fails costs nobody a result."""

    def __init__(self, data_dir: Path | None) -> None:
        self.data_dir, self.sentence = data_dir, ""

    def __call__(self, folder: Path, auditor: Auditor) -> None:
        from rte.errors import UserError
        from rte.report.page.write import page_of

        began = time.monotonic()
        try:
            path = page_of(folder, auditor, data_dir=self.data_dir)
        except (UserError, OSError) as error:
            self.sentence = f"There is no page of this run: {error} `rte report {folder}` tries again."
            return
        seconds = time.monotonic() - began
        self.sentence = f"The labels were audited in {seconds:.0f} s; the page is {path}, open it in a browser."

    def say(self, folder: Path) -> None:
        """Where the page is, or why there is none."""
        late = f"For an audit of the labels there was no time left in the budget; `rte report {folder}` makes one."
        if self.sentence or os.environ.get("RANK", "0") == "0":  # of several processes the first one audits
            _say(self.sentence or late)


def _say(text: str) -> None:
    make_console().print(text, highlight=False, soft_wrap=True)
