"""One run of the Kubernetes benchmark: fresh pods in a fresh namespace, one scheduler, what the watcher saw.

Owns the measuring. A run that does not bind every pod is told as it is: what is missing shows in its counts.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from time import monotonic, sleep
from typing import Any

import kube_mix
import msgspec
from kube_contenders import Contender, Cost, cost_of
from kube_load import Created, create, remove
from kube_watcher import Seen, Watcher
from tests.beds.kubernetes import Api, ControlPlane, Part, eventually
from tests.beds.kubernetes.fleet import add_namespace

from wattloom.kubernetes.model.profiles import MILLIWATTS

SETTLE_S = 2.0
QUIET_S = 20.0
"""Nothing new for so long: what is missing will not come."""
PUBLISH_S = 300.0
_numbers = count(1)


class Outcome(msgspec.Struct):
    """What one run gave. Rates are of all pods, from the first creation (a backlog: from the first binding)."""

    scheduler: str
    nodes: int
    pods: int
    bound: int
    told: int
    created_per_s: float
    bound_per_s: float
    told_per_s: float
    """Until the last event was written."""
    cpu_s: float
    api_cpu_s: float
    rss_mb: float
    peak_mb: float
    latencies_ms: list[float]
    """Creation taken to binding seen, sorted."""

    @property
    def whole(self) -> bool:
        return self.bound == self.pods

    def latency_ms(self, share: float) -> float | None:
        found = self.latencies_ms
        return found[min(len(found) - 1, int(share * len(found)))] if found else None


class Bench:
    """A control plane with its nodes, and runs on it."""

    def __init__(self, plane: ControlPlane, nodes: int, say: Callable[[str], None]) -> None:
        self.plane, self.nodes, self.say = plane, nodes, say
        self.api = Api(plane.api.access, timeout_s=120.0)
        create(plane.kubeconfig, "/api/v1/nodes", kube_mix.nodes(nodes))

    def add_bound(self, pods: int) -> None:
        """Pods that are there before every run from now on."""
        space = add_namespace(self.api, f"bound-{next(_numbers)}")
        create(self.plane.kubeconfig, f"/api/v1/namespaces/{space}/pods", kube_mix.bound(pods, self.nodes))

    def publish(self, contender: Contender) -> None:
        """The watts of all nodes are written on them before anything is measured, as on a cluster that has run on."""
        with _running(contender):
            eventually(lambda: all(MILLIWATTS in node["status"]["capacity"] for node in self._nodes()), PUBLISH_S, 2.0)

    def _nodes(self) -> list[dict[str, Any]]:
        return self.api.items("/api/v1/nodes")

    def burst(self, contender: Contender, pods: int) -> Outcome:
        """Pods come as fast as the API server takes them, while the scheduler runs."""
        with self._space(pods, contender) as (path, bodies, watcher):
            with _running(contender):
                sleep(SETTLE_S)
                before = self._costs(contender)
                created = create(self.plane.kubeconfig, path, bodies)
                self._wait(watcher, pods)
                costs = self._costs(contender)
                contender.check(watcher.counts.bound)
            return self._outcome(contender, created, watcher.end(), created.begun, before, costs)

    def backlog(self, contender: Contender, pods: int) -> Outcome:
        """Pods are there when the scheduler starts; its start is not counted."""
        with self._space(pods, contender) as (path, bodies, watcher):
            created = create(self.plane.kubeconfig, path, bodies)
            sleep(SETTLE_S)
            with _running(contender):
                nothing = Cost(0.0, 0.0, 0.0), self._costs(contender)[1]
                self._wait(watcher, pods)
                costs = self._costs(contender)
                contender.check(watcher.counts.bound)
            seen = watcher.end()
            return self._outcome(contender, created, seen, min(seen.bound.values(), default=0.0), nothing, costs)

    def steady(self, contender: Contender, per_second: float, seconds: float) -> Outcome:
        """Pods come one by one."""
        pods = int(per_second * seconds)
        with self._space(pods, contender) as (path, bodies, watcher):
            with _running(contender):
                sleep(SETTLE_S)
                before = self._costs(contender)
                created = create(self.plane.kubeconfig, path, bodies, per_second)
                self._wait(watcher, pods)
                costs = self._costs(contender)
                contender.check(watcher.counts.bound)
            return self._outcome(contender, created, watcher.end(), created.begun, before, costs)

    @contextmanager
    def _space(self, pods: int, contender: Contender) -> Iterator[tuple[str, list[dict[str, Any]], Watcher]]:
        run = f"run-{next(_numbers)}"
        space = add_namespace(self.api, run)
        watcher = Watcher(self.plane.kubeconfig, space)
        try:
            yield f"/api/v1/namespaces/{space}/pods", kube_mix.pods(pods, run, contender.pods_name), watcher
        finally:
            watcher.end()
            remove(self.api, space)

    def _costs(self, contender: Contender) -> tuple[Cost, float]:
        server = self.plane.pid(Part.API_SERVER)
        return cost_of(contender.pids()), cost_of([server] if server is not None else []).cpu_s

    def _wait(self, watcher: Watcher, pods: int) -> None:
        """Until everything is bound and told, or nothing comes any more."""
        last, since = watcher.counts, monotonic()
        while min(watcher.counts.bound, watcher.counts.told) < pods:
            if watcher.counts != last:
                last, since = watcher.counts, monotonic()
            elif monotonic() - since > QUIET_S:
                break
            sleep(0.05)
        sleep(0.3)  # the counts come a little late

    def _outcome(
        self,
        contender: Contender,
        created: Created,
        seen: Seen,
        begun: float,
        before: tuple[Cost, float],
        after: tuple[Cost, float],
    ) -> Outcome:
        outcome = Outcome(
            scheduler=contender.name,
            nodes=self.nodes,
            pods=len(created.taken),
            bound=len(seen.bound),
            told=len(seen.told),
            created_per_s=created.per_second,
            bound_per_s=_rate(seen.bound.values(), begun),
            told_per_s=_rate([*seen.told.values(), *seen.bound.values()], begun, len(seen.bound)),
            cpu_s=after[0].cpu_s - before[0].cpu_s,
            api_cpu_s=after[1] - before[1],
            rss_mb=after[0].rss_mb,
            peak_mb=after[0].peak_mb,
            latencies_ms=sorted((time - created.taken[name]) * 1e3 for name, time in seen.bound.items()),
        )
        self.say(_line(outcome, seen.failed))
        return outcome


@contextmanager
def _running(contender: Contender) -> Iterator[None]:
    try:
        contender.start()
        yield
    finally:
        contender.stop()


def _rate(times: Any, begun: float, number: int | None = None) -> float:
    times = list(times)
    return (len(times) if number is None else number) / max(1e-9, max(times) - begun) if times else 0.0


def _line(outcome: Outcome, failed: int) -> str:
    return (
        f"  {outcome.scheduler:<26} created {outcome.created_per_s:6,.0f}/s  bound {outcome.bound_per_s:6,.0f}/s"
        f"  with events {outcome.told_per_s:6,.0f}/s  CPU {outcome.cpu_s:5.1f} s, API server {outcome.api_cpu_s:5.1f} s"
        f"  {outcome.rss_mb:4.0f} MB (peak {outcome.peak_mb:.0f})"
        + ("" if outcome.whole else f"  ONLY {outcome.bound:,} OF {outcome.pods:,} BOUND")
        + ("" if outcome.told == outcome.bound else f"  only {outcome.told:,} events")
        + (f"  {failed:,} events of failures" if failed else "")
    )


def middle(figures: Sequence[float | None]) -> float | None:
    """The median of those that are there."""
    there = [each for each in figures if each is not None]
    return statistics.median(there) if there else None
