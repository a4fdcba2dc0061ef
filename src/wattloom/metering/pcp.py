"""Performance Co-Pilot through pmproxy: the counters of its agents `denki` (RAPL) and `nvidia`.

Owns the questions and which instances are added up. PCP's own units know no joules, so only metrics are read whose unit
is known from elsewhere.
"""

from typing import Any, Final

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile
from wattloom.metering.http_source import HttpSource, limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import PACKAGE_W, WALL_W, Answer, Joules, SourceProblem

IN_JOULES: Final = {"denki.rapl.sysfs": 1.0, "denki.rapl.msr": 1.0, "denki.rapl.raw": 1.0, "nvidia.energy": 1e-3}
"""What their values must be multiplied with."""
OLDER: Final = {"denki.rapl.sysfs": "denki.rapl.raw"}
EXPIRED_AFTER_S: Final = 60


class PcpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Performance Co-Pilot, through pmproxy."""

    url: str = ""
    """Address of pmproxy, as `http://localhost:44322`."""
    metric: str = "denki.rapl.sysfs"
    """Which metric: of `denki.rapl` packages and memory are added up (older versions call it `denki.rapl.raw`, which is
    found by itself); `nvidia.energy` is of the accelerators."""
    host: str = ""
    """Whose metrics pmproxy is to fetch. Empty: those of the machine it runs on."""


class PcpSource(HttpSource):
    """pmproxy's REST interface."""

    name = "pcp"
    example = "http://localhost:44322"
    provenance: Provenance = "measured"
    least_s = 0.5
    """Its agents look when they are asked; what they show is whole joules."""

    def __init__(self, settings: PcpSettings) -> None:
        super().__init__(settings.url)
        self._metric = settings.metric
        self._host = settings.host
        self._context: int | None = None
        self._names: dict[int, str] | None = None
        """Of the instances that are added up."""
        self.quantity: Quantity = "device" if settings.metric.startswith("nvidia.") else "package"
        self.limits = limits(WALL_W if self.quantity == "device" else PACKAGE_W)
        what = "the accelerators' energy" if self.quantity == "device" else "the processor's energy counters"
        self.summary = f"Performance Co-Pilot: {what}"

    def missing(self) -> str | None:
        problem = super().missing()
        if problem is None and self._metric not in IN_JOULES:
            return f"the setting pcp.metric must be one of {', '.join(IN_JOULES)}: of others the unit is not known"
        return problem

    def ask(self) -> list[Answer]:
        if self._names is None:
            self._begin()
        told = self._fetch("fetch", {"names": self._metric})
        values = {each["instance"]: float(each["value"]) for each in self._first(told, "values")["instances"]}
        names = self._names or {}
        gone = [name for number, name in names.items() if number not in values]
        if gone or not names:
            self._names = None
            raise SourceProblem(f"{self._metric} has no value for {', '.join(gone) or 'anything'} at {self.http.where}")
        factor = IN_JOULES[self._metric]
        return [Joules({name: values[number] * factor for number, name in names.items()})]

    def forget(self) -> None:
        super().forget()
        self._context = self._names = None

    # -- the questions -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Which instances there are, under the metric's present name or an older one."""
        try:
            told = self._fetch("indom", {"name": self._metric})
        except SourceProblem:
            older = OLDER.get(self._metric)
            if older is None:
                raise
            told = self._fetch("indom", {"name": older})
            self._metric = older
        try:
            found = {int(each["instance"]): str(each["name"]) for each in told["instances"]}
        except (KeyError, TypeError, ValueError) as problem:
            raise SourceProblem(f"{self.http.where} does not answer as pmproxy") from problem
        self._names = _counted(found) if self._metric.startswith("denki.") else found
        if not self._names:
            raise SourceProblem(f"{self._metric} has no package at {self.http.where}: does that machine have RAPL?")

    def _fetch(self, what: str, query: dict[str, str]) -> Any:
        """In a context that is kept: pmproxy forgets it after a pause, and tells."""
        for fresh in (False, True):
            if self._context is None or fresh:
                self._context = self._new_context()
            page = self.http.send("GET", f"pmapi/{what}", {"context": str(self._context), **query})
            told = page.json(self.http.where)
            if page.status == 200 and isinstance(told, dict):
                return told
            message = str(told.get("message", "")) if isinstance(told, dict) else ""
            if "context" not in message:
                break
        raise SourceProblem(f"{self.http.where} knows nothing of {self._metric}: {message or page.status}")

    def _new_context(self) -> int:
        query = {"polltimeout": str(EXPIRED_AFTER_S)} | ({"hostspec": self._host} if self._host else {})
        page = self.http.send("GET", "pmapi/context", query)
        told = page.json(self.http.where)
        if page.status == 200 and isinstance(told, dict) and isinstance(told.get("context"), int):
            return int(told["context"])
        message = told.get("message", "") if isinstance(told, dict) else ""
        raise SourceProblem(f"{self.http.where} cannot reach the collector pmcd: {message or page.status}")

    def _first(self, told: Any, key: str) -> Any:
        try:
            return told[key][0]
        except (KeyError, IndexError, TypeError) as problem:
            raise SourceProblem(f"{self._metric} has no value at {self.http.where}") from problem


def _counted(found: dict[int, str]) -> dict[int, str]:
    """The instances that make up the machine, none inside another: `0-package-0` and `package-0` are packages."""
    psys = {number: name for number, name in found.items() if "psys" in name}
    return psys or {number: name for number, name in found.items() if "package" in name or "dram" in name}


def for_machine(profile: MachineProfile, settings: PcpSettings) -> Polled:
    """The entry point."""
    return Polled(PcpSource(settings))
