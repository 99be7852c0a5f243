"""Signals that ask a run to stop: it ends its step, saves its state, and can be gone on with."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stop_signals(ask: Callable[[str], None]) -> Iterator[None]:
    """Within, the first SIGINT or SIGTERM calls `ask` with its name; a second one acts as usual.

    Python lets the main thread alone handle signals: in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        ask(signal.Signals(number).name)
        signal.signal(number, old[number])

    old: dict[int, Any] = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
