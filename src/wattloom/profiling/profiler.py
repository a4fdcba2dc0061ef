"""Taking a profile: idle, every stressor at every level, idle again; under each governor or frequency.

Owns the order, what is kept from an interrupted run, and that every level is on the disk before the next begins.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Final, TypeVar

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.errors import WattloomError
from wattloom.machines.own_profile import SYSTEM, profiles_folder
from wattloom.machines.profile_file import CpuProfile, Idle, Level, Power, encode_profile
from wattloom.metering.protocol import Meter
from wattloom.profiling import frequency
from wattloom.profiling.bench import Bench, Reading, Terms
from wattloom.profiling.frequency import Setting
from wattloom.profiling.restoring import put_back
from wattloom.profiling.storing import StoreError, store
from wattloom.profiling.stressors import Stressor

AS_FOUND: Final = Setting("")
Some = TypeVar("Some", Idle, Level)


class MeterLost(WattloomError):
    """The meter does not work any more. What was measured is kept."""


class Plan(msgspec.Struct, frozen=True):
    """What is to be measured."""

    stressors: Sequence[Stressor]
    levels: Sequence[int]
    cpus: Sequence[int]
    """In the order in which levels take them."""
    settings: Sequence[Setting] = (AS_FOUND,)
    terms: Terms = Terms()

    @property
    def steps(self) -> int:
        return len(self.settings) * (2 + len(self.stressors) * len(self.levels))


class Step(msgspec.Struct, frozen=True):
    """Where we are."""

    words: str
    done: int
    total: int
    left_s: float
    """Seconds that are left, from how long steps have taken."""


Tell = Callable[[Step], None]


class Profiler:
    """Takes one profile. `profile` is what is known already, which is not measured again."""

    def __init__(
        self,
        plan: Plan,
        bench: Bench,
        meter: Meter,
        profile: CpuProfile,
        path: Path,
        tell: Tell,
        now: Callable[[], float],
        *,
        system: Path = SYSTEM,
        folder: Path | None = None,
        lock: int | None = None,
    ) -> None:
        self._plan, self._bench, self._meter = plan, bench, meter
        self._profile, self._path, self._tell = profile, path, tell
        self._now, self._system, self._lock = now, system, lock
        self._folder = profiles_folder() if folder is None else folder
        self._again = bool(profile.finished)
        """Whether disturbed readings are tried again: of a profile that was finished, not of one that goes on."""
        self._words = ""
        self._done, self._measured = 0, 0
        self._began = self._step_began = 0.0

    def run(self, date: Callable[[], str]) -> CpuProfile:
        """Measure what is missing. `date` gives the time of the end, as it is to stand in the file."""
        self._profile = msgspec.structs.replace(self._profile, finished="")
        self._store()
        self._began = self._now()
        swept = any(setting.name for setting in self._plan.settings)
        guarded = put_back(self._folder, self._system, lock=self._lock) if swept else nullcontext()
        with signals_raise(), guarded:
            for setting in self._plan.settings:
                self._one_setting(setting)
        self._profile = msgspec.structs.replace(self._profile, finished=date())
        self._store()
        return self._profile

    @property
    def kept(self) -> int:
        """Levels that are on the disk."""
        return len(self._profile.levels)

    def _one_setting(self, setting: Setting) -> None:
        if setting.name:
            frequency.apply(setting, self._system)
        self._idle(setting.name, first=True)
        for stressor in self._plan.stressors:
            for level in self._plan.levels:
                self._level(setting.name, stressor, level)
        self._idle(setting.name, first=False)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _idle(self, setting: str, first: bool) -> None:
        when = "first" if first else "last"
        old = next((each for each in self._profile.idle if (each.setting, each.when) == (setting, when)), None)
        with self._step(f"idle, {when}", setting, self._stays(old)):
            if self._stays(old):
                return
            reading = self._bench.idle()
            kept = [each for each in self._profile.idle if each is not old]
            made = Idle(
                when="first" if first else "last",
                setting=setting,
                power=_power(reading),
                temperature_c=reading.temperature_c,
                other_cores=reading.other_cores,
                settled=reading.settled,
                problem=_problem(reading),
            )
            self._keep(msgspec.structs.replace(self._profile, idle=(*kept, _better(old, made))), reading)

    def _level(self, setting: str, stressor: Stressor, level: int) -> None:
        key = (setting, stressor.name, level)
        old = next((each for each in self._profile.levels if each.key == key), None)
        with self._step(f"{stressor.name} on {level}", setting, self._stays(old)):
            if self._stays(old):
                return
            cpus = tuple(self._plan.cpus[:level])
            reading = self._bench.level(stressor, cpus)
            made = Level(
                stressor=stressor.name,
                level=level,
                setting=setting,
                cpus=cpus,
                power=_power(reading),
                ops_per_s=reading.ops_per_s,
                settled=reading.settled,
                settle_s=round(reading.settle_s, 3),
                temperature_c=reading.temperature_c,
                mhz=reading.mhz,
                other_cores=reading.other_cores,
                attempts=reading.attempts,
                problem=_problem(reading),
            )
            kept = [each for each in self._profile.levels if each is not old]
            self._keep(msgspec.structs.replace(self._profile, levels=(*kept, _better(old, made))), reading)

    def _stays(self, old: Idle | Level | None) -> bool:
        """Whether a reading that is there is not taken again."""
        if old is None or old.power is None:
            return False
        return self._profile.sound(old) or not self._again

    @contextmanager
    def _step(self, words: str, setting: str, known: bool) -> Iterator[None]:
        self._words = f"{words}, {setting}" if setting else words
        self._step_began = self._now()
        self.beat()
        yield
        self._done += 1
        self._measured += not known
        self.beat()

    def beat(self) -> None:
        """Say where we are. Steps that are known already take no time."""
        since = self._now() - self._began
        step_s = since / self._measured if self._measured else 0.0
        within = min(self._now() - self._step_began, step_s)
        left_s = max(0.0, step_s * (self._plan.steps - self._done) - within)
        self._tell(Step(self._words, self._done, self._plan.steps, left_s))

    # -- the file ------------------------------------------------------------------------------------------------------

    def _keep(self, profile: CpuProfile, reading: Reading) -> None:
        before, self._profile = self._profile, profile
        try:
            self._store()
        except StoreError as problem:
            self._profile = before
            raise StoreError(
                f"{problem}. {len(before.levels)} levels that were measured before are safe there; make room and run "
                "the command again: it goes on with the level that was lost"
            ) from problem
        gone = self._meter.available() if isinstance(reading.power, Unknown) else None
        if gone is not None:
            raise MeterLost(
                f"meter {self._meter.name} does not work any more: {gone.splitlines()[0]}. {len(profile.levels)} "
                f"levels are kept in {self._path}; run the command again to go on"
            )

    def _store(self) -> None:
        store(self._path, encode_profile(self._profile))


def _better(old: Some | None, new: Some) -> Some:
    """Of two readings the one that is known, or the less disturbed one."""
    if old is None or old.power is None:
        return new
    return new if new.power is not None and new.other_cores <= old.other_cores else old


def _power(reading: Reading) -> Power | None:
    return reading.power if isinstance(reading.power, Power) and not reading.problem else None


def _problem(reading: Reading) -> str:
    return reading.problem or (reading.power.reason if isinstance(reading.power, Unknown) else "")


@contextmanager
def signals_raise() -> Iterator[None]:
    """A polite end by the system is as good as Ctrl-C: blocks are left, and clean up."""
    if current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
