"""A meter of accelerators on top of any driver: everything but the driver's own calls.

Owns the sum over the devices, what a failure of one or of all means, and when the driver is asked anew. A driver is a
seam of four functions; NVML and amdsmi are two of them.
"""

from math import hypot
from typing import Any, Final, Protocol

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.errors import WattloomError
from wattloom.metering.device_counts import DeviceCount, Spent
from wattloom.metering.devices import DeviceProcess, DeviceReading, Kind
from wattloom.metering.protocol import Quantity, Sample, Zone

WORKLOADS_DIFFER: Final = 0.4
"""Spread of watts among workloads on one GPU: relative standard deviation of the mean watts of six networks in
training, each over its batch sizes, at the highest power limit. Zeus' measurements: A40 0.34, P100 0.42, RTX 6000 0.38,
V100 0.44."""


class DriverProblem(WattloomError):
    """The driver did not give what it was asked for; the message says why and what to do."""

    def __init__(self, reason: str, *, broke: bool = False, gone: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.broke = broke or gone
        """The count of joules may have begun again."""
        self.gone = gone
        """The driver as a whole: it must be opened anew."""


class Device(msgspec.Struct, frozen=True):
    """One device as the driver knows it."""

    index: int
    uuid: str
    name: str
    handle: Any
    note: str = ""
    problem: str = ""
    """Why it cannot be read at all."""


class State(msgspec.Struct, frozen=True):
    """The rest of what can be known of a device."""

    watts: float | None = None
    utilisation: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    limit_w: float | None = None
    temperature_c: float | None = None


class Driver(Protocol):
    """The calls of one maker's library. Every one may raise DriverProblem."""

    kind: Kind

    def open(self) -> tuple[Device, ...]:
        """The visible devices. Called again after the driver was gone."""

    def spent(self, device: Device) -> Spent: ...

    def state(self, device: Device) -> State: ...

    def users(self, device: Device, now: float) -> list[DeviceProcess]: ...


class DriverMeter:
    """Counts all visible devices of one driver."""

    quantity: Quantity = "device"
    provenance: Provenance = "measured"

    def __init__(self, name: str, summary: str, driver: Driver, model_error: float) -> None:
        self.name = name
        self.summary = summary
        self.model_error = model_error
        self._driver = driver
        self._devices: tuple[Device, ...] | None = None
        self._counts: dict[str, DeviceCount] = {}
        self._lags: dict[str, float] = {}
        self._breaks = 0
        """How often the set of devices changed."""
        self._users: tuple[float, tuple[DeviceProcess, ...]] | None = None

    def available(self) -> str | None:
        if any(device.problem for device in self._devices or ()):
            self._devices = None  # it may have come back
        try:
            devices = self._opened()
        except DriverProblem as problem:
            return problem.reason
        for device in devices:
            try:
                self._spent(device)
            except DriverProblem as problem:
                self._note(device, problem)
                return problem.reason
        return None

    def read(self, now: float) -> Sample | Unknown:
        try:
            devices = self._opened()
        except DriverProblem as problem:
            return Unknown(problem.reason)
        counts = [self._count(device, now) for device in devices]
        return self._sum(now, counts)

    def devices(self, now: float) -> tuple[DeviceReading, ...]:
        try:
            devices = self._opened()
        except DriverProblem:
            return ()
        return tuple(self._reading(device, now) for device in devices)

    def processes(self, now: float) -> tuple[DeviceProcess, ...]:
        if self._users is not None and now <= self._users[0]:
            return self._users[1]
        try:
            devices = self._opened()
        except DriverProblem:
            return ()
        users = tuple(user for device in devices for user in self._using(device, now))
        self._users = now, users
        return users

    def zones(self) -> list[Zone]:
        return [
            Zone(f"{device.index} {device.name}", self._counts[device.uuid].joules) for device in self._devices or ()
        ]

    # -- one device ----------------------------------------------------------------------------------------------

    def _count(self, device: Device, now: float) -> Sample | Unknown:
        count = self._counts[device.uuid]
        try:
            spent = self._spent(device)
        except DriverProblem as problem:
            self._note(device, problem)
            return Unknown(problem.reason)
        self._lags[device.uuid] = spent.period_s / 2.0 if spent.source == "power" else 0.0
        answer = count.read(now, spent)
        return Unknown(f"{_words(device)}: {answer.reason}") if isinstance(answer, Unknown) else answer

    def _spent(self, device: Device) -> Spent:
        if device.problem:
            raise DriverProblem(f"{_words(device)}: {device.problem}", broke=True)
        try:
            return self._driver.spent(device)
        except DriverProblem as problem:
            raise DriverProblem(
                f"{_words(device)}: {problem.reason}", broke=problem.broke, gone=problem.gone
            ) from problem

    def _reading(self, device: Device, now: float) -> DeviceReading:
        count = self._count(device, now)
        try:
            state = self._driver.state(device) if not device.problem else State()
        except DriverProblem:
            state = State()
        return DeviceReading(
            device.index,
            device.uuid,
            device.name,
            self._driver.kind,
            count,
            self._counts[device.uuid].source,
            lag_s=self._lags.get(device.uuid, 0.0),
            note=device.note,
            **msgspec.structs.asdict(state),
        )

    def _using(self, device: Device, now: float) -> list[DeviceProcess]:
        try:
            return self._driver.users(device, now) if not device.problem else []
        except DriverProblem:
            return []

    # -- all of them ---------------------------------------------------------------------------------------------

    def _sum(self, now: float, counts: list[Sample | Unknown]) -> Sample | Unknown:
        samples = [count for count in counts if isinstance(count, Sample)]
        if len(samples) < len(counts):
            return next(count for count in counts if isinstance(count, Unknown))
        # Epochs only rise, so their sum is another one as soon as any of them is.
        epoch = self._breaks + sum(sample.epoch for sample in samples)
        joules = sum(sample.joules for sample in samples)
        return Sample(now, joules, hypot(*(sample.resolution_j for sample in samples)), epoch=epoch)

    def _opened(self) -> tuple[Device, ...]:
        if self._devices is None:
            devices = self._driver.open()
            if self._counts and self._counts.keys() != {device.uuid for device in devices}:
                self._begin_anew()
            for device in devices:
                self._counts.setdefault(device.uuid, DeviceCount())
            self._devices = devices
        return self._devices

    def _note(self, device: Device, problem: DriverProblem) -> None:
        if problem.broke:
            self._counts[device.uuid].begin_again()
        if problem.gone:
            self._devices = None
            for count in self._counts.values():
                count.begin_again()

    def _begin_anew(self) -> None:
        """Other devices than before: the epochs of those that went must not be missing from the sum."""
        self._breaks += 1 + sum(count.epoch for count in self._counts.values())
        self._counts.clear()


def _words(device: Device) -> str:
    return f"device {device.index} ({device.name or device.uuid})"
