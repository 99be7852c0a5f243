"""The settings of everything that consists of image files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rte.data._own import Own
from rte.data.files import MEGAPIXELS, FileImages
from rte.settings import setting


class Photos(Own):
    """How image files are read."""

    channels: Literal[1, 3] | None = setting(None, "1 grey, 3 colour; none: grey if all images are")
    shorter: int | None = setting(None, "reduce images whose shorter side is longer than this", ge=1)
    megapixels: int = setting(MEGAPIXELS, "refuse images that have more, once decoded", ge=1)
    cache_mb: int = setting(2048, "memory that decoded images may take, in MiB", ge=0)


def opened(paths: Sequence[str], cfg: Photos) -> FileImages:
    """The images at `paths`, as the settings say."""
    return FileImages.open(
        paths, channels=cfg.channels, shorter=cfg.shorter, megapixels=cfg.megapixels, cache_mb=cfg.cache_mb
    )
