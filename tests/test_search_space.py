"""The search space comes from the declarations of the settings, for every method."""

from __future__ import annotations

import pytest
from conftest import quick

from rte import registry
from rte.errors import ConfigError
from rte.parts.schedules import Constant
from rte.search.space import Choice, Range, applied, declared, from_tree, is_schedule, narrow, offered, to_tree


def test_rte_searches_what_the_paper_searches() -> None:
    assert declared("rte") == {
        "train.lr": Range(1e-5, 0.1),
        "train.weight_decay": Range(5e-5, 0.002),
        "method.q": Range(0.0, 1.0),
        "method.jsd_weight": Range(0.0, 20.0),
        "method.ecr_weight": Range(0.0, 5.0),
        "method.views": Choice((3, 4, 5, 6, 7, 8, 9, 10)),
    }


@pytest.mark.parametrize("method", registry.methods())
def test_every_method_can_be_tuned_to_the_ends_of_its_space(method: str) -> None:
    config, space = quick(method), declared(method)
    assert {"train.lr", "train.weight_decay"} <= set(space)
    for end in (0, -1):
        values = {k: d.values[end] if isinstance(d, Choice) else (d.low, d.high)[end] for k, d in space.items()}
        tuned = applied(config, values)
        for key, value in values.items():
            section, name = key.split(".")
            now = getattr(getattr(tuned, section), name)
            assert (now.value if is_schedule(method, key) else now) == value
    assert from_tree(to_tree(space)) == space


def test_values_are_constants_and_leave_all_else_alone() -> None:
    config = quick("elr")
    tuned = applied(config, {"train.lr": 0.02, "method.weight": 5, "method.beta": 0.9})
    assert tuned.train.lr == Constant(value=0.02)
    assert tuned.method.weight == Constant(value=5.0)  # type: ignore[attr-defined]
    assert tuned.method.beta == 0.9  # type: ignore[attr-defined]
    assert applied(tuned, {"train.lr": 0.05, "method.weight": 3.0, "method.beta": 0.7}) == applied(config, {})
    assert is_schedule("elr", "method.weight")
    assert not is_schedule("elr", "method.beta")


def test_the_search_can_be_narrowed() -> None:
    config, space = quick("rte"), declared("rte")
    texts = ["train.lr=[0.01, 0.2]", "method.views=[2, 3]", "method.q=keep"]
    narrowed = narrow(space, texts, config)
    assert narrowed["train.lr"] == Range(0.01, 0.2)
    assert narrowed["method.views"] == Choice((2, 3))
    assert "method.q" not in narrowed
    assert list(narrowed) == [key for key in space if key != "method.q"]
    assert narrow(space, [], config) == space


def test_views_are_searched_where_they_declare_a_range_and_somebody_asks() -> None:
    config, space = quick("rte"), declared("rte")
    assert offered(config) == {"views.severity": Range(1.0, 10.0)}
    assert "views.severity" not in narrow(space, [], config), "the paper does not search it"
    found = narrow(space, ["views.severity=[1, 5]"], config)
    assert found == {**space, "views.severity": Range(1.0, 5.0)}
    assert applied(config, {"views.severity": 4.5}).views.severity == 4.5  # type: ignore[attr-defined]
    assert not is_schedule("rte", "views.severity")
    with pytest.raises(ConfigError, match=r"views\.severity = 11"):
        narrow(space, ["views.severity=[1, 11]"], config)
    with pytest.raises(ConfigError, match=r"'views\.width' is not searched"):
        narrow(space, ["views.width=[1, 3]"], config)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("method.veiws=[2]", "'method.veiws' is not searched; did you mean 'method.views'?"),
        ("train.batch=[2, 3]", "'train.batch' is not searched"),
        ("train.lr=0.1", "lower and the upper end"),
        ("train.lr=[0.2, 0.1]", "lower and the upper end"),
        ("train.lr=[0.1, 0.2, 0.3]", "lower and the upper end"),
        ("method.views=[]", "ordered list"),
        ("method.views=['a']", "ordered list"),
        ("method.views", "section.key=value"),
    ],
)
def test_a_wrong_limit_is_refused(text: str, part: str) -> None:
    with pytest.raises(ConfigError, match="--s") as error:
        narrow(declared("rte"), [text], quick("rte"))
    assert part in str(error.value)


def test_limits_beyond_what_a_setting_allows_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.beta = 1\.5"):
        narrow(declared("elr"), ["method.beta=[0.5, 1.5]"], quick("elr"))
    with pytest.raises(ConfigError, match="nothing to search"):
        narrow(declared("ce"), ["train.lr=keep", "train.weight_decay=keep"], quick("ce"))
