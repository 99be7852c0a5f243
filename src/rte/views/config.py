"""The [views] section: how training images are cropped, flipped and strongly augmented."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rte.settings import Settings, setting

Strong = Literal[
    "augmix",
    "randaugment",
    "randaugment-tpu",
    "randaugment-ildoonet",
    "randaugment-fixmatch",
    "randaugment-torchvision",
]


class ViewConfig(Settings):
    """What a weak and a strong view are."""

    size: int | None = setting(
        None, "side of the square views of large images or images of differing size; none: as they are", ge=1, le=4096
    )
    pad: int = setting(4, "pixels of border added before the random crop of images that keep their size", ge=0, le=1024)
    border: Literal["zero", "reflect"] = setting("zero", "what that border shows: black, or the image mirrored")
    flip: bool = setting(True, "whether half of the views are flipped left to right")
    mirror: bool = setting(False, "predict from each image and its mirror image, the mean of both probabilities")
    scale: tuple[float, float] = Field(
        (0.08, 1.0),
        description="least and greatest share of a large image's area that a random resized crop shows",
        strict=False,
    )
    strong: Strong = setting("augmix", "how strong views are made from the first weak one")
    width: int = setting(3, "AugMix: chains of operations that are mixed", ge=1)
    severity: float = setting(
        3.0, "AugMix: greatest strength of an operation, out of 10", gt=0.1, le=10.0, search=(1.0, 10.0)
    )
    depth: int = setting(-1, "AugMix: operations per chain; -1: drawn from 1 to 3", ge=-1, le=10)
    num_ops: int | None = setting(None, "RandAugment: operations per view; none: what the chosen variant uses", ge=1)
    magnitude: float | None = setting(
        None, "RandAugment: their strength; none: what the chosen variant uses", ge=0.0, le=30.0
    )

    @model_validator(mode="after")
    def _possible(self) -> ViewConfig:
        low, high = self.scale
        if not 0.0 < low <= high <= 1.0:
            raise ValueError(
                f"scale ({low}, {high}) must be two shares of the area, the first above 0, the second at most 1"
            )
        if self.depth == 0:
            raise ValueError("depth 0 would leave every image as it is; give -1 (drawn from 1 to 3) or at least 1")
        return self
