"""Images as files on disk, decoded when they are asked for.

Whatever a file holds becomes uint8 with 1 or 3 channels: the first frame, turned as its EXIF orientation says, palettes
and CMYK as RGB, 16-bit grey as round(v / 257), and anything transparent laid on white. Colour profiles are ignored.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from rte.data._paths import SUFFIXES, Paths, image_files, walk
from rte.data.types import Images, Pixels, Subset
from rte.errors import DataError

__all__ = ["SUFFIXES", "FileImages", "decode", "image_files", "walk"]

# Named one by one because Pillow would hand an EPS file to Ghostscript, that is, run it.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
GREY = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L"})
ORIENTATION = 0x0112
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
SIDEWAYS = (5, 6, 7, 8)
PROBED = 256
"""Files whose headers are read at a time."""
FEW = 20_000
"""Of more files, so many headers are read, evenly spread: a million would take minutes before a run begins."""
MEGAPIXELS = 80
"""Larger images are refused unless asked for: a file of a few kilobytes may unpack to gigabytes."""
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # we refuse those, in a sentence of our own


class FileImages:
    """The images at `paths`. Threads may share it: each decodes for itself, and all use one cache.

    `size` is the (height, width) that all images have once decoded, or None.
    `shorter`: images whose shorter side is longer are reduced to it while decoding.
    `megapixels`: images with more pixels than that, as they are decoded, are refused.
    `cache_mb`: how much memory decoded images may take. A full cache keeps what it has: training reads every image
    once an epoch, and then throwing out the oldest would throw out each image just before it is asked for again.
    """

    def __init__(
        self,
        paths: Iterable[Path | str],
        size: tuple[int, int] | None,
        channels: int,
        *,
        shorter: int | None = None,
        megapixels: int = MEGAPIXELS,
        cache_mb: int = 2048,
    ) -> None:
        self.paths = paths if isinstance(paths, Paths) else Paths(paths)
        self.shorter, self.megapixels = shorter, megapixels
        self._size = size
        self._channels = channels
        self.cache_mb, self._room = cache_mb, cache_mb * 2**20
        self._cache: dict[int, Pixels] = {}
        self._lock = Lock()

    @classmethod
    def open(
        cls,
        paths: Iterable[Path | str],
        *,
        channels: int | None = None,
        shorter: int | None = None,
        megapixels: int = MEGAPIXELS,
        cache_mb: int = 2048,
    ) -> FileImages:
        """Images of whatever size the files' headers say; `channels` None means 1 if every image is grey, else 3."""
        kept = Paths(paths)
        size, grey = probe(kept, shorter, need_colour=channels is None, megapixels=megapixels)
        colours = channels or (1 if grey else 3)
        return cls(kept, size, colours, shorter=shorter, megapixels=megapixels, cache_mb=cache_mb)

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def channels(self) -> int:
        return self._channels

    @property
    def size(self) -> tuple[int, int] | None:
        return self._size

    def label(self, i: int) -> str:
        return self.paths[i]

    def take(self, rows: NDArray[np.int64]) -> Images:
        return Subset(self, rows)

    def fetch(self, index: NDArray[np.int64]) -> Pixels | list[Pixels]:
        """Images at `index`, (B, H, W, C) if all have one size, else a list of (h, w, C); they are the caller's own."""
        if self._size is None:
            return [self._image(int(i)).copy() for i in index]
        out = np.empty((len(index), *self._size, self._channels), dtype=np.uint8)
        for row, i in enumerate(index):
            image = self._image(int(i))  # not all of many headers were read
            if image.shape != out.shape[1:]:
                if len(self) <= FEW:
                    raise DataError(f"{self.label(i)} has changed its size since this run began; start the run again.")
                image = resized(image, self._size)
            out[row] = image
        return out

    def reduced(self, shorter: int | None) -> FileImages:
        """The same files, decoded at another size; these keep what they have in memory."""
        if shorter == self.shorter:
            return self
        size = None if self._size is None else reduced(self._size, shorter)
        return FileImages(
            self.paths, size, self._channels, shorter=shorter, megapixels=self.megapixels, cache_mb=self.cache_mb
        )

    def read_all(self, tell: Callable[[int, int], None] | None = None) -> dict[int, str]:
        """Decode every file by as many threads as there are cores, and keep it in memory as far as there is room.

        Returns the files that cannot be read, and the sentence on each. tell(done, total) is told how far it is.
        """
        wrong: dict[int, str] = {}

        def read(start: int) -> int:
            rows = range(start, min(start + PROBED, len(self)))
            for i in rows:
                try:
                    self._image(i)
                except DataError as error:
                    wrong[i] = str(error)
            return len(rows)

        done = 0
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 32)) as pool:
            for n in pool.map(read, range(0, len(self), PROBED)):
                done += n
                if tell is not None:
                    tell(done, len(self))
        return dict(sorted(wrong.items()))

    def _image(self, i: int) -> Pixels:
        image = self._cache.get(i)
        if image is None:
            image = decode(self.paths[i], self._channels, self.shorter, self.megapixels)
            with self._lock:
                if i not in self._cache and image.nbytes <= self._room:
                    self._room -= image.nbytes
                    self._cache[i] = image
        return image


