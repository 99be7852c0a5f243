"""Code that is not part of the package: where a name says it is, what it was, and whether it may run.

    my.py:MyMethod         a file
    mypackage.nets:build   a module that Python finds, also from the folder one is in
    fancy                  an entry point of an installed package, in the group rte.methods or rte.nets

Nothing is imported, not even looked for by Python, before `trusted` says so.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from rte.errors import ConfigError, UntrustedCode, did_you_mean

Kind = Literal["method", "net"]
GROUPS: Mapping[Kind, str] = {"method": "rte.methods", "net": "rte.nets"}
WHAT: Mapping[Kind, str] = {"method": "the method", "net": "the network"}
Check = Callable[[str, Any], None]
"""Refuses, in a sentence about the name, what is no method or no network."""


class CodeChanged(UserWarning):
    """Code outside the package is not what it was when a run began."""


@dataclass(frozen=True)
class Code:
    """What a name stands for, and what a run folder records of it."""

    value: Any
    origin: Mapping[str, str | None]
    adopted: bool = False
    """Whether the running program gave it, so that it need not be looked for."""


_loaded: dict[tuple[Kind, str], Code] = {}


def is_foreign(kind: Kind, name: str) -> bool:
    """Whether a name, which is none of the package's own, stands for other code."""
    if kind == "net" and name.startswith("timm:"):  # rte.nets.timm makes these
        return False
    return ":" in name or name.endswith(".py") or name in installed(kind)


def canonical(name: str) -> str:
    """The name with the whole path of its file, so that it means the same from every folder."""
    place, colon, attribute = name.rpartition(":")
    return f"{Path(place).expanduser().resolve()}:{attribute}" if colon and place.endswith(".py") else name


def without_folder(name: str) -> str:
    """The name with its file's name alone: what stays the same where a folder is moved."""
    place, colon, attribute = name.rpartition(":")
    return f"{Path(place).name}:{attribute}" if colon and place.endswith(".py") else name


def found_again(name: str, folders: Iterable[Path]) -> str:
    """The name with the first of the folders that holds its file, where that is no longer in its own."""
    file, short = Path(name.rpartition(":")[0]), without_folder(name)
    if short == name or file.exists():
        return name
    holding = [folder for folder in folders if (folder / file.name).is_file()]
    return canonical(str(holding[0] / short)) if holding else name


def installed(kind: Kind) -> dict[str, metadata.EntryPoint]:
    """The entry points of installed packages, by name."""
    return {point.name: point for point in metadata.entry_points(group=GROUPS[kind])}


def fetch(kind: Kind, name: str, check: Check, *, trusted: bool) -> Any:
    """The class or function of that canonical name; without `trusted` only if it runs in this process already."""
    known = _loaded.get((kind, name))
    if known is not None and (known.adopted or not trusted):
        return known.value
    if not trusted:
        raise UntrustedCode(
            f"{WHAT[kind]} is {_whose(kind, name)}, code that is not part of rte; to run it, say that you trust it "
            "with --trust-code (in Python trust_code=True)."
        )
    place, _, attribute = name.rpartition(":")
    if name.endswith(".py") or (place and not attribute):
        raise ConfigError(f"{WHAT[kind]} {name}: say what in it is meant, as in {place or name}:NAME.")
    if not place:
        code = _from_package(installed(kind)[name])
    elif place.endswith(".py"):
        source = _read(kind, Path(place))
        digest = hashlib.sha256(source).hexdigest()
        if known is not None and known.origin["sha256"] == digest:
            return known.value
        module = _run(Path(place), source, digest)
        code = Code(_find(module, attribute, name), {"name": name, "file": place, "sha256": digest})
    else:
        module = _import(place, name)
        code = Code(_find(module, attribute, name), _origin(name, module))
    check(name, code.value)
    _loaded[kind, name] = code
    return code.value


def adopt(kind: Kind, value: Any, check: Check) -> str:
    """The name under which a class or function of the running program is known from now on."""
    known_as = value if hasattr(value, "__qualname__") else type(value)
    base = name = f"{known_as.__module__}:{known_as.__qualname__}"
    number = 1
    while (kind, name) in _loaded and _loaded[kind, name].value is not value:
        number += 1
        name = f"{base}#{number}"
    if (kind, name) in _loaded:
        return name
    check(name, value)
    _loaded[kind, name] = Code(value, _origin(name, sys.modules.get(known_as.__module__)), adopted=True)
    return name


