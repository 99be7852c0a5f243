"""Image files of every kind that turns up, sound and broken."""

from __future__ import annotations

import os
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rte.data import files
from rte.data.files import FileImages, decode, image_files, probe, reduced
from rte.errors import DataError

RNG = np.random.default_rng(2)


def smooth(height: int, width: int) -> np.ndarray:
    """A picture that JPEG hardly changes."""
    down, across = np.mgrid[0:height, 0:width]
    return np.stack([down * 200 // max(height - 1, 1), across * 200 // max(width - 1, 1), 0 * down + 90], -1).astype(
        np.uint8
    )


def saved(path: Path, pixels: np.ndarray, **options: object) -> Path:
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tif", ".ppm"])
def test_lossless_formats_come_back_exactly(tmp_path: Path, suffix: str) -> None:
    pixels = RNG.integers(0, 256, (7, 5, 3), dtype=np.uint8)
    path = saved(tmp_path / f"a{suffix}", pixels, **({"lossless": True} if suffix == ".webp" else {}))
    assert np.array_equal(decode(path, 3), pixels)


def test_jpeg(tmp_path: Path) -> None:
    pixels = smooth(40, 60)
    found = decode(saved(tmp_path / "a.jpg", pixels, quality=95), 3)
    assert found.shape == (40, 60, 3)
    assert np.abs(found.astype(int) - pixels).mean() < 3


def test_one_pixel(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", np.array([[[1, 2, 3]]], np.uint8))
    assert decode(path, 3).tolist() == [[[1, 2, 3]]]
    assert decode(path, 3, shorter=1).tolist() == [[[1, 2, 3]]]


def test_grey_as_colour_and_as_itself(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (4, 6), dtype=np.uint8)
    path = saved(tmp_path / "a.png", pixels)
    assert np.array_equal(decode(path, 1), pixels[..., None])
    assert np.array_equal(decode(path, 3), np.repeat(pixels[..., None], 3, axis=2))


def test_colour_as_grey(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]], np.uint8))
    assert decode(path, 1)[0, :, 0].tolist() == [76, 150, 29]


def test_bilevel(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255]], np.uint8)).convert("1").save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", 1).ravel().tolist() == [0, 255]


def test_palette(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 0])
    image.putdata([1, 0])
    image.save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", 3).tolist() == [[[200, 100, 0], [10, 20, 30]]]


def test_palette_with_transparency_lies_on_white(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 0])
    image.putdata([1, 0])
    image.save(tmp_path / "a.png", transparency=0)
    assert decode(tmp_path / "a.png", 3).tolist() == [[[200, 100, 0], [255, 255, 255]]]


def test_alpha_lies_on_white(tmp_path: Path) -> None:
    pixels = np.array([[[0, 0, 0, 255], [0, 0, 0, 0], [100, 50, 0, 51]]], np.uint8)
    path = saved(tmp_path / "a.png", pixels)
    found = decode(path, 3)
    assert found[0, :2].tolist() == [[0, 0, 0], [255, 255, 255]]
    np.testing.assert_allclose(found[0, 2], 0.2 * np.array([100, 50, 0]) + 0.8 * 255, atol=1)


def test_grey_with_alpha_lies_on_white(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.array([[[9, 255], [9, 0]]], np.uint8), mode=None).save(path)
    with Image.open(path) as image:
        assert image.mode == "LA"
    assert decode(path, 1).ravel().tolist() == [9, 255]
    assert FileImages.open([path]).channels == 1


def test_sixteen_bits(tmp_path: Path) -> None:
    values = np.array([[0, 128, 129, 257, 32768, 65535]], np.uint16)
    path = saved(tmp_path / "a.png", values)
    assert decode(path, 1).ravel().tolist() == np.rint(values / 257).astype(int).ravel().tolist()
    assert decode(path, 3).shape == (1, 6, 3)
    assert FileImages.open([path]).channels == 1


def test_integers_of_more_than_sixteen_bits_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.tif", np.array([[70000, 1]], np.int32))
    with pytest.raises(DataError, match=r"a\.tif cannot be read \(it holds integers of more than 16 bits\)"):
        decode(path, 1)


def test_floats_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.tif", np.zeros((2, 2), np.float32))
    with pytest.raises(DataError, match=r"a\.tif cannot be read \(it holds floating-point values\); replace"):
        decode(path, 1)


