"""How data, script and style stand in the page, so that nothing in them can become something else."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def as_script(tree: Any) -> str:
    """JSON that can stand in a <script>: no text in it can end the element or begin a comment."""
    text = json.dumps(tree, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def policy(script: str, style: str) -> str:
    """The page's content policy: its own script and style, by their digests, and pictures that are in it."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
