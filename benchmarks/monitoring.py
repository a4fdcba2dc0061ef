"""What it costs to look at every process of a machine, beside psutil in the same run.

So many processes are started, half of which sleep and half of which wake up several times a second and work a little.
Then rounds go in turn over the contenders, and the CPU time of one look is taken: the census alone (who used CPU time,
in which container), the whole look (with meter, account and snapshot), and psutil asked for the CPU times and names of
all processes, which is less than either. The median counts. Beside that: how long a scrape takes, and how soon after
its start a busy process is in the snapshot of a sampler that looks once a second.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reporting import Goal, finish

from wattloom.machines.this_machine import this_machine
from wattloom.metering.estimate import for_machine
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.census import Census
from wattloom.monitoring.exposition import registry_of, text_of
from wattloom.monitoring.sampler import Sampler
from wattloom.monitoring.top_processes import Detail, Prominence

COUNTS = (100, 1_000, 4_000)
GOAL_AT = 1_000
ROUNDS = 15
WAKES_PER_S = 4.0


@contextmanager
def population(count: int) -> Iterator[None]:
    """So many children of ours; every second one is half awake."""
    children = [child for number in range(count) if (child := start(number))]
    time.sleep(1.0 + count / 1000)
    try:
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def start(number: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        chance = random.Random(number)
        while True:
            if number % 2:
                signal.pause()
            time.sleep(chance.uniform(0.5, 1.5) / WAKES_PER_S)
            sum(range(500))
    finally:
        os._exit(0)


def cost(look: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall milliseconds."""
    began, used = time.perf_counter(), time.process_time()
    look()
    return (time.process_time() - used) * 1e3, (time.perf_counter() - began) * 1e3


def contenders() -> dict[str, Callable[[], object]]:
    census, watched = Census(), accountant()
    found: dict[str, Callable[[], object]] = {
        "census": census.sample,
        "whole look": lambda: watched.sample(time.monotonic()),
    }
    try:
        import psutil
    except ImportError:
        print("*** PSUTIL IS MISSING: pip install psutil", file=sys.stderr)
        return found
    return found | {"psutil": lambda: [each.info for each in psutil.process_iter(["pid", "name", "cpu_times"])]}


def accountant() -> Accountant:
    here = this_machine()
    return Accountant(Census(), for_machine(here), here)


def rows(count: int, rounds: int) -> list[dict[str, Any]]:
    with population(count):
        looks = contenders()
        for look in looks.values():  # the first look reads who everybody is
            look()
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in looks}
        for _ in range(rounds):
            time.sleep(0.5)
            for name, look in looks.items():
                taken[name].append(cost(look))
        scrape = scrape_ms()
        new = seen_after_s() if count == GOAL_AT else None
    return [row(count, name, found, scrape, new) for name, found in taken.items()]


def row(count: int, name: str, taken: list[tuple[float, float]], scrape: float, new: float | None) -> dict[str, Any]:
    cpu = statistics.median(each for each, _ in taken)
    whole = name == "whole look"
    return {
        "processes": count,
        "what": name,
        "cpu_ms": cpu,
        "cpu_ms_p90": sorted(each for each, _ in taken)[int(len(taken) * 0.9)],
        "wall_ms": statistics.median(each for _, each in taken),
        "core_percent_at_1_hz": cpu / 10.0,
        "scrape_ms": scrape if whole else None,
        "new_process_seen_after_s": new if whole else None,
    }


def scrape_ms() -> float:
    """Text of the metrics, with a series for each of a hundred processes."""
    watched, prominence = accountant(), Prominence(Detail(100, 0.0))
    watched.sample(time.monotonic())
    time.sleep(1.0)
    shown = watched.sample(time.monotonic())
    prominent = prominence.update(shown)
    registry = registry_of(lambda: (shown, prominent))
    return min(cost(lambda: text_of(registry))[1] for _ in range(5))


def seen_after_s() -> float:
    """From the start of a busy process to the first picture with its watts, at one look a second."""
    sampler = Sampler(accountant(), 1.0)
    sampler.start()
    time.sleep(1.5)
    began, child = time.monotonic(), os.fork()
    if not child:
        while time.monotonic() < began + 30.0:
            pass
        os._exit(0)
    try:
        while time.monotonic() < began + 20.0:
            if any(each.pid == child and each.watts > 0.0 for each in sampler.latest.processes):
                return time.monotonic() - began
            time.sleep(0.005)
        return float("inf")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        sampler.stop()


def goals(found: list[dict[str, Any]]) -> list[Goal]:
    ours = next((row for row in found if row["processes"] == GOAL_AT and row["what"] == "whole look"), {})
    peer = next((row["cpu_ms"] for row in found if row["processes"] == GOAL_AT and row["what"] == "psutil"), None)
    times = peer / ours["cpu_ms"] if peer is not None and ours else None
    return [
        Goal.at_most("1,000 processes at 1 Hz, % of a core", 2.0, ours.get("core_percent_at_1_hz")),
        Goal.at_most("a scrape at 1,000 processes, ms", 50.0, ours.get("scrape_ms")),
        Goal.at_most("a new process is seen after, s (looks once a second)", 1.5, ours.get("new_process_seen_after_s")),
        Goal.at_least("psutil's cost over ours at 1,000", 1.0, times),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--counts", default=",".join(map(str, COUNTS)), help="numbers of processes")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--data", help="not needed here")
    chosen = options.parse_args()
    found = [each for count in chosen.counts.split(",") for each in rows(int(count), chosen.rounds)]
    finish("monitoring", found, goals(found))


if __name__ == "__main__":
    main()
