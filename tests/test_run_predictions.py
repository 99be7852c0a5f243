"""New images: what may be given, what is written, and files that cannot be read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import quick
from photos import photo
from PIL import Image
from typer.testing import CliRunner

from rte.cli import app
from rte.errors import DataError, UserError
from rte.report.predictions import refuse_form
from rte.run.predictions import Stream, gather
from rte.run.predictor import Predictor
from rte.run.start import start

SIZES = [(32, 32), (60, 40), (33, 90), (16, 16)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(0)
    for label in ("a", "b"):
        for k, size in enumerate(SIZES * 2):
            path = photo(root / "photos" / label / f"{k} é'.png", size=size)
            Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)).save(path)
    data = {"name": "folder", "path": str(root / "photos"), "shorter": 32}
    train = {"epochs": 1, "batch": 8}
    views = {"size": 32, "mirror": True}
    start(quick("ce", data=data, noise={"name": "none", "ratio": 0.0}, train=train, views=views), root / "run")
    (root / "photos" / "b" / "bad.jpg").write_bytes(b"no image")
    return root


def invoke(run: Path, *given: str, stdin: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["predict", str(run / "run"), *given], input=stdin)
    return done.exit_code, done.stdout, done.stderr


def test_a_stream_predicts_what_the_predictor_does_and_goes_on_after_a_bad_file(run: Path) -> None:
    predictor = Predictor.load(run / "run", device="cpu")
    stream = Stream(predictor, list(gather([str(run / "photos")], io.StringIO())))
    blocks = list(stream)
    names = [name for block in blocks for name in block.names]
    assert len(names) == 16
    assert len(stream.unread) == 1
    assert "bad.jpg is no image" in stream.unread[0]
    found = np.concatenate([block.probabilities for block in blocks])
    for name, row in list(zip(names, found, strict=True))[::5]:
        np.testing.assert_allclose(predictor.probabilities(predictor.open(name))[0], row, rtol=1e-4)


def test_every_form_says_the_same_and_the_exit_code_is_one_after_a_bad_file(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rows = {}
    for form in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"o.{form}"
        code, _, error = invoke(run, str(run / "photos"), "--out", str(out), "--top", "2", "--probabilities")
        assert code == 1
        assert "bad.jpg is no image" in error
        assert "1 files could not be read; 16 are predicted" in error
        rows[form] = out
    with rows["csv"].open() as file:
        table = list(csv.DictReader(file))
    lines = [json.loads(line) for line in rows["jsonl"].read_text().splitlines()]
    columns = pyarrow.parquet.read_table(rows["parquet"]).to_pylist()
    assert len(table) == len(lines) == len(columns) == 16
    for row, line, column in zip(table, lines, columns, strict=True):
        assert row["image"] == line["image"] == column["image"]
        assert (
            (row["label"], row["label_2"]) == (line["label"], line["label_2"]) == (column["label"], column["label_2"])
        )
        assert float(row["confidence"]) == line["confidence"] == column["confidence"]
        assert line["probabilities"] == {"a": column["a"], "b": column["b"]} == {k: float(row[k]) for k in "ab"}
        assert line["confidence"] >= line["confidence_2"]


def test_lists_patterns_and_stdin_name_files(run: Path, tmp_path: Path) -> None:
    one, two = run / "photos" / "a" / "0 é'.png", run / "photos" / "a" / "1 é'.png"
    (tmp_path / "list.csv").write_text(f'label,path\n"x, y","{one}"\nz,"{two}"\n')
    (tmp_path / "list.txt").write_text(f"{one}\n\n{two}\n")
    expected = [str(one), str(two)]

    def found(*given: str, stdin: str = "") -> list[str]:
        return list(gather(given, io.StringIO(stdin)))

    assert found(str(tmp_path / "list.csv")) == found(str(tmp_path / "list.txt")) == expected
    assert found("-", stdin=f"{one}\n{two}\n") == expected
    assert found(str(run / "photos" / "a" / "[01] *.png")) == expected
    assert found(str(two), str(run / "photos" / "**" / "0*.png"))[0] == str(two)
    code, out, _ = invoke(run, "-", stdin=f"{one}\n")
    assert code == 0
    assert len(out.splitlines()) == 2


def test_mistakes_are_named_before_the_work(run: Path, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("label,where\nx,y\n")
    with pytest.raises(DataError, match=r"no column path in its first line \(it has: label, where\)"):
        list(gather([str(tmp_path / "list.csv")], io.StringIO()))
    with pytest.raises(DataError, match="matches no file"):
        list(gather([str(tmp_path / "*.png")], io.StringIO()))
    with pytest.raises(UserError, match=r"ends in .csv, .jsonl or .parquet"):
        refuse_form(tmp_path / "o.xlsx")
    code, _, error = invoke(run, str(tmp_path / "not.there.png"))
    assert code == 1
    assert "does not exist" in error
