"""The metrics by OpenTelemetry, set up by its usual variables.

Owns their names there, and when they are sent at all: if `OTEL_EXPORTER_OTLP_ENDPOINT` (or the one for metrics) says
where to. The SDK itself heeds the others: service name, resource attributes, headers, intervals. Works out nothing.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from wattloom.errors import InputError, MissingExtra
from wattloom.monitoring.exposition import Latest
from wattloom.monitoring.metrics import METRICS, Metric

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
SPOKEN: Final = "http/protobuf"
GOODBYE_MS: Final = 1_000.0
"""How long a last word may take: a collector that is gone must not keep us."""
UNITS: Final = {"joules": "J", "watts": "W", "seconds": "s", "bytes": "By", "ratio": "1", "": "1"}


def otel_name(metric: Metric) -> str:
    """`wattloom_node_energy_joules` is `wattloom.node.energy`: the unit stands beside the name there."""
    return (
        metric.name.removesuffix(f"_{metric.unit}").replace("_", ".") if metric.unit else metric.name.replace("_", ".")
    )


def wanted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the variables ask for it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get("OTEL_METRICS_EXPORTER", "otlp").strip().lower() == "none":
        return False
    return any(environ.get(name, "").strip() for name in ENDPOINTS)


def send_metrics(latest: Latest, environ: Mapping[str, str] = os.environ) -> Callable[[], None] | None:
    """Begin to send; what ends it, with a last word. None: nobody wants it. Raises MissingExtra, InputError."""
    if not wanted(environ):
        return None
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), SPOKEN)
    if protocol != SPOKEN:
        raise InputError(PROTOCOLS[1], f"{protocol} is not spoken here: use {SPOKEN} (port 4318 of most collectors)")
    try:
        provider = _provider(environ)
    except ImportError as problem:
        raise MissingExtra("OpenTelemetry", "otel") from problem
    meter = provider.get_meter("wattloom")
    for metric in METRICS:
        make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
        make(otel_name(metric), [_observing(metric, latest)], UNITS[metric.unit], metric.help)
    return lambda: provider.shutdown(timeout_millis=GOODBYE_MS)


def _provider(environ: Mapping[str, str]) -> "MeterProvider":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], _resource(environ), shutdown_on_exit=False)


def _resource(environ: Mapping[str, str]) -> "Resource":
    from opentelemetry.sdk.resources import Resource

    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({} if named else {"service.name": "wattloom"})


def _observing(metric: Metric, latest: Latest) -> "Callable[[CallbackOptions], Iterable[Observation]]":
    from opentelemetry.metrics import Observation

    def observe(_: "CallbackOptions") -> Iterable[Observation]:
        return [
            Observation(value, dict(zip(metric.labels, labels, strict=True)))
            for labels, value in metric.figures(*latest())
        ]

    return observe
