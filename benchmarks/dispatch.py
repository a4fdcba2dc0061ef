"""Calls per second, round trips and the cores' time in real work, beside the executors people use.

Every contender runs in its own process with two workers; rounds go in turn over all of them, and twice over the pair
that most goals compare. Best of the rounds for rates and the median round trip; median for p99 and the shares.

Work of 1 ms and 10 ms is a fixed amount of Python, so its time depends on the machine's mood: two plain processes
without any executor do the same work right before and right after. `share` is their time over the contender's (what the
cores could give, shared or not); `share_alone` takes the time of a task alone on one core instead; `cpu_share` is the
tasks' own CPU time over the cores' time. Metering is switched on and off in turn, in pairs, and the median of the pairs
counts. `others` is how many cores other programs kept busy meanwhile: with more than a little, the figures are worth
less, and it says so.
"""

import argparse
import gc
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import executors
from executors import WORKERS, burn, nothing
from idle import MARK, TICK, Tree
from reporting import Goal, finish

PATIENCE_S = 120.0
WARM_UP, MOST_CALLS = 300, 200_000
ROUND_TRIPS, FEWEST_TRIPS, TRIPS_S = 1_000, 200, 3.0  # a slow contender makes fewer, or it would take all the time
CHUNK = 100
# Milliseconds, tasks in a slice, slices: enough tasks that the last one's wait for its neighbour is below 1%.
WORK = {"1ms": (1, 500, 2), "10ms": (10, 100, 1)}
OURS = "wattloom"
BASELINE = "ProcessPoolExecutor"
# How safe the journal is changes the cost of a call, not of the work in it.
CALLS_ONLY = "wattloom machine-durable"
QUIET_CORES = 0.1
# Nobody beats the plain processes: a share well above 1 says that they were disturbed, and reaches no goal.
MOST_SHARE = 1.05
# Pairs that scatter more than twice the goal cannot tell whether it is reached.
LOST_GOAL, MOST_SCATTER = 0.03, 0.06


