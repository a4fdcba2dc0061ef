"""The executors the benchmarks compare, each started the way its users do and behind the same few verbs.

Owns how a contender is started (two workers, loopback only, no dashboard, no telemetry) and the work they are given.
It must not know what is measured. Run as a program it starts one contender, says when the first result is there, and
stays until its input ends: so imports here are few and late, because start-up is measured through this file.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

WORKERS = 2
LOOPBACK = "127.0.0.1"
# A journal in memory would flatter us, and /tmp often is in memory.
ON_DISK = "/var/tmp" if os.path.isdir("/var/tmp") else None
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on Linux too: or Ray swaps loopback for an address others can reach
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning about the future of a default
    "RAY_DEDUP_LOGS": "0",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s",  # a busy machine is no news here
    "DO_NOT_TRACK": "1",
}


class MissingContender(RuntimeError):
    """A contender that cannot be started here; the message says why."""


def nothing(number: int) -> int:
    """The no-op: what comes back shows that each call ran once."""
    return number


def burn(rounds: int) -> float:
    """A fixed amount of Python work, not of time; returns the CPU seconds it took."""
    begin = time.thread_time()
    total = 0
    for number in range(rounds):
        total = (total * 31 + number) & 0xFFFF
    return time.thread_time() - begin


class FuturesPool:
    """Anything that is a `concurrent.futures.Executor`."""

    def __init__(self, executor: Any, has_chunks: bool) -> None:
        self.submit: Callable[..., Any] = executor.submit
        self.has_chunks = has_chunks
        self._executor = executor

    def gather(self, futures: Iterable[Any]) -> list[Any]:
        return [future.result() for future in futures]

    def map(self, function: Callable[..., Any], items: list[int]) -> list[Any]:
        return list(self._executor.map(function, items))

    def chunked(self, function: Callable[..., Any], items: list[int], size: int) -> list[Any]:
        return list(self._executor.map(function, items, chunksize=size))


class RayPool:
    """Ray's own idiom: a remote call for each item, one `get` for all."""

    has_chunks = False

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._remote: dict[Callable[..., Any], Any] = {}

    def submit(self, function: Callable[..., Any], argument: int) -> Any:
        remote = self._remote.get(function)
        if remote is None:
            remote = self._remote[function] = self._ray.remote(function)
        return remote.remote(argument)

    def gather(self, references: list[Any]) -> list[Any]:
        return list(self._ray.get(references))

    def map(self, function: Callable[..., Any], items: list[int]) -> list[Any]:
        return self.gather([self.submit(function, item) for item in items])


class DaskPool:
    """Dask's client. Calls are marked impure, or it would run equal ones once; that also spares it the hashing."""

    has_chunks = False

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], argument: int) -> Any:
        return self._client.submit(function, argument, pure=False)

    def gather(self, futures: list[Any]) -> list[Any]:
        return list(self._client.gather(futures))

    def map(self, function: Callable[..., Any], items: list[int]) -> list[Any]:
        return self.gather(self._client.map(function, items, pure=False))


Pool = FuturesPool | RayPool | DaskPool


@contextlib.contextmanager
def scratch(where: str | None = None) -> Iterator[str]:
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="wlb-", dir=where)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def process_pool() -> Iterator[Pool]:
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(WORKERS) as executor:
        yield FuturesPool(executor, has_chunks=True)


@contextlib.contextmanager
def loky() -> Iterator[Pool]:
    import loky

    # By default its workers leave after ten idle seconds, and an idle pool of none is not what is asked.
    executor = loky.get_reusable_executor(max_workers=WORKERS, timeout=120)
    try:
        yield FuturesPool(executor, has_chunks=True)
    finally:
        executor.shutdown(wait=True)


@contextlib.contextmanager
def ray() -> Iterator[Pool]:
    import ray

    with scratch() as folder:
        ray.init(
            num_cpus=WORKERS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=256 * 2**20,
            _node_ip_address=LOOPBACK,
            _temp_dir=folder,
        )
        try:
            yield RayPool(ray)
        finally:
            ray.shutdown()


@contextlib.contextmanager
def dask() -> Iterator[Pool]:
    from distributed import Client, LocalCluster

    with scratch() as folder:
        cluster = LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            host=LOOPBACK,
            dashboard_address=None,
            worker_dashboard_address=None,
            silence_logs=50,
            local_directory=folder,
        )
        with cluster, Client(cluster) as client:
            yield DaskPool(client)


@contextlib.contextmanager
def parsl() -> Iterator[Pool]:
    from parsl.concurrent import ParslPoolExecutor
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    with scratch() as folder:
        executor = HighThroughputExecutor(
            label="htex",
            address=LOOPBACK,
            loopback_address=LOOPBACK,
            max_workers_per_node=WORKERS,
            cores_per_worker=1,
            encrypted=False,
            provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
        )
        config = Config([executor], run_dir=folder, usage_tracking=0, strategy="none", initialize_logging=False)
        with ParslPoolExecutor(config=config) as pool:
            yield FuturesPool(pool, has_chunks=False)


@contextlib.contextmanager
def wattloom(durability: Literal["process", "machine"] = "process", meter: str = "auto") -> Iterator[Pool]:
    import wattloom

    if not hasattr(wattloom, "Executor"):
        raise MissingContender(f"{wattloom.__file__} has no Executor: install a Wattloom that runs functions locally")
    with scratch(ON_DISK) as folder:
        journal = os.path.join(folder, "journal.db")
        with wattloom.Executor(max_workers=WORKERS, journal=journal, durability=durability, meter=meter) as executor:
            yield FuturesPool(executor, has_chunks=True)


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """No executor at all: what the interpreter and this file cost by themselves."""
    yield None


PEERS: dict[str, Callable[[], Any]] = {
    "ProcessPoolExecutor": process_pool,
    "loky": loky,
    "Ray": ray,
    "Dask": dask,
    "Parsl": parsl,
}
OURS: dict[str, Callable[[], Any]] = {
    "wattloom": wattloom,
    "wattloom machine-durable": lambda: wattloom(durability="machine"),
    "wattloom unmetered": lambda: wattloom(meter="off"),
}
BARE = "bare interpreter"


def contender(name: str) -> Any:
    """A context manager that starts it, and stops it."""
    return {**PEERS, **OURS, BARE: nobody}[name]()


def environment() -> dict[str, str]:
    """For a process that starts a contender: workers find this file and their programs, and nobody phones home."""
    here = os.path.dirname(os.path.abspath(__file__))
    modules = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH")) if part)
    programs = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    return {**os.environ, **QUIET, "PYTHONPATH": modules, "PATH": programs}


def chosen_peers(asked: str) -> list[str]:
    """Peers by name, in any case, separated by commas."""
    known = {name.lower(): name for name in PEERS}
    wanted = [name.strip().lower() for name in asked.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"unknown peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return [known[name] for name in wanted]


def report_missing(missing: dict[str, str]) -> None:
    """Loudly: a comparison with fewer peers than asked for must not pass for a whole one."""
    for name, reason in missing.items():
        print(f"*** {name.upper()} IS MISSING FROM THIS RUN: {reason}", file=sys.stderr)


def hold(name: str) -> None:
    """Start it, say `first` at the first result and `warm` after some hundred, then idle until the input ends."""
    with contender(name) as pool:
        if pool is not None:
            pool.gather([pool.submit(nothing, 0)])
        print("first", flush=True)
        if pool is not None:
            pool.gather([pool.submit(nothing, number) for number in range(300)])
        print("warm", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    hold(sys.argv[1])
