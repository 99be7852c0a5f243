"""How Ray is asked for, without starting it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rte.errors import ConfigError
from rte.search import cluster
from rte.search.cluster import QUIET, ray_cluster, require, slots


def host(cpus: float, gpus: float = 0.0, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": cpus} | ({"GPU": gpus} if gpus else {})}


def ray_with(*hosts: dict[str, Any]) -> Any:
    return SimpleNamespace(nodes=lambda: list(hosts))


@pytest.mark.parametrize(
    ("hosts", "cpus", "gpus", "expected"),
    [
        ([host(2)], 1, 0, 2),
        ([host(2)], 0.5, 0, 4),
        ([host(3), host(3)], 2, 0, 2),  # no trial spans two hosts
        ([host(64, 8)], 1, 0.25, 32),
        ([host(8, 8)], 2, 0.25, 4),
        ([host(8, 1), host(64)], 1, 1, 1),
        ([host(2), host(2, alive=False)], 1, 0, 2),
    ],
)
def test_slots(hosts: list[dict[str, Any]], cpus: float, gpus: float, expected: int) -> None:
    assert slots(ray_with(*hosts), cpus, gpus) == expected


def test_trials_that_fit_nowhere_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no host .* has 4 cores and 0 GPUs .*--cpus-per-trial"):
        slots(ray_with(host(2), host(2)), 4, 0)
    with pytest.raises(ConfigError, match=r"1 cores and 0\.5 GPUs"):
        slots(ray_with(host(2)), 1, 0.5)


def test_where_ray_is_missing_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"install robust-temporal-ensembling\[tune\]"):
        require()


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:port", ":6379"])
def test_an_address_that_is_none_is_refused(address: str, fake: FakeRay, tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=f"--address {address}: give the head .* as HOST:PORT"),
        ray_cluster(address, dashboard=False, log=tmp_path / "log"),
    ):
        pass


def test_an_address_at_which_nobody_answers_is_refused(fake: FakeRay, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        pytest.raises(ConfigError, match=rf"nobody answers at 127\.0\.0\.1:{port} .*ray start --head"),
        ray_cluster(f"127.0.0.1:{port}", dashboard=False, log=tmp_path / "log"),
    ):
        pass
    assert fake.given == {}


class FakeRay(SimpleNamespace):
    """Notes how it is started."""

    def __init__(self, fail: Exception | None = None) -> None:
        super().__init__(given={}, fail=fail, down=0)

    def init(self, **settings: Any) -> None:
        print("chatter of Ray")
        self.given = settings
        if self.fail:
            raise self.fail

    def shutdown(self) -> None:
        self.down += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(cluster, "find_spec", lambda name: name)
    for name in (*QUIET, "RAY_ADDRESS", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_NUM_REDIS_GET_RETRIES"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    return ray


def test_started_here_on_loopback_without_dashboard_or_reports(
    fake: FakeRay, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ray_cluster(None, dashboard=False, log=tmp_path / "ray" / "log"):
        environment = dict(os.environ)
    assert fake.given["address"] == "local"
    assert fake.given["_node_ip_address"] == "127.0.0.1"
    assert fake.given["include_dashboard"] is False
    assert fake.down == 1
    assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
    assert environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert capsys.readouterr() == ("", "")
    assert "chatter" in (tmp_path / "ray" / "log").read_text()


@pytest.fixture
def head() -> Iterator[str]:
    """An address at which somebody answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("by_option", [True, False])
def test_joined_where_it_runs(
    fake: FakeRay, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_option: bool
) -> None:
    if not by_option:
        monkeypatch.setenv("RAY_ADDRESS", head)
    with ray_cluster(head if by_option else None, dashboard=True, log=tmp_path / "log"):
        assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ
    assert fake.given["address"] == head
    assert not {"include_dashboard", "_node_ip_address", "object_store_memory"} & set(fake.given)


def test_a_cluster_that_turns_us_away(fake: FakeRay, head: str, tmp_path: Path) -> None:
    fake.fail = ConnectionError("could not connect\nand much more")
    with (
        pytest.raises(ConfigError, match=rf"cannot join the Ray cluster at {head} \(could not connect\); see .*log"),
        ray_cluster(head, dashboard=False, log=tmp_path / "log"),
    ):
        pass


def test_a_machine_too_busy_to_start_ray(fake: FakeRay, tmp_path: Path) -> None:
    fake.fail = Exception("The current node timed out during startup. This could happen because")
    with (
        pytest.raises(
            ConfigError, match=r"cannot start Ray \(The current node timed out during startup.*\); see .*log"
        ),
        ray_cluster(None, dashboard=False, log=tmp_path / "log"),
    ):
        pass
