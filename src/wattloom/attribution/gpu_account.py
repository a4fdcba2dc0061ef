"""Who used the joules of the devices: the account of a device meter, interval by interval.

Owns what processes did in the open interval of each device, and the idle watts that the device has
shown. Used by one thread. Reads the meter and has no clock: `sample(now)` is told the time. A device that cannot be
read keeps its interval open, and a count that broke off makes it unknown: no joules are invented for it.
"""

from collections import deque
from math import inf
from statistics import median
from typing import Final

from wattloom.attribution.gpu import DeviceInterval, DeviceUsage, Use, share_out
from wattloom.energy.forecast import Unknown
from wattloom.metering.devices import DeviceMeter, DeviceProcess, DeviceReading
from wattloom.metering.readings import Begun, Closed, Intervals, Silent

IDLE_SHARE: Final = 0.13
"""Idle watts over the power limit: geometric mean of V100, P100, T4, A10 and A100 in the table of Alibaba's cluster."""
IDLE_SPREAD: Final = 0.3
"""Relative standard deviation of an idle figure that was not seen: the five are from 0.10 to 0.20."""
QUIET: Final = 0.005
"""Utilisation that counts as none."""
SURE: Final = 3.0
"""Nothing is learned from joules that are less than so many standard deviations."""
REMEMBERED: Final = 10
"""Intervals with nothing to do that are kept: after so many a device may idle at more than it did."""
GONE: Final = "its driver does not tell of it any more"
NEW: Final = "it had not been read before"


class IdleWatts:
    """What a device draws with nothing to do: the least of the last times it had nothing to do; else from its power
    limit.

    A process that holds a context keeps many devices in a higher state; that, too, is idle: nothing runs. The least and
    not the mean, since a device that is looked at for a moment may have been busy just before.
    """

    __slots__ = ("_lowest", "_quiet")

    def __init__(self) -> None:
        self._quiet: deque[float] = deque(maxlen=REMEMBERED)
        self._lowest = float("inf")

    def learn(self, watts: float, utilisation: float | None) -> None:
        self._lowest = min(self._lowest, watts)
        if utilisation is not None and utilisation <= QUIET:
            self._quiet.append(watts)

    def watts(self, limit_w: float | None) -> tuple[float, float]:
        """Watts and their spread. A guess is never more than the least that was ever drawn."""
        if self._quiet:
            least = min(self._quiet)
            return least, median(self._quiet) - least
        guess = self._lowest if limit_w is None else min(limit_w * IDLE_SHARE, self._lowest)
        return (guess, guess * IDLE_SPREAD) if guess < float("inf") else (0.0, 0.0)


class _Open:
    """The open interval of one device."""

    __slots__ = ("busy_s", "hidden", "idle", "intervals", "known_s", "looked", "memory", "pids", "used_s")

    def __init__(self) -> None:
        self.intervals = Intervals(inf)
        self.looked: float | None = None
        self.idle = IdleWatts()
        self.pids: set[int] = set()
        """Who had a context when it could last be read, and since."""
        self.clear()

    def clear(self) -> None:
        self.used_s: dict[int, float] = {}
        """Seconds in which a process' kernels ran."""
        self.hidden: set[int] = set()
        """Processes of which that was not known at some time."""
        self.memory: dict[int, int] = {}
        self.busy_s = 0.0
        self.known_s = 0.0
        """Seconds of which the device's own utilisation is known."""

    def look(self, now: float, reading: DeviceReading, processes: list[DeviceProcess]) -> None:
        seconds = now - self.looked if self.looked is not None else 0.0
        self.looked = now
        pids = {process.pid for process in processes}
        self.pids = self.pids | pids if isinstance(reading.count, Unknown) else pids
        if reading.utilisation is not None:
            self.busy_s += reading.utilisation * seconds
            self.known_s += seconds
        for process in processes:
            if process.utilisation is None:
                self.hidden.add(process.pid)
            self.used_s[process.pid] = self.used_s.get(process.pid, 0.0) + (process.utilisation or 0.0) * seconds
            self.memory[process.pid] = max(self.memory.get(process.pid, 0), process.memory_bytes or 0)

    def uses(self, seconds: float) -> list[Use]:
        return [
            Use(pid, None if pid in self.hidden else min(used / seconds, 1.0), self.memory.get(pid))
            for pid, used in self.used_s.items()
        ]

    def utilisation(self) -> float | None:
        return self.busy_s / self.known_s if self.known_s > 0.0 else None

    def activity(self, seconds: float) -> float | None:
        """The same, or that of the processes together, if it is more: the device's own is of a moment only."""
        device = self.utilisation()
        return None if device is None else max(device, sum(self.used_s.values()) / seconds)


class GpuAccount:
    """Shares out what a device meter counts. Call `sample` about once a second."""

    def __init__(self, meter: DeviceMeter) -> None:
        self.meter = meter
        self._open: dict[str, _Open] = {}
        self.silent: dict[str, str] = {}
        """Devices of which the last look closed no interval, and why."""

    def users(self, device: str) -> set[int]:
        """Processes that had a context on a device at the last look, or when it could last be read."""
        return self._open[device].pids if device in self._open else set()

    @property
    def all_users(self) -> set[int]:
        return {pid for state in self._open.values() for pid in state.pids}

    def forget(self, pids: set[int]) -> None:
        """These processes have ended: their numbers may soon be others'."""
        for state in self._open.values():
            state.pids -= pids

    def sample(self, now: float) -> tuple[DeviceUsage, ...]:
        """The intervals that were closed by this look: of every device that could be read."""
        closed = []
        silent = dict.fromkeys(self._open, GONE)
        readings, processes = self._look(now)
        for reading in readings:
            state = self._open.setdefault(reading.uuid, _Open())
            state.look(now, reading, [process for process in processes if process.device == reading.uuid])
            usage = self._closed(state, reading, now)
            silent.pop(reading.uuid, None)
            if usage is not None:
                closed.append(usage)
            else:
                silent[reading.uuid] = reading.count.reason if isinstance(reading.count, Unknown) else NEW
        self.silent = silent
        return tuple(closed)

    def _look(self, now: float) -> tuple[tuple[DeviceReading, ...], tuple[DeviceProcess, ...]]:
        """The meter may be anybody's: what it raises is no reading."""
        try:
            processes = self.meter.processes(now)
            return self.meter.devices(now), processes
        except Exception:
            return (), ()

    def _closed(self, state: _Open, reading: DeviceReading, now: float) -> DeviceUsage | None:
        found, usage = state.intervals.take(reading.count, now), None
        if isinstance(found, Silent):
            return None  # the interval stays open
        if isinstance(found, Closed):
            usage = self._usage(state, reading, found)
        elif isinstance(found, Begun) and found.last is not None:
            usage = DeviceUsage(reading.uuid, found.lost_s, None, problem="the device's count broke off")
        state.clear()
        return usage

    def _usage(self, state: _Open, reading: DeviceReading, closed: Closed) -> DeviceUsage:
        seconds, joules, spread = closed.seconds, closed.joules, closed.resolution_j
        utilisation = state.utilisation()
        if joules > SURE * spread:  # a counter that has not been brought up to date shows no watts
            state.idle.learn(joules / seconds, state.activity(seconds))
        idle_w, idle_spread = state.idle.watts(reading.limit_w)
        interval = DeviceInterval(reading.uuid, seconds, joules, spread, idle_w, idle_spread, utilisation)
        return share_out(interval, state.uses(seconds), self.meter.model_error)
