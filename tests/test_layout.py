"""The rooms of the house: imports point one way, and nothing stands at the door that has a room of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rte
from rte import registry

HOME = Path(rte.__file__).parent
ORDER = (
    ("errors", "rng", "settings", "files", "jit", "presets"),
    ("data",),
    ("noise",),
    ("parts",),
    ("views",),
    ("nets",),
    ("recipes",),
    ("methods",),
    ("train",),
    ("evaluate",),
    ("audit",),
    ("code", "registry"),
    ("config",),
    ("run",),
    ("search",),
    ("compare",),
    ("report",),
    ("reproduce",),
    ("estimator",),
    ("cli", "__init__", "__main__"),
)
"""A module imports from its own row and the rows above it."""
HEIGHT = {room: height for height, row in enumerate(ORDER) for room in row}
FILES = sorted(HOME.rglob("*.py"))
LONGEST = 350
"""Lines of a file: a longer one has a second purpose."""


def room(path: Path) -> str:
    return path.relative_to(HOME).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The rooms that a file imports from, those inside functions and for type checking included."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = below if node.module == "rte" else [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "rte" and rest.split(".")[0] in HEIGHT:
                rooms.add(rest.split(".")[0])
    return rooms


@pytest.mark.parametrize("path", [path for path in FILES if path != HOME / "__init__.py"], ids=str)
def test_imports_point_one_way(path: Path) -> None:
    wrong = {other for other in imported(path) if HEIGHT[other] > HEIGHT[room(path)]}
    assert not wrong, f"{path.relative_to(HOME)} imports from {', '.join(sorted(wrong))}, which come later"


def test_a_wrong_import_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(
        "def f():\n    from rte import run\n    from rte.cli.app import app\n    import rte.train.trainer\n"
    )
    assert imported(file) == {"run", "cli", "train"}


def test_every_file_has_a_room() -> None:
    assert {room(path) for path in FILES} <= HEIGHT.keys()
    assert not [path.name for path in FILES if path.stem in ("utils", "helpers", "common", "misc")]


def test_no_file_has_grown_a_second_purpose() -> None:
    long = {str(path): n for path in FILES if (n := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST}
    assert not long


@pytest.mark.parametrize("name", registry.datasets())
def test_what_stands_in_data_is_a_dataset_or_listed_as_none(name: str) -> None:
    module = registry.dataset(name)
    missing = [part for part in ("SUMMARY", "Config", "load") if not hasattr(module, part)]
    assert not missing, (
        f"rte.data.{name} has no {', '.join(missing)}; is it one for NOT_DATASETS, or for an underscore?"
    )


WRITTEN = (
    "src",
    "tests",
    "docs",
    "tools",
    "benchmarks",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
)
"""What people read and write of the repository."""
WIDTH = 120
TEXT = {".py", ".md", ".toml"}


def test_no_line_is_too_long_to_read() -> None:
    roots = [Path(__file__).parents[1] / name for name in WRITTEN]
    files = {f for root in roots for f in ([root] if root.is_file() else root.rglob("*")) if f.suffix in TEXT}
    assert len(files) > 300
    lines = ((f, n, line) for f in files for n, line in enumerate(f.read_text("utf-8").splitlines(), 1))
    long = [
        f"{f.name}:{n}" for f, n, line in lines if len(re.split("  # (type:|noqa)", line)[0]) > WIDTH and line[0] != "|"
    ]
    assert long == [], "rows of tables alone may be longer"
