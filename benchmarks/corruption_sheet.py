"""Every corruption at every severity on one sheet: rows are corruptions, columns the clean image and severities 1 to 5.

    python benchmarks/corruption_sheet.py --out docs/images/corruptions.png
    python benchmarks/corruption_sheet.py --data-dir DIR --out FILE     with images of CIFAR-10 instead

Without --data-dir the pictures are crops of the two photographs that come with scikit-learn, reduced to 32 x 32.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps

from rte.evaluate.corruptions import NAMES, SEVERITIES, corrupt

Pixels = NDArray[np.uint8]
ZOOM, GAP, LABEL, HEAD = 2, 2, 118, 16
CROPS = (("china.jpg", (60, 40, 380)), ("flower.jpg", (150, 30, 360)))  # left, top, side


def photographs(side: int) -> Pixels:
    """Two crops, (2, side, side, 3)."""
    from sklearn.datasets import load_sample_image

    crops = []
    for name, (left, top, width) in CROPS:
        picture = Image.fromarray(load_sample_image(name)).crop((left, top, left + width, top + width))
        crops.append(np.asarray(picture.resize((side, side), Image.Resampling.LANCZOS)))
    return np.stack(crops)


def cifar(folder: Path) -> Pixels:
    """The first two test images of CIFAR-10."""
    from rte.data.cifar10 import Config, load

    test = load(Config(), folder).test
    assert test is not None
    return np.asarray(test.images.fetch(np.arange(2)))


def sheet(images: Pixels, frost: Path | None) -> Image.Image:
    """Two pictures side by side in each cell."""
    side = images.shape[1] * ZOOM
    cell = len(images) * side + GAP
    width, height = LABEL + (1 + len(SEVERITIES)) * (cell + GAP), HEAD + len(NAMES) * (side + GAP)
    canvas = Image.new("RGB", (width, height), "white")
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(11)
    for column, title in enumerate(["clean", *(f"severity {s}" for s in SEVERITIES)]):
        draw.text((LABEL + column * (cell + GAP), 1), title, fill="black", font=font)
    for row, name in enumerate(NAMES):
        top = HEAD + row * (side + GAP)
        draw.text((4, top + side // 2 - 6), name, fill="black", font=font)
        versions = [images, *(corrupt(images, name, s, seed=0, frost=frost) for s in SEVERITIES)]
        for column, version in enumerate(versions):
            for k, pixels in enumerate(version):
                picture = Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST)
                canvas.paste(picture, (LABEL + column * (cell + GAP) + k * side, top))
    return canvas


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with CIFAR-10")
    parser.add_argument("--frost", type=Path, help="folder with the published photographs of frost")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    images = photographs(args.side) if args.data_dir is None else cifar(args.data_dir)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    # Five bits a channel look the same at this size and make the file a good deal smaller.
    ImageOps.posterize(sheet(images, args.frost), 5).point(lambda v: v | v >> 5).save(args.out, optimize=True)


if __name__ == "__main__":
    main()
