"""The operations and the mixed views on one sheet: `docs/images/views.png`.

    python benchmarks/view_sheet.py --out docs/images/views.png

The pictures are a photograph and a digit that come with scikit-learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rte.views import augmix, kernels
from rte.views.augmix import AugMix
from rte.views.batch import ViewPlan
from rte.views.config import ViewConfig
from rte.views.engine import ViewEngine
from rte.views.operations import Kind, Operation
from rte.views.randaugment import TINT, VARIANTS

Pixels = NDArray[np.uint8]
SIDE, GAP, TEXT, LABEL, COLUMNS = 50, 4, 12, 80, 10
AUGMIX = {  # as strong as severity 3 allows
    Kind.AUTOCONTRAST: 0.0,
    Kind.EQUALIZE: 0.0,
    Kind.POSTERIZE: 3.0,
    Kind.SOLARIZE: 180.0,
    Kind.ROTATE: 8.0,
    Kind.SHEAR_X: 0.09,
    Kind.SHEAR_Y: 0.09,
    Kind.TRANSLATE_X: SIDE // 10,
    Kind.TRANSLATE_Y: SIDE // 10,
}
OTHERS = {  # what RandAugment has besides
    Kind.INVERT: 0.0,
    Kind.SOLARIZE_ADD: 80.0,
    Kind.ADD_SOLARIZE: 80.0,
    Kind.BRIGHTNESS: 0.4,
    Kind.CONTRAST: 0.4,
    Kind.COLOR: 0.1,
    Kind.SHARPNESS: 6.0,
    Kind.CUTOUT: SIDE // 3,
}


def photograph() -> Pixels:
    """A crop, (SIDE, SIDE, 3)."""
    from sklearn.datasets import load_sample_image

    crop = Image.fromarray(load_sample_image("china.jpg")).crop((60, 40, 440, 420))
    return np.asarray(crop.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def digit() -> Pixels:
    """A digit enlarged to (SIDE, SIDE, 1)."""
    from sklearn.datasets import load_digits

    small = (load_digits().images[2] * 255 / 16).astype(np.uint8)
    return np.asarray(Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC))[..., None]


def operation(image: Pixels, kind: Kind, value: float) -> Pixels:
    """The image after one operation."""
    op = np.full((1, 1, 1, 1), kind, np.int8)
    arg = np.array([value, 0.6, 0.4]).reshape(1, 1, 1, 1, 3)
    out = np.empty((1, 1, *image.shape), np.float32)
    alone = np.array([[[0.0, 1.0]]], np.float32)
    table = [Operation(kind, fill=TINT)] if kind == Kind.CUTOUT else augmix.TABLE
    kernels.strong(image[None], op, arg, alone, table, kernels.raw(image.shape[1], image.shape[2]), out)
    return out[0, 0].astype(np.uint8)


def mixed(image: Pixels, n: int) -> list[Pixels]:
    """n AugMix views."""
    views = AugMix()(np.stack([image] * n), seed=1)
    return list(np.round(views).astype(np.uint8))


def randomly(image: Pixels, strong: str, n: int) -> list[Pixels]:
    """n views of a RandAugment."""
    channels = image.shape[2]
    cfg = ViewConfig.model_validate({"strong": strong, "pad": 0, "flip": False})
    engine = ViewEngine(cfg, mean=(0.0,) * channels, std=(1.0,) * channels, size=(SIDE, SIDE), channels=channels)
    views = engine.render(np.stack([image] * n), np.arange(n), seed=2, epoch=0, plan=ViewPlan(1, 1))[n:]
    return list(np.round(views * 255).astype(np.uint8))


def rows() -> list[tuple[str, list[tuple[str, Pixels]]]]:
    """What the sheet shows: a label and (title, image) pairs per row."""
    photo, number = photograph(), digit()
    name = {kind: kind.name.lower().replace("_", " ") for kind in Kind}
    return [
        ("AugMix's nine", [("image", photo)] + [(name[kind], operation(photo, kind, v)) for kind, v in AUGMIX.items()]),
        ("", [("image", number)] + [(name[kind], operation(number, kind, v)) for kind, v in AUGMIX.items()]),
        ("the other ones", [(name[kind], operation(photo, kind, v)) for kind, v in OTHERS.items()]),
        ("AugMix", [("", view) for view in mixed(photo, COLUMNS)]),
        ("", [("", view) for view in mixed(number, COLUMNS)]),
        *(
            (variant.replace("-", "\n"), [("", view) for view in randomly(photo, variant, COLUMNS)])
            for variant in VARIANTS
        ),
    ]


def sheet() -> Image.Image:
    content = rows()
    heights = [SIDE + GAP + (TEXT if any(title for title, _ in cells) else 0) for _, cells in content]
    canvas = Image.new("RGB", (LABEL + COLUMNS * (SIDE + GAP), sum(heights)), "white")
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(9)
    top = 0
    for (label, cells), height in zip(content, heights, strict=True):
        draw.text((2, top + height - SIDE // 2 - 8), label, fill="black", font=font)
        for k, (title, pixels) in enumerate(cells):
            left = LABEL + k * (SIDE + GAP)
            draw.text((left, top), title, fill="black", font=font)
            canvas.paste(
                Image.fromarray(np.broadcast_to(pixels, (SIDE, SIDE, 3)).copy()), (left, top + height - SIDE - GAP)
            )
        top += height
    return canvas


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images/views.png"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    sheet().save(args.out, optimize=True)
    print(f"{args.out}: {args.out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