def origin(kind: Kind, name: str) -> dict[str, str | None] | None:
    """What a run folder records of code that was loaded; nothing of the package's own."""
    known = _loaded.get((kind, name))
    return None if known is None else {"kind": kind, **known.origin}


def changes(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is to be said where code is no longer what was recorded."""
    known = {(each.get("kind"), without_folder(str(each.get("name")))): str(each.get("sha256")) for each in before}
    pairs = [(record, known.get((record["kind"], without_folder(record["name"])))) for record in now]
    return [
        f"{record['file']} has changed since the run began (its sha256 was {old[:12]}, now it is "
        f"{str(record['sha256'])[:12]}); what follows is by the new code."
        for record, old in pairs
        if old is not None and old != str(record.get("sha256"))
    ]


def missing(record: Mapping[str, Any]) -> str | None:
    """What is to be said where a package is not installed whose entry point was recorded."""
    kind: Kind = "net" if record.get("kind") == "net" else "method"
    if "code" not in record or record.get("name") in installed(kind):
        return None
    package = " ".join(str(record[key]) for key in ("package", "version") if record.get(key))
    return f"{WHAT[kind]} is {record.get('name')} of the package {package}, which is not installed; install it."


# ---- where it is


def _whose(kind: Kind, name: str) -> str:
    """The name, with the package that brings it: known without importing it."""
    point = installed(kind).get(name)
    if point is None:
        return name
    return f"{name} ({point.value}" + (f" of {point.dist.name} {point.dist.version})" if point.dist else ")")


def _read(kind: Kind, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise ConfigError(
            f"{WHAT[kind]} {path} cannot be read ({reason}); give its path, or put it into the folder of the run."
        ) from None


def _run(path: Path, source: bytes, digest: str) -> ModuleType:
    """The file as a module: exactly the bytes that were read. What lies beside it can be imported."""
    module = ModuleType(f"rte_code_{path.stem}_{digest[:12]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where annotations of settings are looked up
    _search(path.parent)
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise ConfigError(f"{_where(error, str(path))}: {_told(error)}; mend it.") from error
    return module


def _import(place: str, name: str) -> ModuleType:
    _search(Path.cwd())
    try:
        return import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise ConfigError(f"{_where(error)}: {_told(error)}; install it.") from error
        raise ConfigError(
            f"{name}: there is no module {error.name}; install its package, or start from the folder that holds it."
        ) from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{_where(error)}: {_told(error)}; mend it.") from error


def _search(folder: Path) -> None:
    """Let modules of a folder be found; last, so that they stand in the place of no others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _from_package(point: metadata.EntryPoint) -> Code:
    module = _import(point.module, point.value)
    value = _find(module, point.attr, point.value)
    package = {"package": point.dist.name, "version": point.dist.version} if point.dist else {}
    return Code(value, {**_origin(point.name, module), "code": point.value, **package})


def _find(module: ModuleType, attribute: str, name: str) -> Any:
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        hint = did_you_mean(attribute, own) if own else "it defines nothing."
        raise ConfigError(f"{name}: there is no {attribute} in {module.__file__}; {hint}") from None


_packages = cache(metadata.packages_distributions)  # a quarter of a second


def _origin(name: str, module: ModuleType | None) -> dict[str, str | None]:
    """File, sha256, package and version of a module, as far as there are any."""
    file = getattr(module, "__file__", None)
    if module is None or not file or not Path(file).is_file():
        return {"name": name}
    top = module.__name__.partition(".")[0]
    package = next(iter(_packages().get(top, [])), None)
    version = metadata.version(package) if package else getattr(sys.modules.get(top), "__version__", None)
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return {"name": name, "file": str(file), "sha256": digest, "package": package, "version": version}


# ---- what is wrong with it


def _told(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(text.split())}" if text else type(error).__name__


def _where(error: BaseException, file: str | None = None) -> str:
    """File and line of a mistake: in the file that was asked for, or wherever it came to light."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    frames = [f for f in frames if f.filename != __file__]
    own = [f for f in frames if f.filename == file] or frames
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else str(file)


def blame(error: BaseException, name: str) -> ConfigError:
    """What code that failed when it was used says, and where."""
    return ConfigError(f"{name} failed at {_where(error)}: {_told(error)}; mend it.")


def takes(function: Any, *names: str) -> bool:
    """Whether a function can be called with so many positional arguments."""
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        return False
    return True
