"""What the scheduler counts about itself, and how Prometheus sees it.

Owns the names. Counting is a plain addition where things happen; the text is made when somebody asks.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

DECISION_S: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5)
BIND_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class Metric(msgspec.Struct, frozen=True):
    """A name and what it means. Counters get `_total` in the text."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.name}_total" if self.kind == "counter" else self.name


PENDING: Final = Metric(
    "wattloom_kubernetes_pods_pending", "gauge", "Pods of ours without a node, by where they stand.", ("state",)
)
SCHEDULED: Final = Metric(
    "wattloom_kubernetes_bindings", "counter", "Bindings that came to an end, by what became of them.", ("result",)
)
DECISION: Final = Metric(
    "wattloom_kubernetes_decision_seconds", "histogram", "Time the engine took for a newly submitted pod."
)
CREATION_TO_BIND: Final = Metric(
    "wattloom_kubernetes_creation_to_bind_seconds",
    "histogram",
    "From a pod's creation (whole seconds, by the API server's clock) until it was bound.",
)
IN_FLIGHT: Final = Metric("wattloom_kubernetes_bindings_in_flight", "gauge", "Bindings under way.")
RESTARTS: Final = Metric(
    "wattloom_kubernetes_watch_restarts", "counter", "Watches taken up again after a fault, by resource.", ("resource",)
)
EVENTS_QUEUED: Final = Metric("wattloom_kubernetes_events_queued", "gauge", "Events on pods that are not written yet.")
EVENTS_WRITTEN: Final = Metric("wattloom_kubernetes_events_written", "counter", "Events on pods that were written.")
EVENTS_DROPPED: Final = Metric(
    "wattloom_kubernetes_events_dropped", "counter", "Events on pods that the API server refused for good."
)
CONDITIONS_WRITTEN: Final = Metric(
    "wattloom_kubernetes_conditions_written", "counter", "Conditions on pods that wait, that were written."
)
CONDITIONS_DROPPED: Final = Metric(
    "wattloom_kubernetes_conditions_dropped", "counter", "Conditions on pods that the API server refused for good."
)
LEADING: Final = Metric("wattloom_kubernetes_leading", "gauge", "1 while this replica decides, 0 while it stands by.")
NODES: Final = Metric("wattloom_kubernetes_nodes", "gauge", "Nodes known, by whether their power is.", ("power",))
THROTTLED: Final = Metric(
    "wattloom_kubernetes_throttled", "counter", "Times the API server asked for fewer requests (429)."
)
REFUSED: Final = Metric(
    "wattloom_kubernetes_contradictions",
    "counter",
    "Events the engine refused and pods left aside by an error: each is a defect, please report it.",
)

METRICS: Final = (
    PENDING,
    SCHEDULED,
    DECISION,
    CREATION_TO_BIND,
    IN_FLIGHT,
    RESTARTS,
    EVENTS_QUEUED,
    EVENTS_WRITTEN,
    EVENTS_DROPPED,
    CONDITIONS_WRITTEN,
    CONDITIONS_DROPPED,
    LEADING,
    NODES,
    THROTTLED,
    REFUSED,
)


class Histogram:
    """Counts by upper bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def family(self, metric: Metric) -> HistogramMetricFamily:
        buckets, total = [], 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        family = HistogramMetricFamily(metric.name, metric.help)
        family.add_metric([], buckets, self._sum)
        return family


Figures = dict[tuple[str, ...], float]
"""Values by labels."""


class Counts:
    """What is counted where it happens."""

    def __init__(self) -> None:
        self.bindings: dict[str, int] = {}
        self.decision: Final = Histogram(DECISION_S)
        self.creation_to_bind: Final = Histogram(BIND_S)

    def bound(self, result: str) -> None:
        self.bindings[result] = self.bindings.get(result, 0) + 1


class Shown(Collector):
    """The counts, and what `ask` says of the moment, whenever somebody asks."""

    def __init__(self, counts: Counts, ask: Callable[[], dict[Metric, Figures]]) -> None:
        self._counts = counts
        self._ask = ask

    def collect(self) -> Iterator[Family]:
        yield self._counts.decision.family(DECISION)
        yield self._counts.creation_to_bind.family(CREATION_TO_BIND)
        bindings: Figures = {(result,): float(count) for result, count in self._counts.bindings.items()}
        asked: dict[Metric, Figures] = {SCHEDULED: bindings, **self._ask()}
        for metric, figures in asked.items():
            made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family: CounterMetricFamily | GaugeMetricFamily = made(metric.name, metric.help, labels=metric.labels)
            for labels, value in figures.items():
                family.add_metric(labels, value)
            yield family
