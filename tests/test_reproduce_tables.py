"""The experiments as data: every cell resolves at both sizes, and the numbers agree where the paper repeats itself."""

from __future__ import annotations

import pytest

from rte.errors import ConfigError
from rte.methods.base import Progress
from rte.reproduce.define import MEASURES, OBJECTIVE, Cell, Size, Table, chosen, find
from rte.reproduce.plan import Options, configure
from rte.reproduce.systems import SYMMETRIC
from rte.reproduce.tables import SAMPLED, TABLES

CELLS = [(size, table, cell) for table in TABLES for size in table.sizes for cell in table.cells]
NAMES = {
    "main", "mce", "patrini", "confusion", "counts", "ablations", "nstar", "batchsize", "histograms", "reliability",
    "human", "imagenet", "webvision", "food101n",
}  # fmt: skip


def paper(table: str, row: str, column: str, measure: str = "accuracy") -> object:
    return next(c.paper[measure] for c in find(table).cells if (c.row, c.column) == (row, column))


def test_every_table_of_the_paper_is_there_once() -> None:
    assert len(TABLES) == len(NAMES)
    assert {table.name for table in TABLES} == NAMES
    for table in TABLES:
        titles = [cell.title for cell in table.cells]
        assert len(set(titles)) == len(titles)
        assert all(cell.paper.keys() <= set(table.measures) <= MEASURES.keys() for cell in table.cells)


@pytest.mark.parametrize(
    ("size", "table", "cell"), CELLS, ids=[f"{size}: {table.name}: {cell.title}" for size, table, cell in CELLS]
)
def test_every_cell_resolves(size: Size, table: Table, cell: Cell) -> None:
    config = configure(table, cell, Options(size=size), seed=3)
    assert config.seed == 3
    assert config.data_name == cell.data
    wanted = cell.settings.get("noise", {})
    assert {key: getattr(config.noise, key) for key in wanted} == wanted
    assert config.method_name == cell.settings.get("method", {}).get("name", "rte")
    for key, value in cell.settings.get("method", {}).items():
        if key != "name":
            found = getattr(config.method, key)
            expected = config.train.batch if value == "train.batch" else value
            assert (found.at(Progress(0, 1)) if hasattr(found, "at") else found) == expected


def test_the_paper_repeats_itself() -> None:
    """Numbers that stand in two tables of the paper are the same in both."""
    assert paper("main", "RTE", "CIFAR-10 80 %") == paper("ablations", "RTE", "80 %") == 93.09
    assert paper("main", "CE+JSD+ECR", "CIFAR-10 80 %") == paper("ablations", "with CCE (q = 0)", "80 %") == 76.08
    assert paper("ablations", "N* = 2, batch-sync", "80 %") == paper("nstar", "RTE", "N* = 2") == 91.90
    assert paper("main", "RTE (PreAct ResNet-18)", "CIFAR-10 80 %") == 92.00
    assert paper("mce", "RTE", "80 %", "mce") == 13.50
    assert paper("confusion", "RTE", "60 %") == 93.99


def test_shapes_of_the_paper_s_tables() -> None:
    assert len(find("ablations").cells) == 15
    assert [cell.paper["accuracy"] for cell in find("ablations").cells].count("fail") == 2
    assert len(find("nstar").cells) == 8
    assert len(find("batchsize").cells) == 6
    assert len(find("human").cells) == 6 * 3
    assert sum(cell.search for cell in find("main").cells) == 4
    assert sum(given for given, _ in SAMPLED.values()) == 50_000
    assert sum(right for _, right in SAMPLED.values()) == 20_000


def test_methods_that_are_compared_take_over_what_rte_has() -> None:
    table = find("main")
    cell = next(cell for cell in table.cells if cell.row == "GCE" and cell.column == "CIFAR-10 40 %")
    config = configure(table, cell, Options(size="paper"), 0)
    assert config.method.q.at(Progress(8, 13)) == pytest.approx(0.6)  # type: ignore[attr-defined]
    assert "q" in OBJECTIVE


def test_the_laptop_size_leaves_out_and_only_brings_back() -> None:
    main = find("main")
    assert {cell.row for cell in main.at("laptop") if cell.data == "cifar100"} == {"CE", "GCE", "RTE"}
    assert len(main.at("laptop")) == 12 + 9 + 2 * len(SYMMETRIC)
    assert {cell.data for cell in main.at("laptop", ["CIFAR-100"])} == {"cifar100"}
    assert not any(cell.search for cell in main.at("laptop", ["RTE"]))
    assert [cell.row for cell in main.at("laptop", ["preact"])] == ["RTE (PreAct ResNet-18)"]
    assert [cell.column for cell in find("confusion").at("laptop")] == ["40 %", "60 %", "70 %"]
    assert [cell.column for cell in find("nstar").at("laptop")] == [f"N* = {n}" for n in (1, 2, 4, 8)]


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="there is no table 'mian'; did you mean 'main'"):
        find("mian")
    rows = "CE, DivideMix, GCE, PENCIL, RTE, SELF"
    with pytest.raises(ConfigError, match=f"no cell of 'patrini' contains 'elr'; its rows are: {rows}"):
        find("patrini").at("laptop", ["elr"])
    with pytest.raises(ConfigError, match="'imagenet' exists at size paper only"):
        find("imagenet").at("laptop")
    with pytest.raises(ConfigError, match="--size huge is neither paper nor laptop"):
        chosen("main", "huge")  # type: ignore[arg-type]


def test_all_is_every_table_of_a_size() -> None:
    assert {table.name for table in chosen("all", "paper")} == NAMES
    assert {table.name for table in chosen("all", "laptop")} == NAMES - {"imagenet", "webvision", "food101n"}


def test_every_system_that_the_paper_quotes_is_run() -> None:
    """The rows of prior work in tables 1, 4, 6 and 7 of the paper, with its numbers."""
    assert len(SYMMETRIC) == 17
    assert paper("main", "SELF", "CIFAR-10 80 %") == 69.91
    assert paper("main", "PENCIL", "CIFAR-100 80 %") == "fail"
    assert paper("main", "Forward T", "CIFAR-100 40 %") == 31.05
    assert paper("patrini", "PENCIL", "40 %") == 91.16
    assert [cell.row for cell in find("webvision").cells].count("Iterative-CF") == 1
    assert paper("food101n", "CleanNet (hard)", "Food-101N") == 83.47
