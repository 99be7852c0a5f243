"""Chromium without a window, driven over its own protocol through two pipes: no driver, no package, no port."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from fcntl import F_DUPFD, fcntl
from itertools import count
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe""".split()  # noqa: SIM905
SECONDS = 60
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, "End": 35, "Home": 36, "Enter": 13, "Tab": 9}


class Browser:
    """One page. `events` are what it reported since the last `open`: what the console said, what was refused."""

    def __init__(self, home: Path) -> None:
        assert PROGRAM is not None
        (theirs_in, self.to), (self.come, theirs_out) = os.pipe(), os.pipe()
        high = [fcntl(end, F_DUPFD, 10) for end in (theirs_in, theirs_out)]  # so that 3 and 4 are free in the shell
        os.close(theirs_in)
        os.close(theirs_out)
        start = f'exec "$@" 3<&{high[0]} 4>&{high[1]}'  # the browser reads from 3 and writes to 4
        command = ["bash", "-c", start, "bash", PROGRAM, *FLAGS, f"--user-data-dir={home}", "about:blank"]
        none = subprocess.DEVNULL
        self.process = subprocess.Popen(command, pass_fds=high, stdin=none, stdout=none, stderr=none)
        for end in high:
            os.close(end)
        self.numbers, self.rest, self.session = count(1), b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.session = ""
        self.call("Browser.close")
        self.process.wait(SECONDS)
        os.close(self.to)
        os.close(self.come)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data) :]
        while (answer := self._read()).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = os.read(self.come, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(self, path: Path, anchor: str = "") -> None:
        """A file, until it has been loaded."""
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.absolute().as_uri() + anchor)
        self.wait(lambda: self.js("document.readyState === 'complete' && location.protocol === 'file:'"))

    def js(self, expression: str) -> Any:
        """The value of an expression in the page."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"])
        return told["result"].get("value")

    def text(self, selector: str) -> str:
        """What an element says."""
        found: str = self.js(f"document.querySelector({json.dumps(selector)}).textContent.trim()")
        return found

    def wait(self, found: Callable[[], Any]) -> Any:
        """Until something is so."""
        until = time.monotonic() + SECONDS
        while not (value := found()):
            assert time.monotonic() < until, "what the page should come to has not come"
            time.sleep(0.02)
        return value

    def press(self, *keys: str) -> None:
        """Keys, one after another: letters or names of keys."""
        for key in keys:
            about: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def click(self, selector: str) -> None:
        """In the middle of an element, as a finger or a mouse does."""
        found = (
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const r = e.getBoundingClientRect();"
            f" return [r.x + r.width / 2, r.y + r.height / 2]; }})(document.querySelector({json.dumps(selector)}))"
        )
        x, y = self.js(found)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screen(self, width: int, height: int, *, dark: bool = False) -> None:
        """As large, and as dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])

    def picture(self, path: Path) -> None:
        """What is seen now, as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """What the console, the content policy or a script that failed had to say."""
        self.js("1")
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [json.dumps(event["params"])[:1500] for event in self.events if event.get("method") in kinds]
