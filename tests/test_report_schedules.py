"""The figure of a search: every searched value, the population and the winner."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from rte.report.schedules import draw
from rte.search.population import Population, Record
from rte.search.space import Choice, Range, Space

SPACE: Space = {
    "train.lr": Range(0.0, 1.0),
    "train.weight_decay": Range(0.0, 0.1),
    "method.views": Choice((3, 4, 5)),
    "method.weight": Range(0.0, 10.0),
}


def population() -> Population:
    def record(member: int, start: int, parent: int, score: float, lr: float) -> Record:
        values = {"train.lr": lr, "train.weight_decay": 0.05, "method.views": 4, "method.weight": 1.0}
        return Record(member, start, start + 2, parent, values, score, "x")

    records = [
        record(0, 0, 0, 0.1, 0.3),
        record(1, 0, 1, 0.2, 0.5),
        record(0, 2, 1, 0.4, 0.6),
        record(1, 2, 1, 0.3, 0.5),
    ]
    return Population(SPACE, size=2, interval=2, epochs=4, seed=0, records=records)


def test_one_panel_per_value_with_all_members_and_the_winner(tmp_path: Path) -> None:
    figure = draw(population(), 0, tmp_path / "schedules.png")
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["learning rate", "weight decay", "$N^*$", "method.weight"]
    lines = [list(zip(*line.get_data(), strict=True)) for line in panels[0].lines]
    assert lines == [
        [(0, 0.3), (2, 0.6), (4, 0.6)],  # member 0
        [(0, 0.5), (2, 0.5), (4, 0.5)],  # member 1
        [(0, 0.5), (2, 0.6), (4, 0.6)],  # the winner's lineage: member 1, then member 0
    ]
    assert all(line.get_drawstyle() == "steps-post" for line in panels[0].lines)
    low, high = panels[0].get_ylim()
    assert low < 0 < 1 < high
    assert panels[2].get_ylim()[0] < 3
    assert [panel.get_xlabel() for panel in panels] == ["", "epoch", "epoch", "epoch"]  # the lowest of each column
    with Image.open(tmp_path / "schedules.png") as image:
        assert image.width > image.height > 100
