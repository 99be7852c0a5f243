"""Near copies: the perceptual hash against its formula, and the search against comparing all with all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

from rte.data.check import fingerprint
from rte.data.check.near import pairs_within


def slow_hash(grey: np.ndarray) -> int:
    """The definition: the cosine transform term by term, and each of 8 x 8 frequencies against their median."""
    low = [
        sum(
            float(grey[i, j]) * math.cos(math.pi * (2 * i + 1) * u / 64) * math.cos(math.pi * (2 * j + 1) * v / 64)
            for i in range(32)
            for j in range(32)
        )
        for u in range(8)
        for v in range(8)
    ]
    middle = float(np.median(low))
    return int("".join("1" if value > middle else "0" for value in low), 2)


def picture(seed: int, side: int = 96) -> Image.Image:
    """Smooth shapes, as photographs have them."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)


def hash_of(image: Image.Image) -> tuple[np.ndarray, np.ndarray]:
    grey = fingerprint.small(np.asarray(image))[None]
    return fingerprint.perceptual(grey), fingerprint.thumbnails(grey)


def test_the_hash_is_that_of_its_definition() -> None:
    grey = np.stack([fingerprint.small(np.asarray(picture(seed))) for seed in range(3)])
    assert fingerprint.perceptual(grey).tolist() == [slow_hash(one) for one in grey]


def test_copies_are_alike_and_others_are_not() -> None:
    whole, thumb = hash_of(picture(0))
    copies = [
        picture(0).resize((50, 60)),
        picture(0).point(lambda v: min(255, v + 20)),
        picture(0).convert("L").convert("RGB"),
    ]
    for copy in copies:
        found, other = hash_of(copy)
        assert np.bitwise_count(whole ^ found) <= 4
        assert fingerprint.likeness(thumb, other) > 0.97
    assert min(int(np.bitwise_count(whole ^ hash_of(picture(seed))[0])[0]) for seed in range(1, 40)) > 7


def test_blocks_give_the_same_as_single_images() -> None:
    for channels, side in ((3, 32), (1, 32), (3, 20)):
        block = np.random.default_rng(1).integers(0, 256, (5, side, side, channels), dtype=np.uint8)
        single = np.stack([fingerprint.small(image) for image in block])
        assert np.abs(fingerprint.small_block(block) - single).max() <= 1


def test_one_colour_says_nothing() -> None:
    flat, shaped = np.full((1, 256), 90, np.uint8), hash_of(picture(3))[1]
    assert fingerprint.is_flat(np.concatenate([flat, shaped])).tolist() == [True, False]


@pytest.mark.parametrize("most", [0, 3, 4, 7])
def test_the_index_finds_what_comparing_all_with_all_finds(most: int) -> None:
    rng = np.random.default_rng(most)
    base = rng.integers(0, 2**64, 300, dtype=np.uint64)
    bits = [rng.choice(64, rng.integers(0, 10), replace=False) for _ in base]
    turned = np.array([int(h) ^ sum(1 << int(b) for b in some) for h, some in zip(base, bits, strict=True)], np.uint64)
    hashes = np.concatenate([base, turned, base[:20]])
    differing = np.bitwise_count(hashes[:, None] ^ hashes)
    slow = np.argwhere(np.triu(differing <= most, 1))
    assert pairs_within(hashes, most).tolist() == slow.tolist()


def test_no_more_bits_than_the_index_can_find() -> None:
    with pytest.raises(ValueError, match="8 bits cannot be looked for"):
        pairs_within(np.zeros(2, np.uint64), 8)
