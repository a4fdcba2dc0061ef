"""Pods bound per second, time to bind, CPU and memory: Wattloom's scheduler beside kube-scheduler on a real API server.

etcd, kube-apiserver and one scheduler at a time run on this machine; nobody plays the nodes, so pods stay bound and
nothing else asks the API server. The schedulers take turns (A B B A), each on fresh pods of the same mixed list, which
are removed before the next. A process of its own watches pods and events, and its clock counts. Three ways:

burst    pods are created from many connections while the scheduler runs; from the first creation to the last binding
backlog  pods are there before the scheduler is; from the first binding to the last, so that its start is not counted
steady   100 pods a second; from the API server's word that it has a pod to its binding

CPU is that of the scheduler's processes by /proc, for a burst from the first creation to the last event; for a backlog
it includes the start. Memory is measured in a burst that makes the last third of all pods. The extender is compared on
a backlog, kube-scheduler alone against kube-scheduler with it; its memory and CPU are of both processes.

Ratios are taken within each round, and the middle one of all rounds counts: rates drift with the machine.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kube_contenders import Contender, Extended, KubeScheduler, Wattloom
from kube_runs import Bench, Outcome, middle
from reporting import Goal, finish
from tests.beds.kubernetes import ControlPlane, Part
from tests.beds.kubernetes.binaries import binaries

from wattloom.errors import WattloomError
from wattloom.scheduling import engine

FLAGS = {
    Part.API_SERVER: {
        "max-requests-inflight": "3000",
        "max-mutating-requests-inflight": "1000",
        "delete-collection-workers": "8",
    }
}
PARTS = ("burst", "backlog", "steady", "extender", "memory")
"""In this order: pods that are bound for `memory` stay."""
PER_SECOND = 100.0
KEPT_UP = 0.95
"""Of a steady rate: with less the machine was too busy for the comparison."""
Round = tuple[Outcome, Outcome]
"""The peer's outcome and ours, one after the other."""


class Measured:
    """All rounds, by what was measured at which size."""

    def __init__(self) -> None:
        self.rounds: dict[tuple[str, int, int], list[Round]] = {}

    def add(self, what: str, nodes: int, pods: int, pair: Round) -> None:
        self.rounds.setdefault((what, nodes, pods), []).append(pair)

    def rows(self) -> list[dict[str, Any]]:
        return [
            _row(what, nodes, pods, [pair[side] for pair in pairs])
            for (what, nodes, pods), pairs in self.rounds.items()
            for side in (0, 1)
        ]

    def ratios(self, figure: Callable[[Outcome], float | None], *parts: str) -> list[float]:
        """Ours over the peer's at each size of these parts: the middle of the rounds."""
        found = []
        for (what, _, _), pairs in self.rounds.items():
            if what in parts and (ratio := middle([_ratio(figure(a), figure(b)) for a, b in pairs])) is not None:
                counts = all(_counts(what, each) for pair in pairs for each in pair)
                found.append(ratio if counts else float("nan"))
        return found


def _counts(what: str, outcome: Outcome) -> bool:
    """Whether the run was what it should be: all pods bound, all our events written, and the steady rate kept."""
    kept_up = what != "steady" or outcome.created_per_s > KEPT_UP * PER_SECOND
    return outcome.whole and kept_up and (outcome.told == outcome.bound or outcome.scheduler != Wattloom.name)


def _ratio(peer: float | None, ours: float | None) -> float | None:
    return ours / peer if peer and ours is not None else None


def _row(what: str, nodes: int, pods: int, runs: list[Outcome]) -> dict[str, Any]:
    def of(figure: Callable[[Outcome], float | None]) -> float | None:
        return middle([figure(run) for run in runs])

    return {
        "what": what,
        "nodes": nodes,
        "pods": pods,
        "scheduler": runs[0].scheduler,
        "created/s": of(lambda run: run.created_per_s),
        "bound/s": of(lambda run: run.bound_per_s),
        "until last event/s": of(lambda run: run.told_per_s),
        "events": of(lambda run: run.told),
        "CPU s/10,000": of(lambda run: run.cpu_s * 1e4 / run.pods),
        "API server": of(lambda run: run.api_cpu_s * 1e4 / run.pods),
        "MB": of(lambda run: run.rss_mb),
        "peak MB": of(lambda run: run.peak_mb),
        "p50 ms": of(lambda run: run.latency_ms(0.5)) if what == "steady" else None,
        "p99 ms": of(lambda run: run.latency_ms(0.99)) if what == "steady" else None,
        "runs": len(runs),
    }