def probe(
    paths: Sequence[Path | str], shorter: int | None, *, need_colour: bool, megapixels: int = MEGAPIXELS
) -> tuple[tuple[int, int] | None, bool]:
    """The size that all images have once decoded, or None, and whether all are grey.

    Reads file headers only, and no more of them than it takes: a set of photographs is settled by its first few files,
    one of very many by some of them, evenly spread. Files that cannot be read say nothing, unless none can.
    """
    paths = paths[:: -(-len(paths) // FEW)] if len(paths) > FEW else paths
    header = partial(_header, megapixels=megapixels)
    sizes: set[tuple[int, int]] = set()
    grey, wrong = True, None
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        first = map(header, paths[:PROBED])  # one by one, since a few are often enough
        rest = (paths[start : start + PROBED] for start in range(PROBED, len(paths), PROBED))
        for found in chain(first, chain.from_iterable(pool.map(header, block) for block in rest)):
            if isinstance(found, DataError):
                wrong = wrong or found
                continue
            size, is_grey = found
            sizes.add(reduced(size, shorter))
            grey = grey and is_grey
            if len(sizes) > 1 and not (grey and need_colour):
                break
    if not sizes and wrong is not None:
        raise wrong
    return (sizes.pop() if len(sizes) == 1 else None), grey


def _header(path: Path | str, megapixels: int) -> tuple[tuple[int, int], bool] | DataError:
    """(height, width) once decoded, and whether the image is grey; or what is wrong with the file."""
    try:
        with _opened(path, megapixels, str(path)) as image:
            width, height = image.size
            return ((width, height) if orientation(image) in SIDEWAYS else (height, width)), image.mode in GREY
    except DataError as error:
        return error


def decode(
    file: Path | str | BinaryIO,
    channels: int,
    shorter: int | None = None,
    megapixels: int = MEGAPIXELS,
    *,
    called: str | None = None,
) -> Pixels:
    """One file as uint8 (h, w, channels); messages name it as `called`, else by its path."""
    return look(file, channels, shorter, megapixels, called=called)[0]


def look(
    file: Path | str | BinaryIO,
    channels: int,
    shorter: int | None = None,
    megapixels: int = MEGAPIXELS,
    *,
    called: str | None = None,
) -> tuple[Pixels, tuple[int, int], bool]:
    """`decode`, the image's (height, width) before it was reduced, and whether it is grey."""
    path = called or str(file)
    with _opened(file, megapixels, path) as image:
        turn, full, grey = orientation(image), (image.height, image.width), image.mode in GREY
        height, width = reduced(full, shorter)
        # A JPEG can be decoded at a half, a quarter or an eighth of its size, which is several times as fast.
        image.draft(None, (width, height))
        if image.width * image.height > megapixels * 1e6:
            raise too_large(path, image.width * image.height, megapixels)
        image.load()
        plain = flatten(image, channels)
        if plain.size != (width, height):
            plain = plain.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)
        if turn in TURNS:
            plain = plain.transpose(TURNS[turn])
        pixels = np.array(plain, dtype=np.uint8)
    return pixels.reshape(*pixels.shape[:2], channels), full[::-1] if turn in SIDEWAYS else full, grey


@contextmanager
def _opened(file: Path | str | BinaryIO, megapixels: int, path: str) -> Iterator[Image.Image]:
    """The image in a file; what goes wrong with it meanwhile becomes one sentence."""
    if Image.MAX_IMAGE_PIXELS is not None and megapixels > MEGAPIXELS:
        Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS, megapixels * 10**6)  # Pillow's own limit, for all threads
    try:
        with Image.open(file, formats=FORMATS) as image:
            yield image
    except (MemoryError, DataError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise too_large(path, int("".join(re.findall(r"\d+", str(error))[:1]) or 0), megapixels) from None
    except Exception as error:  # a damaged file can make Pillow's decoders raise nearly anything
        raise unreadable(path, error) from error


def too_large(path: Path | str, pixels: int, megapixels: int) -> DataError:
    """The sentence about an image of more pixels than anybody meant."""
    return DataError(
        f"{path} has {pixels / 1e6:.0f} megapixels, more than the {megapixels} that are allowed; set data.megapixels "
        "higher, or take it out of the dataset."
    )


def unreadable(path: Path | str, error: Exception) -> DataError:
    """The sentence about a file that cannot be decoded."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path} does not exist; put the image back or take it out of the dataset.")
    if isinstance(error, UnidentifiedImageError):
        return DataError(f"{path} is no image that can be read; replace it or take it out of the dataset.")
    return DataError(f"{path} cannot be read ({error}); replace the image or take it out of the dataset.")


def orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8, as far as it is known before decoding; a PNG's may come too late and is then 1."""
    if image.format == "TIFF":
        return 1  # Pillow turns these itself, and tells the size they then have
    if image.format == "PNG" and "exif" not in image.info:
        return 1
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except (SyntaxError, ValueError, TypeError, KeyError, IndexError, OSError):
        return 1  # damaged EXIF says nothing about the pixels


def reduced(size: tuple[int, int], shorter: int | None) -> tuple[int, int]:
    """(height, width) scaled down so that the shorter side is at most `shorter`."""
    least = min(size)
    if shorter is None or least <= shorter:
        return size
    height, width = (max(shorter, round(side * shorter / least)) for side in size)
    return height, width


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """uint8 (h, w, C) as (*size, C)."""
    plain = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])
    return np.array(plain.resize(size[::-1], Image.Resampling.BILINEAR), np.uint8).reshape(*size, pixels.shape[2])


def flatten(image: Image.Image, channels: int) -> Image.Image:
    """The image in mode L or RGB, transparent parts laid on white."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode == "F":
        raise ValueError("it holds floating-point values")
    if image.mode.startswith("I"):
        image = from_sixteen_bits(image)
    elif image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    if image.mode in ("1", "L"):
        return image.convert(mode)
    return image if image.mode == mode else image.convert("RGB").convert(mode)


def from_sixteen_bits(image: Image.Image) -> Image.Image:
    """A grey image of 16 bits in mode L: round(v / 257), so that 65535 becomes 255; a transparent value is white."""
    values = np.asarray(image).astype(np.int64)
    if values.size and (values.min() < 0 or values.max() > 65535):
        raise ValueError("it holds integers of more than 16 bits")
    grey = ((values + 128) // 257).astype(np.uint8)
    if isinstance(clear := image.info.get("transparency"), int):
        grey[values == clear] = 255
    return Image.fromarray(grey)