def test_cmyk_jpeg(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(np.full((16, 16, 3), (200, 60, 30), np.uint8)).convert("CMYK").save(path, quality=95)
    with Image.open(path) as image:
        assert image.mode == "CMYK"
    assert np.abs(decode(path, 3).astype(int) - (200, 60, 30)).max() < 8


def test_first_frame_of_an_animation(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert decode(tmp_path / "a.gif", 3)[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
def test_exif_orientation(tmp_path: Path, turn: int, suffix: str) -> None:
    upright = smooth(24, 40)
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.transpose(1, 0, 2),
        6: np.rot90(upright), 7: np.rot90(upright, 2).transpose(1, 0, 2), 8: np.rot90(upright, -1),
    }[turn]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = turn
    path = tmp_path / f"a{suffix}"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, quality=95, exif=exif)
    found = decode(path, 3)
    assert found.shape == upright.shape
    assert np.abs(found.astype(int) - upright).mean() < 4
    assert probe([path], None, need_colour=True) == ((24, 40), False)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_is_ignored(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.jpg", smooth(8, 8), exif=b"Exif\0\0MM\0*\xff\xff\xff\xff" + b"\xff" * 20)
    assert decode(path, 3).shape == (8, 8, 3)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".bmp", ".tif"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.6])
def test_truncated_file_is_named(tmp_path: Path, suffix: str, share: float) -> None:
    path = saved(tmp_path / f"cut{suffix}", RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=rf"cut\{suffix} (cannot be read|is no image).*take it out of the dataset"):
        decode(path, 3)


def test_text_and_absent_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no image")
    with pytest.raises(DataError, match=r"a\.png is no image that can be read; replace it or take it out"):
        decode(tmp_path / "a.png", 3)
    with pytest.raises(DataError, match=r"b\.png does not exist; put the image back or take it out"):
        FileImages.open([tmp_path / "b.png"])


def test_postscript_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(DataError, match=r"a\.png is no image"):
        decode(tmp_path / "a.png", 3)


def test_image_too_large_to_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "a.png", smooth(1500, 1000))
    with pytest.raises(
        DataError, match=r"a\.png has 2 megapixels, more than the 1 that are allowed; set data.megapixels"
    ):
        decode(path, 3, megapixels=1)
    assert decode(path, 3, megapixels=2).shape == (1500, 1000, 3)
    jpeg = saved(tmp_path / "a.jpg", smooth(1500, 1000))
    assert decode(jpeg, 3, 200, megapixels=1).shape == (300, 200, 3), "it is decoded at a quarter"
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match=r"a\.png has 2 megapixels"):
        decode(path, 3)


def png(path: Path, size: tuple[int, int], depth: int, kind: int, row: bytes, clear: bytes = b"") -> Path:
    """A PNG (width, height) of equal rows, of any size, without making it in memory; `clear` is what is transparent."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(b"\0" + row) for _ in range(size[1])) + packer.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, kind, 0, 0, 0))
    extra = chunk(b"tRNS", clear) if clear else b""
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", data) + chunk(b"IEND", b""))
    return path


GREY, RGB, GREY_ALPHA, RGB_ALPHA = 0, 2, 4, 6
"""What a PNG's numbers are."""


@pytest.mark.parametrize(
    ("depth", "kind", "values", "clear", "expected"),
    [
        (16, RGB, [200 * 257, 100 * 257, 50 * 257] * 2, [], [[200, 100, 50]] * 2),
        (16, RGB_ALPHA, [200 * 257, 0, 0, 0, 0, 0, 0, 65535], [], [[255, 255, 255], [0, 0, 0]]),
        (16, GREY_ALPHA, [1000, 65535, 1000, 0], [], [[3, 3, 3], [255, 255, 255]]),
        (16, GREY, [1000, 65535], [], [[4, 4, 4], [255, 255, 255]]),
        (16, GREY, [1000, 300], [1000], [[255, 255, 255], [1, 1, 1]]),
        (8, GREY, [10, 20], [10], [[255, 255, 255], [20, 20, 20]]),
    ],
    ids=["rgb", "rgb alpha", "grey alpha", "grey", "grey with a transparent value", "eight bits with one"],
)
def test_pngs_of_all_depths(
    tmp_path: Path, depth: int, kind: int, values: list[int], clear: list[int], expected: list[list[int]]
) -> None:
    letter = "H" if depth == 16 else "B"
    row, hidden = struct.pack(f">{len(values)}{letter}", *values), struct.pack(f">{len(clear)}H", *clear)
    path = png(tmp_path / "a.png", (2, 1), depth, kind, row, hidden)
    assert decode(path, 3)[0].tolist() == expected


@pytest.mark.parametrize("kind", ["WEBP", "TIFF", "PNG", "MPO"])
def test_the_first_of_several_pictures_in_a_file(tmp_path: Path, kind: str) -> None:
    red, blue = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    path = tmp_path / ("a.jpg" if kind == "MPO" else f"a.{kind.lower()}")
    red.save(path, format=kind, save_all=True, append_images=[blue], **({"lossless": True} if kind == "WEBP" else {}))
    assert np.abs(decode(path, 3).astype(int) - [255, 0, 0]).max() < 3


