"""`rte audit`."""

from __future__ import annotations

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console


@app.command()
def audit(
    run: opt.Run,
    out: opt.Table = None,
    data_dir: opt.DataDir = None,
    which: opt.Which = None,
    overwrite: opt.Overwrite = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Find the wrong labels in a run's training data: which, what they should be, and how many."""
    from rte.audit.records import TABLE, check_table, write_table
    from rte.files import refuse_output
    from rte.run.audit import audit_run

    if out is not None:
        check_table(out)
        refuse_output(out, "--out", overwrite=overwrite)
    found = audit_run(run, data_dir=data_dir, which=which, trust_code=trust_code)
    found.write(run)
    if out is not None:
        write_table(out, found.rows, found.classes)
    console = make_console()
    console.print(found.summary["sentence"], highlight=False)
    console.print(f"The table is in {out or run / TABLE}, most suspicious label first.", highlight=False)