class PlainProcesses:
    """Two processes that work off what they are told: what the cores can give when nobody has to dispatch."""

    def __init__(self) -> None:
        fork = multiprocessing.get_context("fork")
        self._lines = []
        for _ in range(WORKERS):
            ours, theirs = fork.Pipe()
            fork.Process(target=_work_off, args=(theirs,), daemon=True).start()
            self._lines.append(ours)

    def seconds_per_task(self, rounds: int, tasks: int, busy: int) -> float:
        """Wall seconds of one core per task, with that many processes at work."""
        begin = time.perf_counter()
        for line in self._lines[:busy]:
            line.send((rounds, tasks // busy))
        for line in self._lines[:busy]:
            line.recv()
        return (time.perf_counter() - begin) * busy / (tasks // busy * busy)


def _work_off(line: Any) -> None:
    while True:
        rounds, tasks = line.recv()
        for _ in range(tasks):
            burn(rounds)
        line.send(None)


def timed(call: Callable[[], list[Any]], expected: int) -> float:
    """Seconds of a call that gives back 0, 1, 2...: a lost or doubled one is an error, not a good figure."""
    gc.collect()
    begin = time.perf_counter()
    results = call()
    seconds = time.perf_counter() - begin
    if sorted(results) != list(range(expected)):
        raise AssertionError(f"{expected} calls gave {len(results)} results, or wrong ones")
    return seconds


def one_by_one(pool: executors.Pool, count: int) -> float:
    return timed(lambda: pool.gather([pool.submit(nothing, number) for number in range(count)]), count)


def rate(measure: Callable[[int], float], seconds: float) -> float:
    """Calls per second over about so many seconds: contenders are too different for one number of calls."""
    count = WARM_UP
    spent = measure(count)
    while spent < 0.7 * seconds and count < MOST_CALLS:
        count = min(MOST_CALLS, int(count / spent * seconds))
        spent = measure(count)
    return count / spent


def round_trips(pool: executors.Pool) -> list[float]:
    seconds: list[float] = []
    end = time.perf_counter() + TRIPS_S
    for number in range(ROUND_TRIPS):
        begin = time.perf_counter()
        if begin > end and number >= FEWEST_TRIPS:
            break
        pool.gather([pool.submit(nothing, number)])
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)


def slice_of(pool: executors.Pool, rounds: int, tasks: int) -> tuple[float, float]:
    """Core seconds that one `map` took, and CPU seconds of the tasks in it."""
    gc.collect()
    begin = time.perf_counter()
    cpu = pool.map(burn, [rounds] * tasks)
    seconds = time.perf_counter() - begin
    if len(cpu) != tasks or min(cpu) <= 0.0:
        raise AssertionError(f"{tasks} tasks gave {len(cpu)} results, or empty ones")
    return seconds * WORKERS, sum(cpu)


def shares(pool: executors.Pool, plain: PlainProcesses, rounds: int, tasks: int, slices: int) -> dict[str, list[float]]:
    """What share of the cores' time `map` turned into work, slice by slice between slices of the plain processes."""
    found: dict[str, list[float]] = {"share": [], "share_alone": [], "cpu_share": []}
    busy = plain.seconds_per_task(rounds, tasks, WORKERS)
    for _ in range(slices):
        alone = plain.seconds_per_task(rounds, tasks // 4, 1)
        cores_s, cpu_s = slice_of(pool, rounds, tasks)
        before, busy = busy, plain.seconds_per_task(rounds, tasks, WORKERS)
        # The better of the two neighbours: a disturbed one would make the contender look good.
        found["share"].append(tasks * min(before, busy) / cores_s)
        found["share_alone"].append(tasks * alone / cores_s)
        found["cpu_share"].append(cpu_s / cores_s)
    return found


def calls(pool: executors.Pool, seconds: float) -> dict[str, list[float]]:
    got = {"submit_per_s": [rate(lambda count: one_by_one(pool, count), seconds)]}
    got["map_per_s"] = [rate(lambda count: timed(lambda: pool.map(nothing, list(range(count))), count), seconds)]
    if isinstance(pool, executors.FuturesPool) and pool.has_chunks:
        chunked = pool.chunked
        got["map_chunks_per_s"] = [
            rate(lambda count: timed(lambda: chunked(nothing, list(range(count)), CHUNK), count), seconds / 2)
        ]
    trips = round_trips(pool)
    got["p50_us"], got["p99_us"] = ([trips[int(len(trips) * part)] * 1e6] for part in (0.5, 0.99))
    return got


def busy_seconds() -> float:
    """CPU seconds all programs of this machine used since it started."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) * TICK


def measure(name: str, rounds_per_ms: int, seconds: float) -> dict[str, list[float]]:
    """In a process of its own: one contender, one round."""
    plain = PlainProcesses()
    tree = Tree(os.getpid(), os.environ.get(MARK, ""))
    with executors.contender(name) as pool:
        one_by_one(pool, WARM_UP)
        begin, others = time.perf_counter(), busy_seconds() - tree.cpu_seconds()
        got = calls(pool, seconds)
        for label, (milliseconds, tasks, slices) in WORK.items():
            if name != CALLS_ONLY:
                found = shares(pool, plain, rounds_per_ms * milliseconds, tasks, slices)
                got |= {f"{kind}_{label}": values for kind, values in found.items()}
        others = busy_seconds() - tree.cpu_seconds() - others
        got["others"] = [max(0.0, others / (time.perf_counter() - begin))]
    return got


def metering(pairs: int, rounds_per_ms: int, seconds: float) -> dict[str, list[float]]:
    """In a process of its own: what metering costs, in pairs whose order alternates. Overheads, one for each pair."""
    tree = Tree(os.getpid(), os.environ.get(MARK, ""))
    count = 0
    lost: dict[str, list[float]] = {"submit": [], "submit_cpu": [], "map_1ms": []}
    for pair in range(pairs):
        spent: dict[str, tuple[float, float, float]] = {}
        for meter in ("auto", "off") if pair % 2 else ("off", "auto"):
            with executors.wattloom(meter=meter) as pool:
                one_by_one(pool, WARM_UP)
                count = count or int(rate(lambda n: one_by_one(pool, n), seconds / 2) * seconds)
                before = tree.cpu_seconds()
                wall = one_by_one(pool, count)
                cpu = tree.cpu_seconds() - before
                begin = time.perf_counter()
                pool.map(burn, [rounds_per_ms] * int(seconds * 1_000))
                spent[meter] = (wall, cpu, time.perf_counter() - begin)
        for name, with_it, without in zip(lost, spent["auto"], spent["off"], strict=True):
            lost[name].append(1.0 - without / with_it)
    return lost


def calibrate() -> int:
    """Rounds of the work that take one millisecond here, by the best of a few tries."""
    return int(20_000 / min(burn(20_000) for _ in range(50)) / 1_000)


def in_own_process(*arguments: str) -> Any:
    """What a child measured; a contender that fails or hangs is missing, with its last words."""
    mark = uuid.uuid4().hex
    command = [sys.executable, str(Path(__file__)), *arguments]
    child = subprocess.Popen(
        command,
        env=executors.environment() | {MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, complaints = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        Tree(child.pid, mark).kill()
        child.communicate()
        raise executors.MissingContender(f"no answer in {PATIENCE_S:.0f} s") from None
    lines = [line for line in said.splitlines() if line.startswith("{")]
    if child.returncode or not lines:
        raise executors.MissingContender((complaints.strip().splitlines() or [f"code {child.returncode}"])[-1])
    return json.loads(lines[-1])


Figures = dict[str, dict[str, list[float]]]


def play(names: list[str], rounds: int, seconds: float, rounds_per_ms: int) -> tuple[Figures, dict[str, str]]:
    got: Figures = {name: {} for name in names}
    missing: dict[str, str] = {}
    again = [name for name in (BASELINE, OURS) if name in names]
    for turn in range(rounds):
        for name in [*names, *again]:
            if name in missing:
                continue
            try:
                found = in_own_process("--measure", name, str(rounds_per_ms), str(seconds))
            except executors.MissingContender as reason:
                missing[name] = str(reason)
                continue
            for column, values in found.items():
                got[name].setdefault(column, []).extend(values)
        print(f"round {turn + 1} of {rounds} done", file=sys.stderr)
    return got, missing


def _spread(rates: list[float]) -> float:
    return max(rates) / min(rates) - 1.0


def row(name: str, figures: dict[str, list[float]], missing: dict[str, str]) -> dict[str, Any]:
    gone = name in missing

    def best(column: str, choose: Callable[[list[float]], float]) -> float | None:
        return choose(figures[column]) if column in figures and not gone else None

    result: dict[str, Any] = {"what": f"{name}: MISSING" if gone else name}
    result |= {column: best(column, max) for column in ("submit_per_s", "map_per_s", "map_chunks_per_s")}
    result["spread"] = best("submit_per_s", _spread)
    result |= {"p50_us": best("p50_us", min), "p99_us": best("p99_us", statistics.median)}
    for label in WORK:
        columns = [f"{kind}_{label}" for kind in ("share", "share_alone", "cpu_share")]
        result |= {column: best(column, statistics.median) for column in columns}
    result["others"] = best("others", statistics.median)
    return result


def _believable(share: float | None) -> float | None:
    return share if share is not None and share <= MOST_SHARE else None


def goals(rows: list[dict[str, Any]], lost: float | None) -> list[Goal]:
    by_name = {row["what"]: row for row in rows}

    def over(column: str, peer: str) -> float | None:
        ours, theirs = (by_name.get(name, {}).get(column) for name in (OURS, peer))
        return ours / theirs if ours and theirs else None

    ours = by_name.get(OURS, {})
    result = []
    for peer, times in ((BASELINE, 5.0), ("Ray", 20.0)):
        result.append(
            Goal.at_least(f"journalled no-op calls/s, one by one, over {peer}", times, over("submit_per_s", peer))
        )
        result.append(Goal.at_least(f"journalled no-op calls/s, map, over {peer}", times, over("map_per_s", peer)))
    result += [
        Goal.at_least(f"map of {it} tasks, share of the cores' time", 0.95, _believable(ours.get(f"share_{it}")))
        for it in WORK
    ]
    result.append(Goal.at_most(f"round trip p50 over {BASELINE}", 1.5, over("p50_us", BASELINE)))
    return [*result, Goal.at_most("throughput lost to metering, no-op calls one by one", LOST_GOAL, lost)]


def overhead(pairs: int, rounds_per_ms: int, seconds: float, missing: dict[str, str]) -> dict[str, list[float]]:
    try:
        found: dict[str, list[float]] = in_own_process("--metering", str(pairs), str(rounds_per_ms), str(seconds))
        return found
    except executors.MissingContender as reason:
        missing["the overhead of metering"] = str(reason)
        return {}


def lost_row(name: str, values: list[float]) -> dict[str, Any]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"what": f"lost to metering in {name}", "lost": middle, "low": low, "high": high}


def decided(lost_rows: list[dict[str, Any]]) -> float | None:
    """What metering costs, if the pairs agree well enough to say."""
    if not lost_rows:
        return None
    first = lost_rows[0]
    if first["high"] - first["low"] > MOST_SCATTER:
        print("*** METERING UNDECIDED: its pairs scatter too much; run again on a quiet machine", file=sys.stderr)
        return None
    return float(first["lost"])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--peers", default=",".join(executors.PEERS), help="names, separated by commas")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--quick", action="store_true", help="one short round, to try it out")
    options.add_argument("--data", help="not needed here")
    chosen = options.parse_args()
    names = [*executors.chosen_peers(chosen.peers), OURS, CALLS_ONLY]
    rounds, pairs, seconds = (1, 2, 0.3) if chosen.quick else (chosen.rounds, 8, 0.5)
    rounds_per_ms = calibrate()
    got, missing = play(names, rounds, seconds, rounds_per_ms)
    lost = overhead(pairs, rounds_per_ms, seconds, missing)
    rows = [row(name, got[name], missing) for name in names]
    executors.report_missing(missing)
    noise = max((each["others"] or 0.0 for each in rows), default=0.0)
    if noise > QUIET_CORES:
        print(f"*** NOT A QUIET MACHINE: other programs kept up to {noise:.2f} cores busy", file=sys.stderr)
    lost_rows = [lost_row(name, values) for name, values in lost.items()]
    for each in lost_rows:
        print("{what}: {lost:.1%} (half of the pairs within {low:.1%} to {high:.1%})".format(**each))
    finish("dispatch", [*rows, *lost_rows], goals(rows, decided(lost_rows)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
    elif sys.argv[1:2] == ["--metering"]:
        print(json.dumps(metering(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
    else:
        main()
