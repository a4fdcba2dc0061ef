"""PowerAPI's power reports: a file that grows by one JSON object in a line, or its Prometheus output.

Owns which reports are the machine's and how they are added up. The target `rapl` is what was measured; the others are
what its formulas made of that.
"""

import os
from datetime import datetime
from math import isfinite
from time import time
from typing import Final

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.files import UNREADABLE
from wattloom.machines.profile import MachineProfile
from wattloom.metering.configured import not_set_up
from wattloom.metering.exposition import figures
from wattloom.metering.http_source import HttpSource, limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import PACKAGE_W, Answer, SourceProblem, Watts

MEASURED: Final = "rapl"
METRIC: Final = "power_estimation_watts"
LOOK_BACK: Final = 1 << 16
"""Bytes at the file's end that are read first."""
MOST_BYTES: Final = 4 << 20
"""That are read at a time."""


class PowerapiSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Power reports of PowerAPI's formulas."""

    reports: str = ""
    """A file of power reports, one JSON object in a line; or the address of its Prometheus output."""
    target: str = "rapl"
    """Whose power is the machine's own in them."""


class Report(msgspec.Struct, frozen=True):
    """What of a power report is used."""

    timestamp: str | int | float
    target: str
    power: float


class ReportFile:
    """Follows the file, through its being cut off or replaced."""

    name = "powerapi"
    summary = "PowerAPI's power reports, from a file"
    quantity: Quantity = "package"
    least_s = 0.5
    timeout_s = 2.0
    limits = limits(PACKAGE_W)

    def __init__(self, path: str, target: str) -> None:
        self._path, self._target = os.path.expanduser(path), target
        self.provenance: Provenance = "measured" if target == MEASURED else "modelled"
        self._inode = -1
        self._position = 0
        self._rest = b""
        self._open: tuple[float, float] | None = None
        """Time and watts of the newest reports: as long as no later ones have come, more of that time may follow."""
        self._last: float | None = None

    def missing(self) -> str | None:
        return None

    def ask(self) -> list[Answer]:
        try:
            lines, age_s = self._new_lines()
        except OSError as problem:
            raise SourceProblem(f"{self._path} cannot be read: {problem.strerror}") from problem
        done = self._closed([report for line in lines if (report := _report(line, self._target)) is not None])
        newest = self._open[0] if self._open is not None else 0.0
        if self._last is None and not done:
            raise SourceProblem(f"{self._path} has no reports of {self._target!r} at two times yet")
        return [Watts(watts, age_s + newest - moment, moment) for moment, watts in done]

    def close(self) -> None:
        """Nothing stays open."""

    def forget(self) -> None:
        """Nothing stays open."""

    def _new_lines(self) -> tuple[list[bytes], float]:
        with open(self._path, "rb") as file:
            found = os.fstat(file.fileno())
            anew = found.st_ino != self._inode or found.st_size < self._position
            if anew:
                self._inode, self._rest = found.st_ino, b""
                self._position = max(found.st_size - LOOK_BACK, 0)
            file.seek(self._position)
            if anew and self._position:  # in the middle of a line, most likely
                self._position += len(file.readline())
            fresh = file.read(MOST_BYTES)
        self._position += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        return lines, max(time() - found.st_mtime, 0.0)

    def _closed(self, reports: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """Sockets and parts report one by one at the same time: what later reports have closed, added up."""
        done: list[tuple[float, float]] = []
        for moment, watts in reports:
            if self._open is None or moment > self._open[0]:
                if self._open is not None:
                    done.append(self._open)
                self._open = moment, watts
            elif moment == self._open[0]:
                self._open = moment, self._open[1] + watts
        if done:
            self._last = done[-1][0]
        return done


class ReportPage(HttpSource):
    """PowerAPI's Prometheus output."""

    name = "powerapi"
    summary = "PowerAPI's power reports, from its Prometheus output"
    quantity: Quantity = "package"
    limits = limits(PACKAGE_W)

    def __init__(self, url: str, target: str) -> None:
        super().__init__(url)
        self._target = target
        self.provenance: Provenance = "measured" if target == MEASURED else "modelled"

    def missing(self) -> str | None:
        if not self.url:
            return not_set_up("powerapi", "reports", "/var/log/powerapi/reports.json")
        problem = super().missing()
        return problem.replace("powerapi.url", "powerapi.reports") if problem else None

    def ask(self) -> list[Answer]:
        found = figures(self.http.get().body, (METRIC,), self.http.where)
        mine = [each.value for each in found if each.labels.get("target") == self._target]
        if not mine:
            targets = ", ".join(sorted({each.labels.get("target", "") for each in found})[:5]) or "none"
            raise SourceProblem(f"{self.http.where} shows no power of {self._target!r}; its targets: {targets}")
        sensors = sorted({each.labels.get("sensor", "") for each in found if each.labels.get("target") == self._target})
        if len(sensors) > 1:
            raise SourceProblem(f"{self.http.where} shows several machines: {', '.join(sensors[:5])}")
        return [Watts(sum(mine))]


def _report(line: bytes, target: str) -> tuple[float, float] | None:
    """Time and watts, of the right target."""
    if not line.strip():
        return None
    try:
        report = msgspec.json.decode(line, type=Report)
        if report.target != target:
            return None
        moment = _seconds(report.timestamp)
    except (*UNREADABLE, ValueError, OverflowError) as problem:
        raise SourceProblem(f"a line is no power report: {line[:60].decode(errors='replace')!r}") from problem
    if not isfinite(report.power) or report.power < 0.0:
        raise SourceProblem(f"a report says {report.power} W, which cannot be")
    return moment, report.power


def _seconds(stamp: str | float) -> float:
    """Only differences are used, so it does not matter whose zone a time without a zone is of."""
    if isinstance(stamp, str):
        return datetime.fromisoformat(stamp).timestamp()
    return stamp / 1000.0 if stamp > 1e11 else float(stamp)  # milliseconds, by their size


def for_machine(profile: MachineProfile, settings: PowerapiSettings) -> Polled:
    """The entry point."""
    if settings.reports and "://" not in settings.reports:
        return Polled(ReportFile(settings.reports, settings.target))
    return Polled(ReportPage(settings.reports, settings.target))
