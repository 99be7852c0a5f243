"""The options of the commands, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        help="A folder of images, a table (.csv, .tsv, .parquet), FILE.npz, or a dataset by name: see `rte list data`."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", help="Which column of a table is what, if it cannot be guessed: path=file,label=class,split=part."
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", help="The column of labels in a table; else one called label, class …, or the last."
    ),
]
Text = Annotated[
    str | None,
    typer.Option("--text", help="The column of texts in a table, which are embedded (needs the extra text)."),
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", help="A table of ids and labels that count instead, such as `rte audit --apply` writes."),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", help="Keep together when examples are set apart: a column, or a regular expression for paths."
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out examples without a label or a readable file, and say how many.")
]
DataIfNew = Annotated[str | None, typer.Argument(help="As for `rte fit`; digits if left out.")]
Method = Annotated[
    str | None, typer.Option("--method", "-m", help="The method: see `rte list methods`, or my.py:MyMethod.")
]
Preset = Annotated[str | None, typer.Option("--preset", "-p", help="Settings by name, or a TOML or JSON file.")]
Noise = Annotated[
    str | None,
    typer.Option("--noise", "-n", help="Noise to inject: symmetric:0.4, pair:0.2, labels:FILE:KEY, none ..."),
]
Net = Annotated[str | None, typer.Option("--net", help="The network: see `rte list nets`, or my.py:build.")]
Init = Annotated[
    str | None, typer.Option("--init", help="Start from trained weights: a file of them, efficientnet-lite0, or none.")
]
Frozen = Annotated[
    bool, typer.Option("--frozen", help="The network stays as it is: see the images once, train a head.")
]
Epochs = Annotated[int | None, typer.Option("--epochs", "-e", help="Passes over the training set.")]
Budget = Annotated[
    str | None, typer.Option("--budget", "-b", help="Time to train for, such as 30m or 2h, instead of --epochs.")
]
Clock = Annotated[
    Path | None, typer.Option("--clock", help="Repeat a finished run with --budget exactly: the path its folder holds.")
]
Seed = Annotated[int | None, typer.Option("--seed", "-s", help="Decides every random number of the run.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Any setting: --set method.q=0.3 --set train.lr=0.05; repeatable.")
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", envvar="RTE_DATA", help="The folder of datasets, instead of the default one."),
]
Run = Annotated[Path, typer.Argument(help="A run folder.")]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Run code outside rte that a run folder, preset or schedule names.")
]

Report = Annotated[
    bool,
    typer.Option(
        "--report/--no-report",
        envvar="RTE_REPORT",
        help="At the end, look for wrong labels and write report.html into the run folder.",
    ),
]
Events = Annotated[bool, typer.Option("--tensorboard", help="Also write event files, for TensorBoard.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="The run folder to make.")]
Schedule = Annotated[Path | None, typer.Option("--schedule", help="Replay the schedule.json that `rte tune` found.")]

Population = Annotated[int | None, typer.Option("--population", help="Members; 35 if left out.")]
Interval = Annotated[int | None, typer.Option("--interval", help="Epochs between decisions; 2 if left out.")]
Search = Annotated[
    list[str] | None,
    typer.Option("--search", help="Other limits: --search train.lr=[0.01,0.1], or method.views=keep; repeatable."),
]
Asynchronous = Annotated[
    bool, typer.Option("--asynchronous", help="Never wait for the whole population: faster, not reproducible.")
]
Cpus = Annotated[float | None, typer.Option("--cpus-per-trial", help="Cores for a member that trains; 1.")]
Gpus = Annotated[float | None, typer.Option("--gpus-per-trial", help="GPUs for it, such as 0.25.")]
Address = Annotated[
    str | None, typer.Option("--address", envvar="RAY_ADDRESS", help="Join this Ray cluster: HOST:PORT, or auto.")
]
Dashboard = Annotated[bool, typer.Option("--dashboard", help="Start Ray's dashboard, on this machine only.")]
Resume = Annotated[Path | None, typer.Option("--resume", help="Go on with the search in this folder.")]

Methods = Annotated[
    str,
    typer.Option("--methods", "-m", help="Names, separated by commas; all; or paper: those of the paper's tables."),
]
Rates = Annotated[
    str | None,
    typer.Option("--rates", help="Factors of the learning rate to choose from for each method, such as 0.3,1,3."),
]
OutOfMany = Annotated[
    Path | None, typer.Option("--out", "-o", help="The folder to make, with a run folder for each method and seed.")
]

Embeddable = Annotated[
    str,
    typer.Argument(help="As for `rte fit`; with --out FILE.npy also images or texts without labels."),
]
Vectors = Annotated[
    Path, typer.Option("--out", "-o", help="FILE.npz: vectors and labels, for `rte fit`. FILE.npy: vectors alone.")
]
TextModel = Annotated[
    str | None,
    typer.Option("--model", help="For texts: a sentence-transformers model, a folder or a name; all-MiniLM-L6-v2."),
]
Side = Annotated[int | None, typer.Option("--size", help="For images: pixels a side at which they are seen; 224.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]

Which = Annotated[str | None, typer.Option(help="checkpoint (the last state) or selected.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the numbers to this file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there already.")]
Corruptions = Annotated[
    bool, typer.Option("--corruptions", help="Also the error under 15 corruptions of the test images, and the mCE.")
]
Official = Annotated[
    Path | None, typer.Option("--official", help="Take the corrupted images from CIFAR-10-C's files in this folder.")
]

Images = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Image files, folders, patterns, a table of paths, - for a list on stdin, or an .npz. Of a run on a table "
        "or on texts: another table, or a .txt file of texts.",
    ),
]
Predictions = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write .csv, .jsonl or .parquet here, not to the terminal.")
]
Top = Annotated[int, typer.Option("--top", min=1, help="So many of the most probable classes.")]
Form = Annotated[str, typer.Option("--format", help="onnx, safetensors (weights alone) or torch (torch.export).")]
ExportOut = Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write to; RUN/export if left out.")]
Probabilities = Annotated[bool, typer.Option("--probabilities", help="One column per class, too.")]

Table = Annotated[Path | None, typer.Option("--out", "-o", help="Also write the table here: .csv or .parquet.")]

Runs = Annotated[list[Path], typer.Argument(help="One or more run folders.")]
Page = Annotated[
    Path | None, typer.Option("--out", "-o", help="The file to write; RUN/report.html, of several runs ./report.html.")
]

Audited = Annotated[
    str,
    typer.Option("--on", help="Whose labels: train, test, or another folder or file like the training data."),
]
Apply = Annotated[
    str | None,
    typer.Option(
        "--apply", help="Write a new label file: drop or relabel the suspects, or review: only what people decided."
    ),
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", help="With --apply: suspects are labels with a lower label_score.")
]
LabelFile = Annotated[
    Path | None, typer.Option("--to", help="With --apply: the label file to write; RUN/labels.csv if left out.")
]
Reviewed = Annotated[Path | None, typer.Option("--reviewed", help="The decisions.csv that the review page exported.")]
Export = Annotated[
    str | None, typer.Option("--export", help="Also write the table for cleanlab, csv (suspects only) or labelstudio.")
]
Matrix = Annotated[Path, typer.Option("--out", "-o", help="The file to write: .csv, .json or .npz.")]
On = Annotated[str, typer.Option("--on", help="test (as the paper) or train: the images whose true labels are used.")]
Confusion = Annotated[Path, typer.Argument(help="K x K counts, a row per true class: .csv, .txt, .npy, .npz or .json.")]

What = Annotated[str, typer.Argument(help="methods, data, nets, presets, noise or all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON, for programs.")]
Download = Annotated[str, typer.Argument(help="cifar10 or cifar100.")]
To = Annotated[
    Path | None, typer.Option("--to", envvar="RTE_DATA", help="The folder to put it in, instead of the default one.")
]

TableName = Annotated[
    str, typer.Argument(help="A table or figure by name, all, or list (what there is, with its cost).")
]
SizeName = Annotated[str, typer.Option("--size", help="paper (its networks and epochs, for GPUs) or laptop.")]
GridOut = Annotated[Path, typer.Option("--out", "-o", help="The folder of the runs; tables share it.")]
Results = Annotated[
    Path | None,
    typer.Option("--results", help="Where TABLE.json goes: results, or OUT/results if settings are changed."),
]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="How many runs of each, with seeds one after another.")]
Only = Annotated[
    list[str] | None, typer.Option("--only", help="Cells whose row, column or data contains this; repeatable.")
]
Shard = Annotated[str | None, typer.Option("--shard", help="Run i of every n runs, such as 2/8, for several machines.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the runs and their cost, and stop.")]
Summarise = Annotated[bool, typer.Option("--summarise", help="Train nothing: make the results from the run folders.")]
Yes = Annotated[bool, typer.Option("--yes", help="Start the paper's size without asking.")]
AllPreset = Annotated[str | None, typer.Option("--preset", "-p", help="Other settings for all cells to start from.")]
