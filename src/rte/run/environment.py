"""Where and with what a run is made."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rte


def environment(data_dir: Path | None) -> dict[str, Any]:
    """Where and with what a run was made."""
    return {
        "rte": rte.__version__,
        "git": _git_state(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "command": sys.argv,
        "data_dir": None if data_dir is None else str(data_dir.resolve()),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _git_state() -> str | None:
    """The commit of the source tree the package runs from, with "+" if it was changed; None for an installed wheel."""
    git = partial(subprocess.run, cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=5)
    try:
        if git(["git", "ls-files", "environment.py"]).stdout.strip() != "environment.py":
            return None
        commit = git(["git", "rev-parse", "--short", "HEAD"]).stdout.strip()
        return commit + ("+" if git(["git", "status", "--porcelain", "-uno"]).stdout.strip() else "")
    except (OSError, subprocess.SubprocessError):
        return None
