"""The metrics as Prometheus reads them. prometheus_client writes the text; what it says is `metrics`'s."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from wattloom.monitoring.metrics import METRICS
from wattloom.monitoring.snapshot import Snapshot
from wattloom.monitoring.top_processes import Prominent

Latest = Callable[[], tuple[Snapshot, Prominent]]
"""What was last seen of the machine."""
Family = CounterMetricFamily | GaugeMetricFamily


class Presented(Collector):
    """The latest snapshot, whenever somebody asks."""

    def __init__(self, latest: Latest) -> None:
        self._latest = latest

    def collect(self) -> Iterator[Family]:
        shown, prominent = self._latest()
        for metric in METRICS:
            made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family: Family = made(metric.name, metric.help, labels=metric.labels)
            for labels, value in metric.figures(shown, prominent):
                family.add_metric(labels, value)
            if family.samples:
                yield family
