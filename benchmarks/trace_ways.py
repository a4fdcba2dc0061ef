"""How far a task travels: calls, files and crossings between rooms of a simulated task and of a submitted call.

Run it by itself (`python benchmarks/trace_ways.py`, `--json`); any commit's `src/` can be put on PYTHONPATH, so that
ways of two of them can be compared. What is counted is calls of Python functions in files of the package, in this
process: a worker's own are not. A crossing is a call from a file of one room (a folder of the package, or a module
beside them) to one of another.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import wattloom

PACKAGE = str(Path(wattloom.__file__).parent)
WARM, CALLS = 30, 31
SCENARIO = """
name = "way"
[machines.m]
arch = "x86_64"
cores = 4
memory_gib = 16
cores_watts = [[0, 40], [4, 80]]
[[nodes]]
machine = "m"
count = 4
[functions.f]
work_s = 10
[[arrivals]]
kind = "bursts"
bursts = {count}
every_s = 100
count = 1
functions = {{ f = 1 }}
"""


class Way:
    """Calls by file, and crossings, while it is open."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.crossings = 0
        self.open = False

    @property
    def calls(self) -> int:
        return sum(self.files.values())

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self.open or event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        here = frame.f_code.co_filename
        self.files[here] += 1
        caller = _caller(frame)
        self.crossings += caller is not None and _room(caller) != _room(here)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """In this thread, and in those that begin from now on."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]


def _caller(frame: FrameType) -> str | None:
    """The nearest file of the package: what Python does in between (a lock, a heap) is no room of ours."""
    back = frame.f_back
    while back is not None and not back.f_code.co_filename.startswith(PACKAGE):
        back = back.f_back
    return None if back is None else back.f_code.co_filename


def _room(file: str) -> str:
    return Path(file).relative_to(PACKAGE).parts[0]


def simulated(policy: str) -> dict[str, Any]:
    """What one task more costs in the same run."""
    few, more = (_run_of(count, policy) for count in (WARM, WARM + 1))
    files = more.files - few.files
    return {
        "calls": more.calls - few.calls,
        "files": len(files),
        "rooms": len({_room(file) for file in files}),
        "crossings": more.crossings - few.crossings,
    }


def _run_of(count: int, policy: str) -> Way:
    way = Way()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "way.toml")
        path.write_text(SCENARIO.format(count=count))
        wattloom.simulate(path, policy)  # what is loaded and kept by the first run
        with way.counting():
            way.open = True
            wattloom.simulate(path, policy)
            way.open = False
    return way


def submitted(policy: str, meter: str) -> dict[str, Any]:
    """The median of some calls, each from `submit` until its result is there, with a journal and one warm worker."""
    way = Way()
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        way.counting(),
        wattloom.Executor(1, journal=Path(folder, "way.journal"), policy=policy, meter=meter) as executor,
    ):
        for _ in range(WARM):
            executor.submit(abs, -1).result()
        for _ in range(CALLS):
            found.append(_one(way, lambda: executor.submit(abs, -1).result()))
    return {key: statistics.median(each[key] for each in found) for key in found[0]}


def _one(way: Way, call: Callable[[], object]) -> dict[str, float]:
    before, crossings, files = way.calls, way.crossings, Counter(way.files)
    way.open = True
    call()
    way.open = False
    used = way.files - files
    rooms = {_room(file) for file in used}
    return {
        "calls": way.calls - before,
        "files": len(used),
        "rooms": len(rooms),
        "crossings": way.crossings - crossings,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="least-joules")
    parser.add_argument("--meter", default="off", help="of the executor; a real one is read by time, not by call")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    ways = {"simulated task": simulated(asked.policy), "submitted call": submitted(asked.policy, asked.meter)}
    if asked.json:
        print(json.dumps(ways))
        return
    for name, way in ways.items():
        print(f"{name}: " + ", ".join(f"{value:g} {key}" for key, value in way.items()))


if __name__ == "__main__":
    main()