def test_a_small_file_of_400_megapixels_is_refused_unless_it_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = png(tmp_path / "bomb.png", (20_000, 20_000), 1, GREY, b"\xff" * 2500)
    assert path.stat().st_size < 1_000_000
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)
    with pytest.raises(DataError, match=r"bomb\.png has 400 megapixels, more than the 80 that are allowed"):
        FileImages.open([path])
    path = png(tmp_path / "large.png", (12_000, 8_000), 1, GREY, b"\xff" * 1500)
    with pytest.raises(DataError, match=r"large\.png has 96 megapixels"):
        decode(path, 1)
    images = FileImages.open([path], channels=1, shorter=64, megapixels=100)
    np.testing.assert_array_equal(images.fetch(np.array([0])), np.full((1, 64, 96, 1), 255))


@pytest.mark.parametrize(
    ("size", "shorter", "expected"),
    [((100, 200), 50, (50, 100)), ((200, 100), 50, (100, 50)), ((40, 60), 50, (40, 60)), ((3, 1000), 1, (1, 333)),
     ((50, 50), 50, (50, 50)), ((101, 99), 50, (51, 50)), ((7, 9), None, (7, 9))],
)  # fmt: skip
def test_reduced_sizes(size: tuple[int, int], shorter: int | None, expected: tuple[int, int]) -> None:
    assert reduced(size, shorter) == expected


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_reducing_keeps_the_picture(tmp_path: Path, suffix: str) -> None:
    path = saved(tmp_path / f"a{suffix}", smooth(400, 640), quality=95)
    found = decode(path, 3, shorter=50)
    assert found.shape == (50, 80, 3)
    assert np.abs(found.astype(int) - smooth(50, 80)).mean() < 4


def test_reducing_a_turned_picture(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path / "a.jpg", np.ascontiguousarray(np.rot90(smooth(400, 640))), quality=95, exif=exif)
    images = FileImages.open([path], shorter=50)
    assert images.size == (50, 80)
    assert np.abs(images.fetch(np.array([0]))[0].astype(int) - smooth(50, 80)).mean() < 4


