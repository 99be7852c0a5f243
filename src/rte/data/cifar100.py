"""CIFAR-100 (Krizhevsky, 2009): 50,000 + 10,000 colour images of 32 x 32 pixels in 100 classes of 20 groups."""

from __future__ import annotations

from pathlib import Path

from rte.data._cifar import Release, load_release
from rte.data.types import Dataset
from rte.settings import Settings, setting

SUMMARY = (
    "CIFAR-100, 32 x 32 colour, 100 classes (or 20 groups), 50,000 + 10,000 images, official binary or python release"
)
FINE = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk",
    "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip
COARSE = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables", "household_electrical_devices",
    "household_furniture", "insects", "large_carnivores", "large_man-made_outdoor_things",
    "large_natural_outdoor_scenes", "large_omnivores_and_herbivores", "medium_mammals", "non-insect_invertebrates",
    "people", "reptiles", "small_mammals", "trees", "vehicles_1", "vehicles_2",
)  # fmt: skip
RELEASE = Release(
    title="CIFAR-100",
    name="cifar100",
    binary_folder="cifar-100-binary",
    python_folder="cifar-100-python",
    train=("train",),
    test=("test",),
    labels=("coarse_labels", "fine_labels"),
    train_records=50000,
    test_records=10000,
)


class Config(Settings):
    """Which of the two labels of an image."""

    coarse: bool = setting(False, "use the 20 groups of classes as labels instead of the 100 classes")


def load(cfg: Config, data_dir: Path | None) -> Dataset:
    """CIFAR-100 in official order, with its fine or its coarse labels."""
    if cfg.coarse:
        return load_release(RELEASE, data_dir, label="coarse_labels", classes=COARSE, name="cifar100-coarse")
    return load_release(RELEASE, data_dir, label="fine_labels", classes=FINE, name="cifar100")
