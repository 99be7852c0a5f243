"""Image files are read once before training: at the size it takes, without those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from photos import SMALL
from test_data_check_near import picture

from rte.config import RunConfig, merge, resolve
from rte.data._useless import LeftOut
from rte.data.check.findings import HardlyTwo
from rte.data.files import FileImages, decode
from rte.data.ids import whole
from rte.errors import DataError
from rte.run.build import Prepared, load_dataset, prepare
from rte.run.decoded import state_of
from rte.run.folder import read_config, reopen
from rte.run.frozen import Keep
from rte.run.start import start


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(6):
            picture(10 * k + i, 90 + 10 * i).save(tmp_path / "photos" / name / f"{i}.jpg")
    return tmp_path / "photos"


def spoil(photos: Path) -> None:
    (photos / "cat" / "1.jpg").write_bytes((photos / "cat" / "2.jpg").read_bytes()[:600])
    (photos / "dog" / "5.jpg").write_text("no image")


def config(photos: Path, **data: Any) -> RunConfig:
    given = {"data": {"name": "folder", "path": str(photos), **data}, "method": {"name": "ce"}}
    return resolve(None, merge(SMALL, given))


def ready(photos: Path, keep: Keep | None = None, **data: Any) -> Prepared:
    run = config(photos, **data)
    return prepare(run, load_dataset(run, None), keep)


def test_images_are_decoded_a_little_above_the_side_of_the_views(photos: Path) -> None:
    prepared = ready(photos)
    files = whole(prepared.dataset.train.images)[0]
    assert isinstance(files, FileImages)
    assert prepared.config.data.model_dump()["shorter"] == files.shorter == 48
    assert np.array_equal(files.fetch(np.array([3]))[0], decode(files.paths[3], 3, 48))
    assert len(files._cache) == 12, "all are in memory before training begins"
    again = RunConfig.from_tree(prepared.config.tree())
    assert prepare(again, load_dataset(again, None)).config == again, "the settings say what was done"
    assert ready(photos, shorter=40).config.data.model_dump()["shorter"] == 40, "as the user says"


def test_broken_files_are_refused_all_at_once_before_anything_is_written(photos: Path, tmp_path: Path) -> None:
    spoil(photos)
    with pytest.raises(
        DataError, match=r"cat/1\.jpg cannot be read \(.*\), and 1 of 12 others cannot be read; add --sk"
    ):
        start(config(photos), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_they_are_left_out_on_request_and_known_the_next_time(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(photos)
    with pytest.warns(LeftOut, match=r"cannot be read and are left out"):
        start(config(photos, skip_bad=True, test_share=0.3), tmp_path / "run")
    monkeypatch.setattr(FileImages, "read_all", None)
    with pytest.warns(LeftOut):
        _, examiner = reopen(tmp_path / "run")
    assert len(examiner.dataset.train) + len(examiner.dataset.test or ()) == 10
    assert read_config(tmp_path / "run").data.model_dump()["shorter"] == 48


def test_changed_files_are_read_anew(photos: Path, tmp_path: Path) -> None:
    keep, paths = Keep(cache=tmp_path / "features"), sorted(map(str, photos.rglob("*.jpg")))
    before = state_of(paths)
    ready(photos, keep)
    assert (tmp_path / "images" / f"{before}.json").read_text() == "{}\n"
    spoil(photos)
    assert state_of(paths) != before
    with pytest.raises(DataError, match="add --skip-bad"):
        ready(photos, keep)


def test_classes_that_are_hardly_two_are_told(photos: Path) -> None:
    (photos / "dog").rename(photos / "Cat ")
    with pytest.warns(HardlyTwo, match="the classes 'Cat ' and 'cat' differ only by case or blanks; are they one"):
        load_dataset(config(photos), None)
