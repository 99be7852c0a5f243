"""What `--help` shows at the end of each command: lines that run as they are."""

from __future__ import annotations

import typer

RUN = "runs/digits-rte-symmetric-0.4-s0"
EXAMPLES = {
    "fit": (
        "rte fit digits --noise symmetric:0.4 --epochs 5",
        "rte fit cifar10 --preset laptop --noise symmetric:0.4 --budget 30m",
        "rte fit photos --method auto --set train.batch=64",
        "rte fit photos --labels labels.csv",
        "rte fit list.csv --columns path=file,label=class",
        "rte fit customers.csv --target left",
        "rte fit questions.csv --text text --target category",
    ),
    "resume": (f"rte resume {RUN}",),
    "evaluate": (f"rte evaluate {RUN} --json scores.json",),
    "predict": (f"rte predict {RUN} new.npz --out labels.csv", f"rte predict {RUN} new.npz --top 3 --out labels.jsonl"),
    "export": (f"rte export {RUN} --format torch",),
    "audit": (
        f"rte audit {RUN}",
        f"rte audit {RUN} --out suspects.csv --overwrite",
        f"rte audit {RUN} --apply relabel --threshold 0.1",
        f"rte audit {RUN} --export cleanlab",
    ),
    "report": (f"rte report {RUN}", f"rte report {RUN} --out page.html"),
    "embed": (
        "rte embed photos --init efficientnet-lite0 --out photos.npz",
        "rte embed questions.csv --text text --target category --out questions.npz",
    ),
    "compare": ("rte compare digits --methods ce,gce,rte --noise symmetric:0.4 --epochs 5",),
    "tune": (
        "rte tune digits --population 4 --interval 4",
        "rte tune --resume runs/digits-rte-tune-symmetric-0.6-s0",
    ),
    "reproduce": ("rte reproduce main --dry-run", "rte reproduce all --summarise"),
    "list": ("rte list methods", "rte list nets --json"),
    "doctor": ("rte doctor", "rte doctor --json"),
    "data check": ("rte data check digits", "rte data check photos --labels labels.csv --json"),
    "data get": ("rte data get cifar10",),
    "noise from-model": (
        f"rte noise from-model {RUN} --out mistakes.json",
        "rte fit digits --noise matrix:mistakes.json:0.4 --epochs 5",
    ),
    "noise from-confusion": ("rte noise from-confusion counts.csv --out mistakes.csv",),
}


def attach(app: typer.Typer, group: str = "") -> None:
    """Give each command of an app, and of the groups in it, its examples."""
    for command in app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        command.epilog = "\n\n".join(("Examples:", *EXAMPLES.get(f"{group} {name}".strip(), ())))
    for inner in app.registered_groups:
        if inner.typer_instance is not None:
            attach(inner.typer_instance, str(inner.name))
