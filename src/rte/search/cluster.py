"""Ray: started here, on loopback, or joined where it runs; without usage reports, and silent."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rte.errors import ConfigError

OBJECT_STORE = 100 * 2**20
"""Bytes; states travel through files, so Ray's shared memory stays all but empty."""

KNOCK = 10.0
"""Seconds to wait for the head of a cluster to answer."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",  # the new output engine prints a banner even when told to be silent
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # an interrupt is ours to explain
    "TUNE_GLOBAL_CHECKPOINT_S": "86400",  # Ray's own experiment state is not used: see pbt.py
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_worker_niceness": "0",  # the usual 15 starves a search wherever anything else is running
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def require() -> None:
    """Say how to get Ray where it is missing."""
    if find_spec("ray") is None:
        raise ConfigError("rte tune needs Ray Tune; install robust-temporal-ensembling[tune].")


@contextmanager
def ray_cluster(address: str | None, *, dashboard: bool, log: Path) -> Iterator[Any]:
    """The module `ray`, connected. Whatever Ray prints on this side goes to the file `log`."""
    require()
    address = address or os.environ.get("RAY_ADDRESS")
    os.environ.update(QUIET)
    if address is not None:
        _knock(address)
        os.environ["RAY_NUM_REDIS_GET_RETRIES"] = "2"  # by default Ray tries for a quarter of an hour
    else:
        # Ray puts the machine's outward address in the place of a loopback one, unless told that it is no cluster
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        import ray

        settings: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": logging.CRITICAL}
        if address is None:
            settings |= {"address": "local", "_node_ip_address": "127.0.0.1"}
            settings |= {"include_dashboard": dashboard, "object_store_memory": OBJECT_STORE}
        try:
            ray.init(**settings)
        except Exception as error:  # a machine too busy to start Ray in its half minute gets a bare one
            reason = str(error).strip().split("\n")[0]
            what = "start Ray" if address is None else f"join the Ray cluster at {address}"
            raise ConfigError(f"cannot {what} ({reason}); see {log}.") from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _knock(address: str) -> None:
    """Refuse an address at which nobody answers; Ray itself would wait for long."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise ConfigError(f"--address {address}: give the head of the Ray cluster as HOST:PORT, or auto.")
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK).close()
    except OSError as error:
        raise ConfigError(
            f"nobody answers at {address} ({error.strerror or error}); start a cluster with `ray start --head` there, "
            "or leave out --address."
        ) from None


def slots(ray: Any, cpus: float, gpus: float) -> int:
    """How many trials of this size the hosts of the cluster hold at once."""
    total = 0
    for node in ray.nodes():
        free = node["Resources"]
        if node["Alive"] and free.get("CPU", 0) >= cpus and free.get("GPU", 0) >= gpus:
            total += int(min(free.get("CPU", 0) / cpus, free.get("GPU", 0) / gpus if gpus else float("inf")))
    if not total:
        raise ConfigError(
            f"no host of the Ray cluster has {cpus:g} cores and {gpus:g} GPUs for a trial; "
            "lower --cpus-per-trial or --gpus-per-trial."
        )
    return total
