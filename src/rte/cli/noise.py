"""`rte noise`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rte.cli import options as opt
from rte.cli.app import noise_app
from rte.cli.words import make_console


@noise_app.command("from-model")
def noise_from_model(
    run: opt.Run,
    out: opt.Matrix,
    on: opt.On = "test",
    data_dir: opt.DataDir = None,
    which: opt.Which = None,
    overwrite: opt.Overwrite = False,
    trust_code: opt.TrustCode = False,
) -> None:
    """Write how a trained run confuses the classes, as the structure C of `--noise matrix:FILE:0.4`."""
    from rte.errors import ConfigError, did_you_mean
    from rte.noise.estimate import refuse_matrix
    from rte.run.folder import reopen

    if on not in ("test", "train"):
        raise ConfigError(f"--on {on}: {did_you_mean(on, ('test', 'train'))}")
    refuse_matrix(out, overwrite=overwrite)
    method, examiner = reopen(run, data_dir=data_dir, which=which, trust_code=trust_code)
    _write_structure(out, examiner.confusion(method, on), examiner.dataset.classes)


@noise_app.command("from-confusion")
def noise_from_confusion(file: opt.Confusion, out: opt.Matrix, overwrite: opt.Overwrite = False) -> None:
    """Write the structure C of a confusion matrix, for `--noise matrix:FILE:0.4`."""
    from rte.noise.estimate import read_counts, refuse_matrix

    refuse_matrix(out, overwrite=overwrite)
    _write_structure(out, read_counts(file))


def _write_structure(out: Path, counts: Any, classes: tuple[str, ...] | None = None) -> None:
    from rte.noise.estimate import in_words, write_structure

    write_structure(out, counts, classes)
    end = f"The structure C is in {out}; use it as --noise matrix:{out}:0.4"
    make_console().print(*in_words(counts, classes), end, sep="\n", highlight=False, soft_wrap=True)
