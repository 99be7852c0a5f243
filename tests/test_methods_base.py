"""The contract, for every file in methods/."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from conftest import QUICK_METHODS
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from rte import registry
from rte.errors import ConfigError
from rte.methods.base import Method, Progress, Terms
from rte.settings import Settings
from rte.views.batch import Batch, ViewPlan

METHODS = registry.methods()
PAGES = Path(__file__).parents[1] / "docs" / "methods"
HEADINGS = [
    "In one sentence",
    "Idea",
    "Objective",
    "Use",
    "Hyperparameters",
    "What is logged",
    "Differs from the paper, and why",
    "When not to use it",
    "Results",
    "Reference",
]


def make(name: str, build: Callable[[], nn.Module] = tiny.normed, **cfg: object) -> Method:
    cls = registry.method(name)
    torch.manual_seed(0)
    trusted = range(tiny.K) if "trusted examples" in cls.needs else ()
    return cls(cls.Config.model_validate({**QUICK_METHODS.get(name, {}), **cfg}), tiny.task(build, trusted=trusted))


def whole_batch(method: Method, t: Progress, part: int = 0) -> Batch:
    """The batch that the loader would make of a whole pass."""
    one, plan = method.passes(t)[part], method.views(t)
    index = list(range(tiny.N)) if one.index is None else one.index.tolist()
    second = None
    if one.second is not None and len(one.second):
        second = tiny.batch(one.second.tolist(), plan.second or plan)
    return tiny.batch(index, plan, second=second)


@pytest.mark.parametrize("name", METHODS)
def test_every_file_is_a_method_one_step_below_the_base(name: str) -> None:
    cls = registry.method(name)
    assert cls.__bases__ == (Method,)
    assert cls.summary
    assert "\n" not in cls.summary
    assert issubclass(cls.Config, Settings)
    assert all(field.description for field in cls.Config.model_fields.values())
    lines = len(inspect.getsource(inspect.getmodule(cls)).splitlines())  # type: ignore[arg-type]
    assert 40 <= lines <= (120 if name == "rte" else 150)


@pytest.mark.parametrize("name", METHODS)
def test_methods_do_not_import_each_other(name: str) -> None:
    source = inspect.getsource(inspect.getmodule(registry.method(name)))  # type: ignore[arg-type]
    nodes = list(ast.walk(ast.parse(source)))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    assert {module for module in modules if module.startswith("rte.methods")} == {"rte.methods.base"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_with_the_fixed_headings(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == HEADINGS
    assert f"<!-- hyperparameters:{name} -->" in text
    assert f"<!-- results:{name} -->" in text


def test_every_page_is_of_a_method() -> None:
    assert sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "README") == METHODS


def test_a_name_may_be_written_with_a_hyphen_and_a_wrong_one_is_corrected() -> None:
    assert registry.method("co-teaching") is registry.method("co_teaching")
    with pytest.raises(ConfigError, match="no method 'dividmix'; did you mean 'dividemix'"):
        registry.method("dividmix")


@pytest.mark.parametrize("epoch", [0, 12])
@pytest.mark.parametrize("name", METHODS)
def test_a_step_has_a_finite_loss_and_changes_the_weights(name: str, epoch: int) -> None:
    method, t = make(name), tiny.at(epoch, 20)
    method.epoch_start(t, tiny.sweep(method))
    before = [p.clone() for p in method.parameters() if p.requires_grad]
    terms = method.step(whole_batch(method, t), t, tiny.sgd(method))
    method.after_step(t)
    assert all(torch.isfinite(torch.as_tensor(value)) for value in terms.values())
    assert torch.as_tensor(terms["loss"]).requires_grad
    after = [p for p in method.parameters() if p.requires_grad]
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_half_precision_gives_finite_gradients(name: str) -> None:
    method, t = make(name), tiny.at(12, 20)
    method.epoch_start(t, tiny.sweep(method))
    with torch.autocast("cpu", torch.bfloat16):
        method.step(whole_batch(method, t), t, tiny.sgd(method))
    assert all(p.isfinite().all() for p in method.parameters())


class Single(tiny.Normed):
    """A network that stays in single precision, so that whatever half precision changes is the method's."""

    def features(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return super().features(x)

    def with_features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", enabled=False):
            return super().with_features(x)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return super().forward(x)


@pytest.mark.parametrize("name", METHODS)
def test_what_a_method_makes_of_logits_is_in_single_precision(name: str) -> None:
    found = {}
    for half in (False, True):
        method, t = make(name, Single), tiny.at(12, 20)
        for p in method.parameters():
            p.data.mul_(3)  # sure of some images, where half precision has few values
        method.epoch_start(t, tiny.sweep(method))
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            terms = method.step(whole_batch(method, t), t, lambda loss: None)
        found[half] = {key: tiny.number(value) for key, value in terms.items()}
    assert found[True] == pytest.approx(found[False], rel=1e-5, abs=1e-7)


class NoDoubles(TorchDispatchMode):
    """Refuses float64, as Apple's GPUs do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        assert not (isinstance(out, Tensor) and out.dtype == torch.float64 and out.ndim), func
        return out


@pytest.mark.parametrize("name", METHODS)
def test_nothing_that_goes_to_a_device_is_in_double_precision(name: str) -> None:
    method, t = make(name), tiny.at(12, 20)
    moved: list[torch.dtype] = []
    method._apply(lambda x: moved.append(x.dtype) or x)  # type: ignore[func-returns-value]
    assert torch.float64 not in moved
    method.epoch_start(t, tiny.sweep(method))
    batch, update = whole_batch(method, t), tiny.sgd(method)
    with NoDoubles():
        method.step(batch, t, update)
        method.after_step(t)


class NoQuestions(TorchDispatchMode):
    """Refuses what waits for a device: a number of a tensor, or how many of its elements are not 0."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert "_local_scalar_dense" not in str(func), func
        assert "nonzero" not in str(func), func
        return func(*args, **(kwargs or {}))


QUIET = ("ce", "gce", "elr", "rte", "label_guessing", "augmentation_anchoring", "mean_teacher", "fixmatch")
"""Methods whose step needs no number on the processor."""


@pytest.mark.parametrize("name", QUIET)
def test_a_step_asks_the_device_for_nothing(name: str) -> None:
    method, t = make(name), tiny.at(12, 20)
    batch, update = whole_batch(method, t), tiny.sgd(method)
    with NoQuestions():
        method.step(batch, t, update)
        method.after_step(t)


@pytest.mark.parametrize("name", METHODS)
def test_predictions_and_trust_are_well_formed(name: str) -> None:
    method = make(name)
    method.eval()
    x = tiny.images(range(5))
    for predict in (method.predict, *method.networks().values()):
        logits = predict(x)
        assert logits.shape == (5, tiny.K)
        assert logits.isfinite().all()
    trust = method.trust(tiny.sweep(method))
    assert trust.shape == (tiny.N,)
    assert ((trust >= 0) & (trust <= 1)).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_state_is_the_checkpoint(name: str) -> None:
    """A method restored between two steps takes the same second step as one that went on."""
    t = tiny.at(12, 20)
    method = make(name)
    update = tiny.sgd(method, lr=0.0)  # momentum is the trainer's to keep
    method.epoch_start(t, tiny.sweep(method))
    method.step(whole_batch(method, t), t, update)
    method.after_step(t)
    state = tiny.copy_state(method)
    restored = make(name)
    restored.load_state_dict(state)
    assert "y" not in state
    losses = []
    for one in (method, restored):
        torch.manual_seed(1)
        losses.append(one.step(whole_batch(one, t), t, tiny.sgd(one))["loss"])
        one.after_step(t)
    assert torch.equal(torch.as_tensor(losses[0]), torch.as_tensor(losses[1]))
    assert not tiny.changed(restored, tiny.copy_state(method))


class Fixed(Method):
    """The smallest method: a constant prediction."""

    def __init__(self) -> None:
        super().__init__(None, tiny.task())
        self.logits = torch.nn.Parameter(torch.zeros(tiny.K))

    def loss(self, batch: Batch, t: Progress) -> Terms:
        return {"loss": self.logits.sum() + 3.0, "part": 1.0}

    def predict(self, x: Tensor) -> Tensor:
        return torch.tensor([0.7, 0.1, 0.1, 0.1]).log().expand(len(x), -1)


def test_by_default_a_step_is_one_update_of_the_loss() -> None:
    seen: list[Tensor] = []
    terms = Fixed().step(tiny.batch([0]), tiny.at(), seen.append)
    assert [tiny.number(loss) for loss in seen] == [3.0]
    assert terms["part"] == 1.0


def test_by_default_one_weak_view_of_everything_is_asked_for() -> None:
    method = Fixed()
    assert method.views(tiny.at()) == ViewPlan(weak=1, strong=0)
    (only,) = method.passes(tiny.at())
    assert only.index is None
    assert only.second is None
    assert method.epoch_start(tiny.at(), tiny.sweep(method)) == {}


def test_by_default_trust_is_the_probability_of_the_given_label() -> None:
    method = Fixed()
    expected = torch.where(tiny.Y == 0, 0.7, 0.1)
    torch.testing.assert_close(method.trust(tiny.sweep(method)), expected)


def test_the_base_leaves_loss_and_predict_to_the_method() -> None:
    bare = Method(None, tiny.task())
    with pytest.raises(NotImplementedError):
        bare.loss(tiny.batch([0]), tiny.at())
    with pytest.raises(NotImplementedError):
        bare.predict(tiny.images([0]))


@pytest.mark.parametrize(("epoch", "j", "fraction"), [(0, 0, 0.0), (0, 5, 0.05), (5, 0, 0.5), (9, 9, 0.99)])
def test_fraction_is_the_share_of_the_run_that_lies_behind(epoch: int, j: int, fraction: float) -> None:
    assert Progress(epoch, 10, j, 10).fraction == pytest.approx(fraction)
