"""Folders that Hugging Face's library saved."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from photos import contents, text
from PIL import Image

from rte.data import hf
from rte.data._roles import Roles
from rte.data._useless import LeftOut
from rte.errors import DataError

datasets = pytest.importorskip("datasets")


def rows(values: range, labels: list[Any], kind: Any = None, **more: list[Any]) -> Any:
    features = {"image": datasets.Image(), "label": kind or datasets.ClassLabel(names=["cat", "dog"])}
    features |= {name: datasets.Value("string") for name in more}
    images = [Image.new("RGB", (5, 4), (k, 0, 0)) for k in values]
    return datasets.Dataset.from_dict({"image": images, "label": labels, **more}, datasets.Features(features))


def test_splits_and_declared_classes(tmp_path: Path) -> None:
    saved = datasets.DatasetDict(train=rows(range(3), [1, 1, 1]), validation=rows(range(3, 5), [0, 1]))
    saved.save_to_disk(tmp_path / "pets")
    data = hf.load(hf.Config(path=str(tmp_path / "pets")), None)
    assert (data.name, data.classes) == ("pets", ("cat", "dog"))
    assert (contents(data.train), contents(data.test)) == ([(0, 1), (1, 1), (2, 1)], [(3, 0), (4, 1)])
    assert data.train.images.label(2).endswith("pets: train")


def test_labels_as_text_groups_and_a_label_file(tmp_path: Path) -> None:
    saved = rows(range(4), ["b", "a", "b", "a"], datasets.Value("string"), who=["x", "x", "y", "y"])
    saved.save_to_disk(tmp_path / "one")
    cfg = hf.Config(path=str(tmp_path / "one"), columns=Roles(group="who"), test_share=0.5)
    data = hf.load(cfg, None)
    assert data.classes == ("a", "b")
    assert data.groups is not None
    assert len(data.train) == 2
    assert len(set(data.groups.tolist())) == 1
    file = text(tmp_path / "labels.csv", "id,label", "0,a", "3,b")
    with pytest.warns(LeftOut):
        data = hf.load(hf.Config(path=str(tmp_path / "one"), labels=str(file)), None)
    assert contents(data.train) == [(0, 0), (3, 1)]


def test_mistakes(tmp_path: Path) -> None:
    saved = rows(range(3), [0, None, 1])
    saved.save_to_disk(tmp_path / "one")
    with pytest.raises(DataError, match=r"row 1 of .*one: train has no label; add --skip-bad"):
        hf.load(hf.Config(path=str(tmp_path / "one")), None)
    with pytest.warns(LeftOut, match="1 of 3 examples have no label and are left out"):
        data = hf.load(hf.Config(path=str(tmp_path / "one"), skip_bad=True), None)
    assert contents(data.train) == [(0, 0), (2, 1)]
    with pytest.raises(DataError, match=r"one has no column 'labl' \(for label\); did you mean 'label'"):
        hf.load(hf.Config(path=str(tmp_path / "one"), columns=Roles(label="labl")), None)
    shutil.rmtree(tmp_path / "one")
    text(tmp_path / "one" / "state.json", "{}")
    with pytest.raises(DataError, match="one cannot be read by Hugging Face's datasets"):
        hf.load(hf.Config(path=str(tmp_path / "one")), None)


def test_a_damaged_image_is_named_by_its_row(tmp_path: Path) -> None:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    images = [{"bytes": b"no image", "path": None}, None]
    datasets.Dataset.from_dict({"image": images, "label": [0, 1]}, features).save_to_disk(tmp_path / "one")
    data = hf.load(hf.Config(path=str(tmp_path / "one")), None)
    for i, message in enumerate(("row 0 of .*one: train is no image that can be read", "row 1 of .* holds no image")):
        with pytest.raises(DataError, match=message):
            data.train.images.fetch(np.array([i]))
