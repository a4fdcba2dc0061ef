"""How fast a machine is and what it draws, as functions of the cores in demand.

Owns the power curve and the contention curve. Knows the profile, and not which tasks make the demand.
"""

from bisect import bisect_right
from typing import Final

from wattloom.machines.profile import MachineProfile
from wattloom.units import MILLI, Watts

PACKAGE_OF_IDLE: Final = 0.2
PACKAGE_OF_LOAD: Final = 0.72
"""What of the draw at the plug is the CPU packages': of an idle machine, and of each watt more. From one server of
which both are known (Kepler's nx12, 2,202 readings: 171 to 396 W at the plug, 34 to 199 W of the packages)."""
PACKAGE_ERROR: Final = 0.2
"""One standard deviation of the result over itself. At full load it comes to 0.73 of the TDP (median of 505 servers of
SPECpower_ssj2008), scattered by 0.17 of itself; 3% of them would be above."""


class Machine:
    """A profile made ready for questions by the engine and the simulator."""

    __slots__ = (
        "_at",
        "_cores",
        "_frequency",
        "_memo",
        "_threads",
        "_watts",
        "_watts_at",
        "can_sleep",
        "idle_w",
        "name",
        "profile",
        "sleep_w",
    )

    def __init__(self, profile: MachineProfile, frequency: float = 1.0) -> None:
        self.profile = profile
        self._frequency = frequency
        """As a share of what it runs at by itself."""
        self._at: dict[int, Machine] = {}
        self.name = profile.name
        self._cores = profile.cores * MILLI
        self._threads = profile.threads * MILLI
        self._watts_at = [point[0] * MILLI for point in profile.watts]
        self._watts = [point[1] for point in profile.watts]
        self._memo: dict[int, tuple[float, float]] = {}
        self.idle_w: float = self._watts[0] if self._watts else 0.0
        self.sleep_w: float = profile.sleep_w if profile.sleep_w is not None else self.idle_w
        self.can_sleep: bool = profile.sleep_w is not None and bool(self._watts)

    def at(self, frequency: int) -> "Machine":
        """The same machine at so many thousandths of its frequency: as much slower, and what it draws above idle falls
        with the cube, as dynamic power does where the voltage follows the frequency."""
        known = self._at.get(frequency)
        if known is None:
            known = Machine(self.profile, frequency / MILLI)
            self._at[frequency] = known
        return known

    @property
    def knows_power(self) -> bool:
        return bool(self._watts)

    def load(self, demand: int) -> tuple[float, float]:
        """(speed of each task, watts of the machine) with `demand` millicores wanted. Watts 0 if unknown."""
        known = self._memo.get(demand)
        if known is None:
            known = (self._speed(demand), self._power(demand))
            self._memo[demand] = known
        return known

    def speed(self, demand: int) -> float:
        """Progress per second of every task there, against running alone."""
        return self.load(demand)[0]

    def watts(self, demand: int) -> Watts:
        """Draw of the awake machine; 0 where the curve is unknown (ask `knows_power`)."""
        return Watts(self.load(demand)[1])

    def package_watts(self, watts: float) -> float:
        """What the CPU packages draw of so much: all of it if the curve is theirs, else a part, give or take
        `PACKAGE_ERROR`."""
        if self.profile.quantity == "package":
            return watts
        idle = min(watts, self.idle_w)
        return PACKAGE_OF_IDLE * idle + PACKAGE_OF_LOAD * (watts - idle)

    def last_core_watts(self, cores: int) -> float:
        """The step of the curve to the last of so many millicores, for a whole core."""
        step = min(cores, MILLI)
        return (self.load(cores)[1] - self.load(cores - step)[1]) * MILLI / step if step else 0.0

    def waking_watts(self, demand: int) -> float:
        """The most that is drawn while it wakes up for so much demand."""
        profile = self.profile
        watts = self.load(demand)[1]
        return max(watts, profile.wake_j / profile.wake_s) if profile.wake_s > 0.0 else watts

    def _speed(self, demand: int) -> float:
        if demand <= self._cores:
            return self._frequency
        shared = throughput(demand, self._cores, self._threads, self.profile.smt_slowdown) / demand
        return shared * self._frequency

    def _power(self, demand: int) -> float:
        watts = self._nominal_power(demand)
        return watts if self._frequency == 1.0 else self.idle_w + (watts - self.idle_w) * self._frequency**3

    def _nominal_power(self, demand: int) -> float:
        if not self._watts:
            return 0.0
        if demand >= self._watts_at[-1]:
            return self._watts[-1]
        right = bisect_right(self._watts_at, demand)
        x0, x1 = self._watts_at[right - 1], self._watts_at[right]
        y0, y1 = self._watts[right - 1], self._watts[right]
        return y0 + (y1 - y0) * (demand - x0) / (x1 - x0)

    @property
    def full_watts(self) -> Watts:
        return Watts(self._watts[-1] if self._watts else 0.0)


def throughput(demand: float, cores: float, threads: float, smt_slowdown: float) -> float:
    """Work done per second, in cores' worth, by fair sharing of cores and then of hardware threads.

    Up to the physical cores each task has its own. From there to the threads, cores fill up with second tasks, and a
    full core does (threads per core / slowdown) of one task's work. Beyond, nothing is gained.
    """
    if demand <= cores:
        return demand
    if threads <= cores:
        return cores
    most = threads / smt_slowdown
    if demand >= threads:
        return most
    return cores + (demand - cores) * (most - cores) / (threads - cores)


def curve_from_load(
    watts: tuple[float, ...], cores: int, threads: int, smt_slowdown: float
) -> tuple[tuple[float, float], ...]:
    """A curve over cores from watts at equal steps of load, 0 to 100% of the machine's throughput (SPECpower)."""
    steps = len(watts) - 1
    most = throughput(threads, cores, threads, smt_slowdown)
    points: dict[float, float] = {}
    for step, power in enumerate(watts):
        work = most * step / steps
        points[_demand_for(work, cores, threads, most)] = power
    knee = cores / most * steps
    if cores < most and knee != int(knee):
        low = watts[int(knee)]
        points[float(cores)] = low + (watts[int(knee) + 1] - low) * (knee - int(knee))
    points.setdefault(float(threads), watts[-1])
    return tuple(sorted(points.items()))


def _demand_for(work: float, cores: int, threads: int, most: float) -> float:
    """Cores in demand that do `work` cores' worth: the inverse of `throughput`."""
    if work <= cores or most <= cores:
        return work
    return cores + (work - cores) * (threads - cores) / (most - cores)
