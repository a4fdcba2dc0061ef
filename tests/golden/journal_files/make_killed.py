"""A journal whose program was ended by kill -9 with calls open, in the current folder: running, sent to a worker and
queued, idempotent and not, with keys, with failures behind them, with a large argument."""

import os
import signal
import time
from concurrent.futures import wait
from pathlib import Path

import golden_calls as calls  # type: ignore[import-not-found]

import wattloom


def main() -> None:
    executor = wattloom.Executor(2, journal="work.journal", policy="fifo")
    remote = wattloom.function(executor=executor)
    assert remote(calls.mark).options(key="ended").remote("key-ended").result() == 1
    assert executor.submit(calls.double, 4).result() == 8
    running(executor)
    behind(executor)
    queued(executor)
    executor.sync()
    os.kill(os.getpid(), signal.SIGKILL)


def running(executor: wattloom.Executor) -> None:
    remote = wattloom.function(executor=executor)(calls.mark).options(cpu=0.5)
    remote.options(key="under-way").remote("key-running", 600.0)
    remote.options(idempotent=True, timeout=0.5, retries=1, key="again").remote("running-idempotent", 600.0)
    while not (Path("key-running").exists() and len(read("running-idempotent")) == 2):
        time.sleep(0.01)


def behind(executor: wattloom.Executor) -> None:
    """Calls that were short so far: some are placed behind one that turns out to be long, and have not begun."""
    remote = wattloom.function(executor=executor)(calls.nap).options(cpu=0.5, idempotent=True)
    wait([remote.remote(0.0) for _ in range(30)])
    remote.options(idempotent=False).remote(600.0, "napping")
    for number in range(3):
        remote.options(idempotent=False).remote(0.0, f"behind-{number}")
    while not Path("napping").exists():
        time.sleep(0.01)


def queued(executor: wattloom.Executor) -> None:
    remote = wattloom.function(executor=executor)
    executor.submit(calls.mark, "queued")
    remote(calls.mark).options(idempotent=True).remote("queued-idempotent")
    remote(calls.mark).options(key="queued").remote("key-queued")
    remote(calls.third_time).options(retries=2).remote("thrice")
    executor.submit(calls.refuse, "refused")
    executor.submit(calls.length, bytes(2_000_000), "large")
    remote(calls.mark).options(cpu=2.0, priority=5).remote("whole")
    offset = 7
    executor.submit(lambda number: number + offset, 1)  # by value: bytecode of the Python that wrote it
    unwanted = executor.submit(calls.mark, "unwanted")
    executor.sync()
    assert unwanted.cancel()


def read(name: str) -> str:
    path = Path(name)
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    main()
