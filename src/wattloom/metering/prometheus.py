"""Any expression that a Prometheus server can answer, as a meter.

Owns the question and how old its answer is. A plain series is asked for together with the time it was collected at,
by the server's own clock: so neither the interval of collecting nor a difference between clocks puts joules into the
wrong second. Of a computed expression the server does not tell that time.
"""

import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile
from wattloom.metering.configured import not_set_up
from wattloom.metering.count import Limits
from wattloom.metering.http_source import HttpSource
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import PACKAGE_W, WALL_W, Answer, Joules, SourceProblem, Watts

if TYPE_CHECKING:
    from wattloom.metering.web import Page

STALE_S: Final = 150.0
"""Servers collect once a minute at the slowest; two may fail. They themselves give a series up after five minutes."""
_PLAIN: Final = re.compile(r"\s*[a-zA-Z_:][a-zA-Z0-9_:]*\s*(\{[^{}]*\})?\s*")
"""A series by its name and labels, and nothing computed."""
MARK: Final = "wattloom_mark"


class PrometheusSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Any expression that a Prometheus server can answer."""

    url: str = ""
    """Address of the server, as `http://localhost:9090`."""
    expression: str = ""
    """What to ask: a single number, in watts or in joules that only rise."""
    unit: Literal["watts", "joules"] = "watts"
    """What the number is."""
    quantity: Literal["wall", "package"] = "wall"
    """What it is of: the plug, or the processors with their memory."""
    provenance: Literal["measured", "modelled", "estimated"] = "measured"
    """How those know it who gave it to the server."""
    token: str = ""
    """A bearer token, if the server wants one. Best given by the environment, with the address:
    WATTLOOM_PROMETHEUS__TOKEN."""
    certificate: str = ""
    """A file with the certificate to trust; `any`: trust every one."""
    clear_text: bool = False
    """Send credentials where everybody on the way can read them: over plain http to another machine."""


class PrometheusSource(HttpSource):
    """The server's query API."""

    name = "prometheus"
    summary = "any expression of a Prometheus server"
    example = "http://localhost:9090"

    def __init__(self, settings: PrometheusSettings) -> None:
        super().__init__(
            settings.url, token=settings.token, certificate=settings.certificate, clear_text=settings.clear_text
        )
        self._expression = settings.expression.strip()
        self._plain = _PLAIN.fullmatch(self._expression) is not None
        self._joules = settings.unit == "joules"
        self.quantity: Quantity = settings.quantity
        self.provenance: Provenance = settings.provenance
        most_w = WALL_W if settings.quantity == "wall" else PACKAGE_W
        self.limits = Limits(most_w, late_s=2.0, gap_s=STALE_S, still_s=STALE_S)

    def missing(self) -> str | None:
        problem = super().missing()
        if problem is None and not self._expression:
            return not_set_up("prometheus", "expression", "'node_power_watts{instance=\"this-host\"}'")
        return problem

    def ask(self) -> list[Answer]:
        if self._plain:
            return [self._with_time(self._result(_timed(self._expression)))]
        return [self._answer(self._value(self._result(self._expression)), 0.0, None)]

    def _with_time(self, series: list[Any]) -> Answer:
        times = [each for each in series if each["metric"].pop(MARK, "") == "time"]
        values = [each for each in series if each not in times]
        value, stamp, now = self._value(values), float(times[0]["value"][1]), float(times[0]["value"][0])
        return self._answer(value, max(now - stamp, 0.0), stamp)

    def _answer(self, value: float, age_s: float, stamp: object) -> Answer:
        if not isfinite(value) or value < 0.0:
            raise SourceProblem(f"the expression gives {value}, which cannot be")
        if self._joules:
            return Joules({self._expression: value}, age_s, stamp)
        return Watts(value, age_s, stamp)

    def _result(self, query: str) -> list[Any]:
        page = self.http.send("GET", "api/v1/query", {"query": query, "timeout": f"{self.timeout_s:g}s"})
        if page.status not in (200, 400, 422, 503):
            self.http.get("api/v1/query", {"query": query})  # says in words what is wrong
        told = page.json(self.http.where)
        if not isinstance(told, dict) or told.get("status") != "success":
            raise SourceProblem(f"{self.http.where} refuses the expression: {_error(told, page)}")
        try:
            data = told["data"]
            if data["resultType"] == "scalar":
                return [{"metric": {}, "value": data["result"]}]
            if data["resultType"] != "vector":
                raise SourceProblem("the expression gives a range of figures: it must give one figure")
            return list(data["result"])
        except (KeyError, TypeError) as problem:
            raise SourceProblem(f"{self.http.where} does not answer as a Prometheus server") from problem

    def _value(self, series: list[Any]) -> float:
        if not series:
            raise SourceProblem("the expression gives nothing now: is the name right, and is its target up?")
        if len(series) > 1:
            raise SourceProblem(f"the expression gives {len(series)} series where one is wanted: {_names(series)}")
        try:
            return float(series[0]["value"][1])
        except (ValueError, OverflowError, LookupError, TypeError) as problem:
            raise SourceProblem(f"{self.http.where} does not answer as a Prometheus server") from problem


def _timed(series: str) -> str:
    """The series and when it was collected, in one answer."""
    mark = f'label_replace(%s, "{MARK}", "%s", "", "")'
    return f"{mark % (f'timestamp({series})', 'time')} or {mark % (series, 'value')}"


def _names(series: list[Any], most: int = 4) -> str:
    """By the labels in which they differ."""
    labels = [each["metric"] for each in series]
    keys = sorted({key for each in labels for key in each if len({other.get(key) for other in labels}) > 1})
    names = ["{" + ", ".join(f'{key}="{each[key]}"' for key in keys if key in each) + "}" for each in labels[:most]]
    return ", ".join(names) + (" and more" if len(labels) > most else "")


def _error(told: object, page: "Page") -> str:
    text = told.get("error") if isinstance(told, dict) else None
    return str(text)[:300] if text else f"status {page.status}"


def for_machine(profile: MachineProfile, settings: PrometheusSettings) -> Polled:
    """The entry point."""
    return Polled(PrometheusSource(settings))
