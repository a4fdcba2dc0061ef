"""The bench one level is measured on: settle, read, see who else was at work, try again if it went wrong.

Owns what makes a reading good. Knows neither files nor the order of levels.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.machines.own_profile import SYSTEM
from wattloom.machines.profile_file import Power, most_others
from wattloom.metering.proc import PROC, busy_seconds
from wattloom.profiling import frequency
from wattloom.profiling.loads import GRACE_S, Load
from wattloom.profiling.power_recorder import LEAST_INTERVALS, PowerRecorder
from wattloom.profiling.steady import SteadyState, settled
from wattloom.profiling.stressors import Stressor

RAMP_S: Final = 0.2
"""Until a load that was started draws its power."""
POLL_S: Final = 0.02
DEGREES: Final = 0.5
"""A drift of the temperature that counts as none, in a window."""


class Terms(msgspec.Struct, frozen=True):
    """How long, how often, how well."""

    seconds: float = 10.0
    settle_s: float = 60.0
    """Most seconds to wait for rest; 0: do not wait."""
    window_s: float = 5.0
    tolerance: float = 0.01
    attempts: int = 3


class Reading(msgspec.Struct, frozen=True):
    """What was found at one level."""

    power: Power | Unknown
    ops_per_s: float | None = None
    other_cores: float = 0.0
    settled: bool = True
    settle_s: float = 0.0
    temperature_c: float | None = None
    mhz: float | None = None
    attempts: int = 1
    problem: str = ""
    """What is wrong with the load. Wrong power says so itself."""

    @property
    def known(self) -> bool:
        return isinstance(self.power, Power) and not self.problem


class Bench:
    """Measures idle and levels with one meter."""

    def __init__(
        self,
        recorder: PowerRecorder,
        terms: Terms,
        threads: int,
        *,
        builtin: bool = False,
        proc: Path = PROC,
        system: Path = SYSTEM,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._recorder, self._terms, self._builtin = recorder, terms, builtin
        self._proc, self._system, self._beat = proc, system, beat
        self.most_others = most_others(threads)

    def idle(self) -> Reading:
        """The machine as it is without us."""
        return self._repeated(self._idle_once)

    def level(self, stressor: Stressor, cpus: Sequence[int]) -> Reading:
        return self._repeated(lambda: self._level_once(stressor, cpus))

    def _repeated(self, once: Callable[[], Reading]) -> Reading:
        """The first reading that nothing is wrong with; else the best of several: known, and least disturbed."""
        found: list[Reading] = []
        for _ in range(self._terms.attempts):
            found.append(once())
            if found[-1].known and found[-1].other_cores <= self.most_others:
                break
        best = min(found, key=lambda reading: (not reading.known, reading.other_cores))
        return msgspec.structs.replace(best, attempts=len(found))

    def _idle_once(self) -> Reading:
        rested, settle_s = self._settle(lambda: True)
        self._recorder.restart()
        begin, busy, own = self._recorder.now(), self._busy(), time.process_time()
        self._read(lambda: self._recorder.now() < begin + self.seconds)
        end = self._recorder.now()
        others = _others(self._busy() - busy, time.process_time() - own, end - begin)
        power = self._recorder.power(begin, end)
        warm = self._recorder.mean_celsius
        return Reading(power, None, others, rested, settle_s, warm, frequency.mhz([0], self._system))

    def _level_once(self, stressor: Stressor, cpus: Sequence[int]) -> Reading:
        rested, settle_s = True, 0.0
        if self._terms.settle_s:
            with Load(stressor, cpus, self._most_settle_s + GRACE_S, self._builtin) as load:
                rested, settle_s = self._settle(lambda: load.runs)
        busy, own, began = self._busy(), time.process_time(), self._recorder.now()
        speeds: list[float] = []
        with Load(stressor, cpus, self.seconds, self._builtin) as load:
            end = load.certain_until(began, self._wait_for_work(load))
            self._recorder.restart()
            begin = self._recorder.now()
            self._read(lambda: load.runs, lambda: speeds.extend(self._speed(cpus)))
            work = load.finish()
        ours = work.cpu_s + time.process_time() - own
        others = _others(self._busy() - busy, ours, self._recorder.now() - began)
        return Reading(
            self._recorder.power(begin, end),
            work.ops_per_s,
            others,
            rested,
            settle_s,
            self._recorder.mean_celsius,
            sum(speeds) / len(speeds) if speeds else None,
            problem=work.problem,
        )

    def _wait_for_work(self, load: Load) -> float:
        """Until it is at work on all its CPUs. When that began, at the earliest."""
        while load.runs and not load.at_work:
            self._recorder.wait(POLL_S)
        began = self._recorder.now() - POLL_S
        self._recorder.wait(RAMP_S)
        return began

    # -- time ----------------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """How long to read: at least until the meter has had enough figures."""
        return max(self._terms.seconds, (LEAST_INTERVALS + 2) * self._recorder.gap_s + RAMP_S)

    @property
    def _most_settle_s(self) -> float:
        return max(self._terms.settle_s, 10.0 * self._recorder.gap_s) if self._terms.settle_s else 0.0

    def _settle(self, goes_on: Callable[[], bool]) -> tuple[bool, float]:
        """Wait until power and temperature rest. Whether they did, and how long it took."""
        self._recorder.restart()
        began = self._recorder.now()
        while (passed := self._recorder.now() - began) < self._most_settle_s and goes_on():
            self._sample()
            window_s = max(self._terms.window_s, 6.0 * self._recorder.gap_s)
            power = settled(self._recorder.watts, SteadyState(window_s, self._terms.tolerance))
            warmth = SteadyState(window_s, 0.0, least=DEGREES)
            if power and (not self._recorder.celsius or settled(self._recorder.celsius, warmth)):
                return True, passed
            self._recorder.wait()
        return self._terms.settle_s == 0.0, self._recorder.now() - began

    def _read(self, goes_on: Callable[[], bool], beside: Callable[[], None] = lambda: None) -> None:
        while goes_on():
            self._sample()
            beside()
            self._recorder.wait()
        self._sample()

    def _sample(self) -> None:
        self._recorder.sample()
        self._beat()

    def _busy(self) -> float:
        return busy_seconds(self._proc) or 0.0

    def _speed(self, cpus: Sequence[int]) -> list[float]:
        found = frequency.mhz(cpus, self._system)
        return [] if found is None else [found]


def _others(busy_s: float, ours_s: float, seconds: float) -> float:
    """Cores that others kept busy."""
    return round(max(0.0, busy_s - ours_s) / seconds, 3) if seconds > 0.0 else 0.0
