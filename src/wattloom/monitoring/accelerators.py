"""Accelerators as the snapshot shows them: joules that never fall, who used them, power, memory.

Owns the sums over the intervals that the devices' account closes. The meters are read; the time is handed in. A device
that cannot be read keeps its counts; a count that broke off is unknown time. Whose joules they are is the account's
rule.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from wattloom.attribution.gpu import DeviceUsage
from wattloom.attribution.gpu_account import GpuAccount
from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.devices import DeviceMeter, DeviceProcess, DeviceReading
from wattloom.metering.protocol import Quantity, Sample
from wattloom.monitoring.process import Process
from wattloom.monitoring.snapshot import DeviceUse, DeviceUser

GONE: Final = "its driver does not tell of it any more"
Owner = tuple[str, str, str]
"""Container, pod and name: of a process outside of containers its program's, else empty."""


class _Once:
    """A device meter that is asked once for each look, though two want to know. What it raises is no reading."""

    def __init__(self, meter: DeviceMeter) -> None:
        self.name: str = meter.name
        self.summary: str = meter.summary
        self.quantity: Quantity = meter.quantity
        self.provenance: Provenance = meter.provenance
        self.model_error: float = meter.model_error
        self._meter = meter
        self._asked: float | None = None
        self._seen: tuple[DeviceReading, ...] = ()

    def available(self) -> str | None:
        return self._meter.available()

    def read(self, now: float) -> Sample | Unknown:
        return self._meter.read(now)

    def devices(self, now: float) -> tuple[DeviceReading, ...]:
        if self._asked != now:
            self._asked = now
            try:
                self._seen = self._meter.devices(now)
            except Exception:  # a driver that fails must not take the node's joules with it
                self._seen = ()
        return self._seen

    def processes(self, now: float) -> tuple[DeviceProcess, ...]:
        try:
            return self._meter.processes(now)
        except Exception:
            return ()


class _Device:
    """Sums of one."""

    __slots__ = ("idle_j", "interval", "joules", "shown", "unattributed_j", "unknown_s", "users")

    def __init__(self) -> None:
        self.joules = self.idle_j = self.unattributed_j = self.unknown_s = 0.0
        self.users: dict[Owner, float] = {}
        self.interval: DeviceUsage | None = None
        self.shown: DeviceUse | None = None


class Accelerators:
    """Called with the time of a look; gives every device of some meters. `living`: a process by its PID."""

    def __init__(self, meters: Sequence[DeviceMeter], living: Callable[[int], Process | None]) -> None:
        self._meters = [_Once(meter) for meter in meters]
        self._accounts = [GpuAccount(meter) for meter in self._meters]
        self._living = living
        self._known: dict[str, _Device] = {}

    def __call__(self, now: float) -> tuple[DeviceUse, ...]:
        present: set[str] = set()
        for meter, account in zip(self._meters, self._accounts, strict=True):
            for usage in account.sample(now):
                self._add(self._known.setdefault(usage.device, _Device()), usage)
            for reading in meter.devices(now):
                present.add(reading.uuid)
                self._show(self._known.setdefault(reading.uuid, _Device()), reading, meter.provenance)
        for uuid, device in self._known.items():
            if uuid not in present and device.shown is not None:
                device.shown = msgspec.structs.replace(device.shown, watts=None, utilisation=None, problem=GONE)
        return tuple(device.shown for device in self._known.values() if device.shown is not None)

    def _add(self, device: _Device, usage: DeviceUsage) -> None:
        device.interval = usage
        if usage.meter_j is None:
            device.unknown_s += usage.seconds
            return
        device.joules += usage.meter_j
        device.idle_j += usage.idle_j
        device.unattributed_j += usage.unattributed_j
        for pid, (joules, _) in usage.processes.items():
            owner = self._owner(pid)
            device.users[owner] = device.users.get(owner, 0.0) + joules

    def _owner(self, pid: int) -> Owner:
        process = self._living(pid)
        if process is None:  # it has ended, or the driver counts as another kernel does
            return "", "", ""
        place = process.place
        return (place.container, place.pod, "") if place.container else ("", "", place.vm or process.name)

    def _show(self, device: _Device, reading: DeviceReading, provenance: Provenance) -> None:
        interval, count = device.interval, reading.count
        problem = count.reason if isinstance(count, Unknown) else interval.problem if interval is not None else ""
        seen = interval is not None and interval.meter_j is not None and interval.seconds > 0.0
        mean = interval.meter_j / interval.seconds if seen else None  # type: ignore[union-attr,operator]
        watts = reading.watts if reading.watts is not None else mean
        device.shown = DeviceUse(
            uuid=reading.uuid,
            index=reading.index,
            name=reading.name,
            kind=reading.kind,
            joules=device.joules,
            idle_j=device.idle_j,
            unattributed_j=device.unattributed_j,
            users=tuple(DeviceUser(*owner, joules) for owner, joules in device.users.items()),
            watts=None if problem else watts,
            utilisation=reading.utilisation,
            memory_used=reading.memory_used,
            memory_total=reading.memory_total,
            provenance=provenance,
            problem=problem,
            unknown_s=device.unknown_s,
        )
