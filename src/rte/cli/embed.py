"""`rte embed`."""

from __future__ import annotations

from rte.cli import options as opt
from rte.cli.app import app
from rte.cli.words import make_console
from rte.errors import UserError


@app.command()
def embed(
    data: opt.Embeddable,
    out: opt.Vectors,
    init: opt.Init = None,
    model: opt.TextModel = None,
    size: opt.Side = None,
    target: opt.Target = None,
    text: opt.Text = None,
    data_dir: opt.DataDir = None,
    device: opt.Device = "auto",
    overwrite: opt.Overwrite = False,
) -> None:
    """Turn images or texts into vectors by a trained network, which `rte fit` then trains on in seconds."""
    from rich.progress import Progress

    from rte.config import parse_data
    from rte.data.text import PACKAGED
    from rte.files import refuse_output
    from rte.nets.weights import PACKAGED as NETWORK
    from rte.run.embedding import Look, embed_data, embed_examples

    if out.suffix not in (".npz", ".npy"):
        raise UserError(f"--out {out}: give a name that ends in .npz (vectors and labels) or .npy (vectors alone).")
    refuse_output(out, "--out", overwrite=overwrite)
    look = Look(init or NETWORK, model or PACKAGED, size, device)
    console = make_console()
    with Progress(console=console) as bar:
        task = bar.add_task("embedding", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if out.suffix == ".npy":
            n, dim = embed_examples(data, look, out, column=text, tell=tell)
        else:
            n, dim = embed_data(
                parse_data(data, data_dir=data_dir, target=target, text=text), data_dir, look, out, tell
            )
    console.print(f"{n:,} vectors of {dim} numbers are in {out}.", highlight=False, soft_wrap=True)
    if out.suffix == ".npz":
        console.print(f"Train on them with `rte fit {out}`.", highlight=False, soft_wrap=True)
