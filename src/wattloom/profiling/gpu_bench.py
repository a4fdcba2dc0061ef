"""One share on one device: start the load, let it settle, read, see who else was at work.

Owns what makes a reading good. Knows neither files nor the order of shares.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.machines.profile_file import Power
from wattloom.metering.devices import DeviceMeter, DeviceReading
from wattloom.metering.protocol import Quantity, Sample
from wattloom.profiling.bench import DEGREES, Terms
from wattloom.profiling.gpu_command import GpuLoad
from wattloom.profiling.gpu_file import GpuPoint
from wattloom.profiling.power_recorder import LEAST_INTERVALS, Clock, PowerRecorder, Sleep
from wattloom.profiling.steady import SteadyState, settled
from wattloom.profiling.temperature import Thermometer

READY_S: Final = 60.0
"""How long a load may take until it is at work: a context, memory, a kernel to translate, a model to read."""
RAMP_S: Final = 0.5
"""And how long the device may take to change its clocks then."""
OTHERS: Final = 0.02
"""Utilisation by others that counts as none."""


class OneDevice:
    """One device of a meter as a meter of its own."""

    quantity: Quantity = "device"

    def __init__(self, meter: DeviceMeter, uuid: str) -> None:
        self.name, self.summary = meter.name, meter.summary
        self.provenance: Provenance = meter.provenance
        self.model_error = meter.model_error
        self._meter, self._uuid = meter, uuid
        self.reading: DeviceReading | None = None
        """The last one."""

    def available(self) -> str | None:
        return self._meter.available()

    def read(self, now: float) -> Sample | Unknown:
        self.reading = next((each for each in self._meter.devices(now) if each.uuid == self._uuid), None)
        if self.reading is None:
            return Unknown(self._meter.available() or f"the device {self._uuid} is not there any more")
        return self.reading.count

    def others(self, now: float, group: int | None) -> float:
        """Utilisation by processes that are not of our load."""
        mine = (each for each in self._meter.processes(now) if each.device == self._uuid)
        return sum(each.utilisation or 0.0 for each in mine if not _of_group(each.pid, group))


def _of_group(pid: int, group: int | None) -> bool:
    with suppress(OSError):
        return group is not None and os.getpgid(pid) == group
    return False


class DeviceThermometer(Thermometer):
    """The device's own, as of its last reading."""

    def __init__(self, device: OneDevice) -> None:
        super().__init__()
        self._device = device

    def celsius(self) -> float | None:
        reading = self._device.reading
        return reading.temperature_c if reading is not None else None


class GpuBench:
    """Measures idle and shares of one device."""

    def __init__(
        self,
        device: OneDevice,
        terms: Terms,
        now: Clock,
        sleep: Sleep,
        every_s: float,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._device, self._terms, self._beat = device, terms, beat
        self._recorder = PowerRecorder(device, DeviceThermometer(device), now, sleep, every_s)

    def measure(self, share: int, start: Callable[[], GpuLoad] | None) -> GpuPoint:
        """One point. `start` starts the load; None: idle."""
        if start is None:
            return self._point(share, None)
        with start() as load:
            return self._point(share, load)

    def _point(self, share: int, load: GpuLoad | None) -> GpuPoint:
        problem = self._ramp(load)
        if problem:
            return GpuPoint(share=share, settled=False, problem=problem)
        rested, settle_s = self._settle(load)
        self._recorder.restart()
        begin = self._recorder.now()
        busy, others, work = self._read(begin, load)
        end = self._recorder.now()
        power = self._recorder.power(begin, end)
        problem = load.failure() if load is not None and not load.runs else ""
        problem = problem or (power.reason if isinstance(power, Unknown) else "")
        return GpuPoint(
            share=share,
            power=power if isinstance(power, Power) and not problem else None,
            utilisation=sum(busy) / len(busy) if busy else None,
            ops_per_s=work / (end - begin) if load is not None and load.counts else None,
            temperature_c=self._recorder.mean_celsius,
            settled=rested,
            settle_s=round(settle_s, 3),
            others=_mean(others),
            problem=problem,
        )

    def _ramp(self, load: GpuLoad | None) -> str:
        """Wait until the load is at work. What is wrong with it; empty: nothing."""
        began = self._recorder.now()
        while load is not None and not self._at_work(load):
            if not load.runs:
                return load.failure()
            if self._recorder.now() - began > READY_S:
                return f"the load did not begin to use the device within {READY_S:g} s"
            self._recorder.wait()
        ready = self._recorder.now()
        while self._recorder.now() - ready < RAMP_S + 2.0 * self._lag_s and _runs(load):
            self._sample(load)
            self._recorder.wait()
        return ""

    def _at_work(self, load: GpuLoad) -> bool:
        """It says that it did something, or the driver does. Where neither ever says anything, it is believed."""
        self._sample(load)
        reading = self._device.reading
        if load.counts or load.speaks or reading is None:
            return load.counts
        return reading.utilisation is None or reading.utilisation > 0.0

    def _settle(self, load: GpuLoad | None) -> tuple[bool, float]:
        """Wait until power and temperature rest. Whether they did, and how long it took."""
        self._recorder.restart()
        began = self._recorder.now()
        while (passed := self._recorder.now() - began) < self._terms.settle_s and _runs(load):
            self._sample(load)
            window_s = max(self._terms.window_s, 6.0 * self._recorder.gap_s)
            power = settled(self._recorder.watts, SteadyState(window_s, self._terms.tolerance))
            warmth = SteadyState(window_s, 0.0, least=2.0 * DEGREES)  # these sensors tell whole degrees
            if power and (not self._recorder.celsius or settled(self._recorder.celsius, warmth)):
                return True, passed
            self._recorder.wait()
        return self._terms.settle_s == 0.0, self._recorder.now() - began

    def _read(self, begin: float, load: GpuLoad | None) -> tuple[list[float], list[float], float]:
        """Utilisation as the driver tells it, that by others, and the work that was done."""
        busy: list[float] = []
        others: list[float] = []
        group = load.group if load is not None else None
        self._device.others(self._recorder.now(), group)  # from here on
        self._sample(load)
        work = 0.0
        seconds = max(self._terms.seconds, (LEAST_INTERVALS + 2) * self._recorder.gap_s)
        while self._recorder.now() - begin < seconds and _runs(load):
            self._recorder.wait()
            work += self._sample(load)
            reading = self._device.reading
            if reading is not None and reading.utilisation is not None:
                busy.append(reading.utilisation)
            others.append(self._device.others(self._recorder.now(), group))
        return busy, others, work

    @property
    def _lag_s(self) -> float:
        return self._device.reading.lag_s if self._device.reading is not None else 0.0

    def _sample(self, load: GpuLoad | None) -> float:
        """Read now. The work that was done since the last look: a load that says a lot must not wait for us."""
        self._recorder.sample()
        self._beat()
        return load.work() if load is not None else 0.0


def _runs(load: GpuLoad | None) -> bool:
    return load is None or load.runs


def _mean(figures: Sequence[float]) -> float:
    return round(sum(figures) / len(figures), 4) if figures else 0.0
