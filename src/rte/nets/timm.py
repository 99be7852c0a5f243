"""Networks of the package timm, where the user has it: `--net timm:resnet18`; from nothing, as nothing is fetched."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from torch import Tensor, nn

from rte.errors import ConfigError
from rte.nets.base import Net

PREFIX = "timm:"
NAMES = ("timm:<name>",)
SUMMARY = "a network of the package timm by its name, where that is installed"


class Timm(Net):
    """timm's features (B, D) and a linear head."""

    def __init__(self, body: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(width, classes)

    def features(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return found


def build(name: str, *, channels: int, classes: int, size: tuple[int, ...], dropout: float) -> Net | None:
    if not name.startswith(PREFIX):
        return None
    if find_spec("timm") is None:
        raise ConfigError(f"{name} needs the package timm, which is not installed; pip install timm.")
    called = name.removeprefix(PREFIX)
    try:
        body = import_module("timm").create_model(
            called, pretrained=False, in_chans=channels, num_classes=0, drop_rate=dropout
        )
    except Exception as error:  # each of its networks refuses names and sizes in its own way
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"timm does not make {called} ({first}); choose another of its names.") from None
    return Timm(body, int(body.num_features), classes)