def test_a_jpeg_is_reduced_while_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The full picture must never be in memory."""
    path = saved(tmp_path / "a.jpg", smooth(800, 800))
    seen = []
    flatten = files.flatten
    monkeypatch.setattr(files, "flatten", lambda image, channels: seen.append(image.size) or flatten(image, channels))
    decode(path, 3, shorter=90)
    assert seen == [(100, 100)]


def test_one_size_gives_one_array(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (3, 6, 5, 3), dtype=np.uint8)
    images = FileImages.open([saved(tmp_path / f"{k}.png", one) for k, one in enumerate(pixels)])
    assert (len(images), images.size, images.channels) == (3, (6, 5), 3)
    assert np.array_equal(images.fetch(np.array([2, 0, 2])), pixels[[2, 0, 2]])
    assert images.label(1) == str(tmp_path / "1.png")


def test_mixed_sizes_give_a_list(tmp_path: Path) -> None:
    first, second = smooth(6, 5), smooth(4, 9)
    images = FileImages.open([saved(tmp_path / "a.png", first), saved(tmp_path / "b.png", second)])
    assert images.size is None
    found = images.fetch(np.array([1, 0]))
    assert isinstance(found, list)
    assert np.array_equal(found[0], second)
    assert np.array_equal(found[1], first)


def test_channels_follow_all_images_unless_asked(tmp_path: Path) -> None:
    grey = [saved(tmp_path / f"{k}.png", np.zeros((4, 4 + k), np.uint8)) for k in range(4)]
    colour = saved(tmp_path / "c.png", smooth(4, 4))
    assert FileImages.open(grey).channels == 1
    assert FileImages.open([*grey, colour]).channels == 3
    assert FileImages.open([*grey, colour], channels=1).fetch(np.array([4]))[0].shape == (4, 4, 1)
    assert FileImages.open(grey, channels=3).fetch(np.array([0]))[0].shape == (4, 4, 3)


def test_probing_stops_when_all_is_known(tmp_path: Path) -> None:
    paths = [saved(tmp_path / "a.png", smooth(4, 4)), saved(tmp_path / "b.png", smooth(4, 5)), tmp_path / "absent.png"]
    assert FileImages.open(paths).size is None


def test_file_that_changed_its_size(tmp_path: Path) -> None:
    images = FileImages.open([saved(tmp_path / "a.png", smooth(4, 4))])
    saved(tmp_path / "a.png", smooth(5, 5))
    with pytest.raises(DataError, match=r"a\.png has changed its size since this run began; start the run again"):
        images.fetch(np.array([0]))


def test_of_very_many_files_some_headers_are_read_and_an_odd_one_gets_the_size_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FEW", 10)
    odd, absent = saved(tmp_path / "odd.png", smooth(8, 6)), tmp_path / "absent.png"
    path = saved(tmp_path / "a.png", smooth(4, 4))
    images = FileImages.open([path, odd, absent, *[path] * 97], channels=3)
    assert images.size == (4, 4)
    assert images.fetch(np.array([0, 1])).shape == (2, 4, 4, 3)
    with pytest.raises(DataError, match=r"absent\.png does not exist"):
        images.fetch(np.array([2]))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    seen: list[Path] = []
    original = files.decode
    monkeypatch.setattr(files, "decode", lambda path, *rest: seen.append(path) or original(path, *rest))
    return seen


def test_cache_decodes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = FileImages.open([saved(tmp_path / f"{k}.png", smooth(4, 4)) for k in range(3)])
    seen = counted(monkeypatch)
    for _ in range(3):
        images.fetch(np.arange(3))
    assert len(seen) == 3


@pytest.mark.parametrize("width", [5, 9])
def test_writing_to_what_was_fetched_leaves_the_cache_alone(tmp_path: Path, width: int) -> None:
    paths = [saved(tmp_path / "a.png", smooth(4, 5)), saved(tmp_path / "b.png", smooth(4, width))]
    images = FileImages.open(paths)
    for _ in range(2):
        found = images.fetch(np.array([0]))[0]
        assert np.array_equal(found, smooth(4, 5))
        found[:] = 0


def test_cache_never_exceeds_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = FileImages.open([saved(tmp_path / f"{k}.png", smooth(300, 400)) for k in range(5)], cache_mb=1)
    seen = counted(monkeypatch)
    for _ in range(2):
        images.fetch(np.arange(5))
    assert sum(image.nbytes for image in images._cache.values()) == 2 * 360_000
    assert len(seen) == 5 + 3


def test_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = FileImages.open([saved(tmp_path / "a.png", smooth(4, 4))], cache_mb=0)
    seen = counted(monkeypatch)
    images.fetch(np.array([0, 0]))
    assert len(seen) == 2


def test_threads_share_it(tmp_path: Path) -> None:
    pixels = RNG.integers(0, 256, (20, 60, 70, 3), dtype=np.uint8)
    images = FileImages.open([saved(tmp_path / f"{k}.png", one) for k, one in enumerate(pixels)], cache_mb=1)
    orders = [np.random.default_rng(k).permutation(20) for k in range(16)]
    with ThreadPoolExecutor(8) as pool:
        for order, found in zip(orders, pool.map(images.fetch, orders), strict=True):
            assert np.array_equal(found, pixels[order])
    held = sum(image.nbytes for image in images._cache.values())
    assert held <= 2**20
    assert images._room == 2**20 - held


def test_image_files_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("z.PNG", "b/a.jpg", "notes.txt", ".c.png", ".hidden/d.png"):
        (tmp_path / name).touch()
    assert image_files(tmp_path) == [str(tmp_path / "b/a.jpg"), str(tmp_path / "z.PNG")]
    assert image_files(tmp_path / "z.PNG") == [str(tmp_path / "z.PNG")]
    (tmp_path / "b/a.jpg").unlink()
    (tmp_path / "b/a.doc").touch()
    with pytest.raises(
        DataError, match=r"b holds no image \(1 other files were ignored\); give a folder with images \(\.jpg"
    ):
        image_files(tmp_path / "b")


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_turned_tiff_is_turned_once(tmp_path: Path, turn: int) -> None:
    pixels = RNG.integers(0, 256, (5, 9, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[files.ORIENTATION] = turn
    plain, turned = saved(tmp_path / "a.png", pixels, exif=exif), saved(tmp_path / "a.tif", pixels, exif=exif)
    np.testing.assert_array_equal(decode(turned, 3), decode(plain, 3))
    assert probe([turned], None, need_colour=True) == (decode(turned, 3).shape[:2], False)


def test_linked_folders_are_searched_and_a_circle_ends(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    saved(elsewhere / "a.png", smooth(4, 4))
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(elsewhere, target_is_directory=True)
    (elsewhere / "back").symlink_to(root, target_is_directory=True)
    found, _ = files.walk(root)
    assert found == [str(root / "link" / "a.png")]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    saved(tmp_path / "a.png", smooth(4, 4))
    real = os.scandir

    def locked(path: str) -> object:
        if str(path).endswith("below"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", locked)
    with pytest.raises(DataError, match=r"below cannot be listed \(Permission denied\)"):
        files.walk(tmp_path)


def test_many_headers_are_read_in_threads_and_bad_ones_say_nothing(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"{k}.png", smooth(4, 4)) for k in range(3)] * 200
    assert probe(paths, None, need_colour=True) == ((4, 4), False)
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    assert probe([bad, *paths, bad], None, need_colour=True) == ((4, 4), False)
    with pytest.raises(DataError, match=r"bad\.png is no image"):
        probe([bad, bad], None, need_colour=True)
