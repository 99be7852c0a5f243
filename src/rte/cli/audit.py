"""`rte audit`."""

from __future__ import annotations

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


@app.command()
def audit(
    run: opt.Run,
    out: opt.Table = None,
    on: opt.Audited = "train",
    apply: opt.Apply = None,
    threshold: opt.Threshold = None,
    to: opt.LabelFile = None,
    reviewed: opt.Reviewed = None,
    export: opt.Export = None,
    data_dir: opt.DataDir = None,
    which: opt.Which = None,
    overwrite: opt.Overwrite = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Find the wrong labels in a run's training data: which, what they should be, and how many."""
    from rte.audit.records import check_table, write_table
    from rte.files import refuse_output
    from rte.run.audit import audit_run
    from rte.run.review import Wish, fulfil

    wish = Wish(run, on, apply, threshold, reviewed, export, to, overwrite)
    wish.check()
    if out is not None:
        check_table(out)
        refuse_output(out, "--out", overwrite=overwrite)
    found = audit_run(run, on=on, data_dir=data_dir, which=which, trust_code=trust_code)
    found, said = fulfil(found, wish)
    found.write(run, wish.stem)
    if out is not None:
        write_table(out, found.rows, found.classes)
    console = make_console()
    lines = [found.summary["sentence"], *said]
    last = "next to look at" if reviewed else "most suspicious label"
    lines.append(f"The table is in {out or run / f'{wish.stem}.csv'}, {last} first.")
    for line in lines:
        console.print(line, highlight=False, markup=False)
