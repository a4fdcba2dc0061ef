"""What an idle executor costs, and how long the first result takes, beside the peers and the bare interpreter.

Each contender runs in a fresh interpreter with two workers. Start-up is the time from the start of that interpreter to
the first result (import, executor, one call); rounds go in turn over all contenders and the median counts. Then, after
some hundred calls and two quiet seconds, the CPU time of the whole process tree over ten seconds, and its PSS (memory,
shared pages divided among their users), both from /proc. Both include the caller's own interpreter.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import executors
from reporting import Goal, finish

HERE = Path(__file__).parent
MARK = "WATTLOOM_BENCH_TREE"
TICK = 1.0 / os.sysconf("SC_CLK_TCK")
SETTLE_S, IDLE_S, PATIENCE_S = 2.0, 10.0, 60.0
QUICK_IDLE_S = 3.0
DEFAULT_PEERS = "ProcessPoolExecutor,loky,Ray,Dask"


class Tree:
    """All processes of a contender: the descendants of one, and whoever carries its mark, since some leave the tree."""

    def __init__(self, root: int, mark: str) -> None:
        self._root = root
        self._mark = f"{MARK}={mark}".encode()

    def members(self) -> list[int]:
        parents = {int(entry): _parent(int(entry)) for entry in os.listdir("/proc") if entry.isdigit()}
        found = {self._root} | {pid for pid in parents if self._mark in _read(pid, "environ").split(b"\0")}
        grew = True
        while grew:
            more = {pid for pid, parent in parents.items() if parent in found and pid not in found}
            found |= more
            grew = bool(more)
        return sorted(found)

    def cpu_seconds(self) -> float:
        """Own time and that of reaped children, so that a worker that ends in between is not forgotten."""
        ticks = 0
        for pid in self.members():
            fields = _stat(pid)
            ticks += sum(int(field) for field in fields[11:15])
        return ticks * TICK

    def pss_mb(self) -> float:
        total = 0
        for pid in self.members():
            for line in _read(pid, "smaps_rollup").splitlines():
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1])
        return total * 1024 / 1e6

    def kill(self) -> None:
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _read(pid: int, what: str) -> bytes:
    """Empty for a process that is gone or not ours."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> list[bytes]:
    """Fields from the state on: the name before them may hold anything."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


@contextlib.contextmanager
def started(name: str) -> Iterator[tuple[float, Tree]]:
    """A contender in a fresh interpreter: seconds to its first result, and its processes, warm and idle."""
    mark = uuid.uuid4().hex
    command = [sys.executable, str(HERE / "executors.py"), name]
    env = executors.environment() | {MARK: mark}
    with tempfile.TemporaryFile("w+") as complaints:
        begin = time.perf_counter()
        child = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True
        )
        tree = Tree(child.pid, mark)
        watchdog = threading.Timer(PATIENCE_S, tree.kill)
        watchdog.start()
        try:
            _wait_for("first", child, complaints)
            seconds = time.perf_counter() - begin
            _wait_for("warm", child, complaints)
            watchdog.cancel()
            yield seconds, tree
        finally:
            watchdog.cancel()
            _stop(child, tree)


def _wait_for(word: str, child: "subprocess.Popen[str]", complaints: IO[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == word:
            return
    child.wait()
    complaints.seek(0)
    last = complaints.read().strip().splitlines()[-1:] or [f"it ended with code {child.returncode} and said nothing"]
    raise executors.MissingContender(last[0])


def _stop(child: "subprocess.Popen[str]", tree: Tree) -> None:
    try:
        child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        tree.kill()
        child.communicate()


def bare_seconds() -> float:
    """An interpreter that only prints, to its first output."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "print('first')"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def start_up(names: list[str], rounds: int) -> tuple[dict[str, float], list[float], dict[str, str]]:
    """Median seconds to the first result; of the bare interpreter too; and who could not be started, and why."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    bare: list[float] = []
    missing: dict[str, str] = {}
    for turn in range(rounds):
        bare.append(bare_seconds())
        for name in names:
            if name in missing:
                continue
            try:
                with started(name) as (first, _):
                    seconds[name].append(first)
            except executors.MissingContender as reason:
                missing[name] = str(reason)
        print(f"start-up round {turn + 1} of {rounds} done", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in seconds.items() if name not in missing}
    return medians, bare, missing


def idle(name: str, seconds: float) -> tuple[float, float, int]:
    """Share of one core used, PSS in MB and number of processes of a warm, idle contender."""
    with started(name) as (_, tree):
        time.sleep(SETTLE_S)
        pss, processes = tree.pss_mb(), len(tree.members())
        before, begin = tree.cpu_seconds(), time.perf_counter()
        time.sleep(seconds)
        used = tree.cpu_seconds() - before
        return used / (time.perf_counter() - begin), pss, processes


def row(name: str, start_s: float | None, idle_s: float, bare: float, missing: dict[str, str]) -> dict[str, Any]:
    share, pss, processes = None, None, None
    if name not in missing:
        try:
            share, pss, processes = idle(name, idle_s)
        except executors.MissingContender as reason:
            missing[name] = str(reason)
    return {
        "what": f"{name}: MISSING" if name in missing else name,
        "start_s": start_s,
        "over_bare_s": start_s - bare if start_s is not None else None,
        "idle_core_percent": 100.0 * share if share is not None else None,
        "pss_mb": pss,
        "processes": processes,
    }


def goals(rows: list[dict[str, Any]]) -> list[Goal]:
    ours = next((row for row in rows if row["what"] == "wattloom"), {})
    return [
        Goal.at_most("idle executor, % of a core", 1.0, ours.get("idle_core_percent")),
        Goal.at_most("idle executor, MB of PSS", 100.0, ours.get("pss_mb")),
        Goal.at_most("start-up to the first result, s", 0.5, ours.get("start_s")),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--peers", default=DEFAULT_PEERS, help=f"of {', '.join(executors.PEERS)}")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--quick", action="store_true", help="one round and a short idle time, to try it out")
    options.add_argument("--data", help="not needed here")
    chosen = options.parse_args()
    names = [executors.BARE, *executors.chosen_peers(chosen.peers), *executors.OURS]
    medians, bare, missing = start_up(names, 1 if chosen.quick else chosen.rounds)
    idle_s = QUICK_IDLE_S if chosen.quick else IDLE_S
    rows = [row(name, medians.get(name), idle_s, statistics.median(bare), missing) for name in names]
    executors.report_missing(missing)
    finish("idle", rows, goals(rows))


if __name__ == "__main__":
    main()
