"""What the extender shows of itself: health, readiness, and metrics for Prometheus.

Owns the pages and the names of the metrics. Everything is read off the extender when somebody asks.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from wattloom.kubernetes import metrics as m
from wattloom.serving.pages import TEXT, Answered, Asked, Page, metrics_text

if TYPE_CHECKING:
    from wattloom.kubernetes.extender.extender import Extender

CALLS: Final = m.Metric(
    "wattloom_extender_calls",
    "counter",
    "kube-scheduler's questions, by verb and by what was answered.",
    ("verb", "result"),
)
SECONDS: Final = m.Metric("wattloom_extender_answer_seconds", "histogram", "Time an answer took to be worked out.")
PODS: Final = m.Metric(
    "wattloom_extender_pods", "gauge", "Pods counted on nodes, by whether they were seen there.", ("by",)
)
ASSUMPTIONS: Final = m.Metric(
    "wattloom_extender_wrong_assumptions",
    "counter",
    "Pods that did not go where they were sent: to another node, or nowhere in time.",
    ("result",),
)
PUBLISHED: Final = m.Metric(
    "wattloom_extender_watts_published", "counter", "Nodes that wattloom.dev/milliwatts was written on, by result.",
    ("result",),
)  # fmt: skip
FAILING: Final = m.Metric(
    "wattloom_extender_watch_failing_seconds",
    "gauge",
    "For how long nothing could be heard of a kind of object; 0 while all is well.",
    ("resource",),
)
METRICS: Final = (CALLS, SECONDS, PODS, ASSUMPTIONS, PUBLISHED, FAILING, m.NODES, m.RESTARTS, m.REFUSED)
STALE_S: Final = 60.0
"""Who could not hear for so long does not know the cluster any more."""


class ExtenderPages(Collector):
    """`open` pages are for everybody."""

    def __init__(self, extender: "Extender") -> None:
        self._extender = extender
        self.open: dict[str, Page] = {"/healthz": self._healthz, "/readyz": self._readyz}
        self.pages: dict[str, Page] = {"/metrics": self._metrics}

    async def _healthz(self, asked: Asked) -> Answered:
        return Answered(200, TEXT, b"ok\n")

    async def _readyz(self, asked: Asked) -> Answered:
        if not self._extender.state.synced:
            return Answered(503, TEXT, b"not in step with the cluster yet\n")
        failing_s = self._extender.state.failing_s
        if failing_s > STALE_S:
            return Answered(503, TEXT, f"out of step with the cluster for {failing_s:.0f} s\n".encode())
        return Answered(200, TEXT, b"ok\n")

    async def _metrics(self, asked: Asked) -> Answered:
        body, kind = metrics_text(self, asked.accept)
        return Answered(200, kind, body)

    def collect(self) -> Iterator[m.Family]:
        yield self._extender.seconds.family(SECONDS)
        for metric, figures in self._figures().items():
            made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family: CounterMetricFamily | GaugeMetricFamily = made(metric.name, metric.help, labels=metric.labels)
            for labels, value in figures.items():
                family.add_metric(labels, value)
            yield family

    def _figures(self) -> dict[m.Metric, m.Figures]:
        extender = self._extender
        loads, publisher = extender.state.loads, extender.publisher
        index = extender.driver.engine.ledger.index
        known = sum(node.cls.machine.knows_power for node in index.nodes.values())
        seen = len(loads.pods.by_uid) - loads.assumed
        return {
            CALLS: {labels: float(count) for labels, count in extender.answers.counts.items()},
            PODS: {("seen",): float(seen), ("assumed",): float(loads.assumed)},
            ASSUMPTIONS: {("elsewhere",): float(loads.elsewhere), ("expired",): float(loads.expired)},
            PUBLISHED: {("written",): float(publisher.written), ("failed",): float(publisher.failed)},
            FAILING: {(str(each.resource),): each.failing_s for each in extender.state.reflectors},
            m.NODES: {("known",): float(known), ("unknown",): float(len(index.nodes) - known)},
            m.RESTARTS: {(str(each.resource),): float(each.counts.restarts) for each in extender.state.reflectors},
            m.REFUSED: {(): float(extender.driver.refused)},
        }