def goals(measured: Measured) -> list[Goal]:
    """Those of what was measured; the worst size counts."""
    found: list[Goal] = []

    def judge(
        make: Callable[[str, float, float | None], Goal],
        worst: Callable[[Sequence[float]], float],
        name: str,
        goal: float,
        figure: Callable[[Outcome], float | None],
        *parts: str,
    ) -> None:
        ratios = measured.ratios(figure, *parts)
        if ratios:
            broken = any(ratio != ratio for ratio in ratios)
            found.append(make(f"{name}, ours over kube-scheduler's", goal, None if broken else worst(ratios)))

    at_least, at_most = partial(judge, Goal.at_least, min), partial(judge, Goal.at_most, max)
    for way in ("burst", "backlog"):
        at_least(f"{way}: pods bound/s", 2.0, lambda run: run.bound_per_s, way)
        at_least(f"{way}: pods/s until the last event", 1.5, lambda run: run.told_per_s, way)
    at_most("steady: median time to bind", 1.0, lambda run: run.latency_ms(0.5), "steady")
    at_most("steady: p99 of time to bind", 1.0, lambda run: run.latency_ms(0.99), "steady")
    at_most("CPU of the scheduler for a burst", 0.5, lambda run: run.cpu_s, "burst")
    at_most("memory, peak", 1.0, lambda run: run.peak_mb, "memory")
    at_most("memory at the end", 1.0, lambda run: run.rss_mb, "memory")
    at_least("extender: pods bound/s with it", 0.8, lambda run: run.bound_per_s, "extender")
    return found


def measure(options: argparse.Namespace, folder: Path) -> Measured:
    """One control plane for each number of nodes; the large memory run comes last on the last."""
    measured = Measured()
    for nodes in options.nodes:
        parts = [part for part in options.parts if _belongs(part, nodes, options.nodes)]
        if not parts:
            continue
        say(f"starting a control plane with {nodes:,} nodes")
        with ControlPlane(folder / str(nodes), flags=FLAGS, say=say) as plane:
            bench = Bench(plane, nodes, say)
            bench.publish(Wattloom(plane))
            for part in parts:
                for pods in _sizes(part, options):
                    _turns(part, bench, pods, options, measured)
    return measured


def _belongs(part: str, nodes: int, all_nodes: Sequence[int]) -> bool:
    """The extender and the steady rate on the smallest cluster, memory on the largest."""
    if part in ("extender", "steady"):
        return nodes == min(all_nodes)
    return nodes == max(all_nodes) if part == "memory" else True


def _sizes(part: str, options: argparse.Namespace) -> list[int]:
    if part == "steady":
        return [int(PER_SECOND * options.seconds)]
    if part == "memory":
        return [options.memory_pods]
    return [min(options.pods)] if part == "extender" else list(options.pods)


def _turns(part: str, bench: Bench, pods: int, options: argparse.Namespace, measured: Measured) -> None:
    ours: Contender = Extended(bench.plane) if part == "extender" else Wattloom(bench.plane)
    both: tuple[Contender, Contender] = (KubeScheduler(bench.plane), ours)
    fresh = pods
    if part == "memory":
        fresh = pods // 3
        say(f"creating {pods - fresh:,} pods that are bound already")
        bench.add_bound(pods - fresh)

    def run(one: Contender) -> Outcome:
        if part == "steady":
            return bench.steady(one, PER_SECOND, options.seconds)
        return bench.backlog(one, fresh) if part in ("backlog", "extender") else bench.burst(one, fresh)

    for number in range(1 if part == "memory" else options.rounds):
        say(f"{part}, {bench.nodes:,} nodes, {pods:,} pods, round {number + 1}")
        if number % 2:  # A B B A: what drifts, drifts for both
            late = run(both[1])
            pair = run(both[0]), late
        else:
            pair = run(both[0]), run(both[1])
        measured.add(part, bench.nodes, pods, pair)
        if not all(_counts(part, each) for each in pair):
            say("  this round does not count: pods were left over, or the machine was too busy for the rate")


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def _numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in text.split(",")]


def _parts(text: str) -> list[str]:
    wanted = text.split(",")
    if unknown := [word for word in wanted if word not in PARTS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PARTS)}")
    return [part for part in PARTS if part in wanted]


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=_numbers, default=[1_000, 5_000], help="sizes of the cluster")
    parser.add_argument("--pods", type=_numbers, default=[5_000, 10_000], help="pods of a burst")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", type=_parts, default=list(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the steady rate")
    parser.add_argument("--memory-pods", type=int, default=30_000, help="pods in all where memory is measured")
    parser.add_argument("--data", help="not needed here")
    parser.add_argument("--folder", type=Path, help="where logs and data are kept; left out: nowhere")
    parser.add_argument("--quick", action="store_true", help="200 nodes, 500 pods, one round: whether it works")
    options = parser.parse_args(words)
    if options.quick:
        options.nodes, options.pods, options.rounds = [200], [500], 1
        options.seconds, options.memory_pods = 5.0, 1_500
    return options


def main() -> None:
    options = options_of()
    # Ctrl-C or another way to end it, also where a shell started it in the background: everything is ended.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say(f"the engine is {'pure Python' if str(engine.__file__).endswith('.py') else 'compiled'}")
    try:
        binaries((Part.ETCD, Part.API_SERVER, Part.SCHEDULER), say)
        with tempfile.TemporaryDirectory(prefix="wattloom-bench-") as scratch:
            measured = measure(options, options.folder or Path(scratch))
    except WattloomError as error:
        sys.exit(f"the benchmark cannot go on: {error}")
    except KeyboardInterrupt:
        sys.exit("ended before its end; everything it had started is ended too")
    finish("kubernetes", measured.rows(), goals(measured))


if __name__ == "__main__":
    main()
