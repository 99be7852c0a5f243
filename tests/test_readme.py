"""The code blocks of the README and of the page on scikit-learn run as they are printed.

Those of docs/extending.md have a file of their own, tests/test_extending.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


NUMBER = r"\d+\.\d+"


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("page", "number"), [("README.md", 0), ("README.md", 1), ("docs/estimator.md", 0), ("docs/vectors.md", 0)]
)
def test_python_block(page: str, number: int, tmp_path: Path) -> None:
    code = blocks(page)[number]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    for said, found in zip(printed, done.stdout.splitlines(), strict=False):
        assert re.sub(NUMBER, "#", found) == re.sub(NUMBER, "#", said)
        numbers = [[float(one) for one in re.findall(NUMBER, line)] for line in (found, said)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.02), "what the page says, as far as machines agree"
    assert page != "README.md" or len(printed) == done.stdout.count("\n"), "the page says all that is printed"


def test_every_python_block_is_covered() -> None:
    assert len(blocks("README.md")) == 2
    assert len(blocks("docs/extending.md")) == 3
    assert len(blocks("docs/estimator.md")) == 1
    assert len(blocks("docs/vectors.md")) == 1


def test_every_link_points_at_something() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
