"""Tables of texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rte.data._roles import Roles
from rte.data.text import Config, Texts, load, read_texts
from rte.errors import DataError

TEXT = "id,question,intent,split\n1,how are you,hello,train\n2,see you soon,bye,train\n3,good day,hello,test\n"


def test_texts_and_labels(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(TEXT)
    data = load(Config.model_validate({"path": str(tmp_path / "q.csv"), "columns": {"label": "intent"}}), None)
    assert data.classes == ("bye", "hello")
    assert data.train.images.fetch(np.array([1, 0])) == ["see you soon", "how are you"]
    assert data.test is not None
    assert data.test.images.fetch(np.array([0])) == ["good day"]
    assert data.test.images.label(0) == "text 2", "the number of the row"
    assert data.notes == (
        "the target is the column intent; texts are in the column question (as no --text names one; the most words), "
        "embedded by all-MiniLM-L6-v2.",
    )


def test_a_row_without_a_text_is_named_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(TEXT + "4,,bye,train\n")
    settings = {"path": str(tmp_path / "q.csv"), "columns": {"label": "intent", "text": "question"}}
    with pytest.raises(DataError, match=r"line 5 of .* has an empty question; add --skip-bad"):
        load(Config.model_validate(settings), None)
    with pytest.warns(UserWarning, match="1 of 4 examples have no text and are left out"):
        data = load(Config.model_validate({**settings, "skip_bad": True}), None)
    assert len(data.train) == 2


def test_new_texts(tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("one text\nand another\n")
    assert read_texts(tmp_path / "new.txt", Roles()) == Texts(["one text", "and another"])
    (tmp_path / "new.csv").write_text("n,question\n1,what now\n")
    assert read_texts(tmp_path / "new.csv", Roles()).values == ["what now"]
    with pytest.raises(DataError, match=r"has no column 'qestion' .for text.; did you mean 'question'"):
        read_texts(tmp_path / "new.csv", Roles(text="qestion"))
    (tmp_path / "n.csv").write_text("n,m\n1,2\n")
    with pytest.raises(DataError, match=r"no column that looks like texts .it has: n, m.; name it with --text"):
        read_texts(tmp_path / "n.csv", Roles())
    (tmp_path / "new.txt").write_text("one text\n\n")
    with pytest.raises(DataError, match="has no text in row 1; give a text in each row"):
        read_texts(tmp_path / "new.txt", Roles())
