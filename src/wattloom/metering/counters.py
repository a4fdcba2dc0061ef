"""Several raw counters whose sum is the count: packages and memory, sockets, devices.

Owns which of them are followed, how their rises are added, and the only place where a wrap is undone. What may be
believed is `count`'s. Knows neither files nor units: raw values come with the joules that one of them is worth.
"""

from collections.abc import Callable, Hashable, Mapping
from math import inf
from typing import Final, Generic, TypeVar

import msgspec

from wattloom.energy.forecast import Unknown
from wattloom.metering.count import Count, Limits, seconds_asleep
from wattloom.metering.protocol import Sample


class Counter:
    """Follows a counter that starts again at 0 after `most`. None: it is not known to wrap."""

    __slots__ = ("_last", "_most")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._last: int | None = None

    @property
    def last(self) -> int | None:
        """What it showed when it was last taken."""
        return self._last

    def problem(self, value: int, most_rise: float) -> str:
        """What is wrong with the new value, if it cannot have risen by more than `most_rise`. Empty: nothing."""
        if value < 0 or (self._most is not None and value > self._most):
            return f"the counter shows {value}, beyond its range"
        if self._last is None:
            return ""
        if self._most is not None and most_rise > self._most:
            return "the counter was not read for so long that it may have wrapped more than once"
        if value < self._last and self._most is None:
            return f"the counter went backwards, from {self._last} to {value}"
        rise = self._rise(value)
        if rise > most_rise:
            return f"the counter rose by {rise} where at most {most_rise:.0f} is possible, from {self._last} to {value}"
        return ""

    def take(self, value: int, sound: bool) -> int:
        """How much it rose, and go on from here. Unsound: only go on from here."""
        rise = self._rise(value) if sound else 0
        self._last = value
        return rise

    def _rise(self, value: int) -> int:
        if self._last is None:
            return 0
        if value >= self._last or self._most is None:
            return value - self._last
        return self._most - self._last + value


Key = TypeVar("Key", bound=Hashable)
MAY_HAVE_WRAPPED: Final = "the counter was not read for so long that it may have wrapped, and its range is not known"


class Raw(msgspec.Struct, frozen=True, gc=False):
    """What one counter shows, and what it can do."""

    value: int
    most: int | None = None
    """It starts again at 0 after this. None: it is not known to wrap."""
    most_w: float = inf
    """More than this part can draw. Without a bound only the sum's holds."""
    least_range: float = inf
    """Where `most` is not known: it wraps no sooner than after so much."""
    still: bool = False
    """It may stand still for good reason: what it counts may be off."""


class Counters(Generic[Key]):
    """Follows the counters it is shown and adds up what they rise by."""

    def __init__(
        self,
        limits: Limits,
        *,
        joules: float = 1e-6,
        update_s: float = 0.001,
        asleep: Callable[[], float] = seconds_asleep,
    ) -> None:
        """`joules`: what one step of the raw value is worth. `update_s`: how often the source brings it up to date."""
        self._count: Final = Count(limits, asleep)
        self._limits = limits
        self._joules = joules
        self._update_s = update_s
        self._counters: dict[Key, Counter] = {}
        self._moved: dict[Key, float] = {}
        self._totals: dict[Key, int] = {}

    @property
    def last(self) -> Sample | None:
        return self._count.last

    def joules_of(self, key: Key) -> float:
        """What one counter has counted so far, over all epochs."""
        return self._totals.get(key, 0) * self._joules

    def refusal(self, now: float) -> Unknown | None:
        """To be asked before the source is read: nothing is worth reading for a time that ran backwards."""
        return self._count.refusal(now)

    def break_off(self, now: float, reason: str) -> Unknown:
        """The count begins anew, with whatever counters are shown next."""
        self._counters.clear()
        return self._count.break_off(now, reason)

    def read(self, now: float, shown: Mapping[Key, Raw], step: int = 1, taken: float | None = None) -> Sample | Unknown:
        """The count, with what the counters show. `step`: by how much their raw values rise at least. `taken`: when
        they were read, if that was before `now`."""
        time = now if taken is None else min(taken, now)
        last = self._count.last
        if last is not None and taken is not None and time <= last.time:
            old = now - last.time
            return Unknown(f"stale: the last reading is {old:.1f} s old") if old > self._limits.still_s else last
        if self._counters.keys() != shown.keys():
            return self._begin(time, shown, step)
        stale = self._still(time, shown)
        if stale is not None:
            return stale
        return self._follow(time, shown, step)

    def _begin(self, time: float, shown: Mapping[Key, Raw], step: int) -> Sample | Unknown:
        """The first reading; or the counters are not those of the last."""
        before = set(self._counters)
        self._counters = {key: Counter(raw.most) for key, raw in shown.items()}
        self._moved = dict.fromkeys(shown, time)
        _, problem = self._take(time, shown)
        if problem:
            self._counters.clear()
            return Unknown(problem)
        if self._count.last is None or (not before and self._count.seconds(time) == 0.0):
            return self._count.rise(time, 0.0, self._step_j(step))
        return self._count.break_off(time, _changes(before, set(shown)))

    def _still(self, time: float, shown: Mapping[Key, Raw]) -> Unknown | None:
        """A counter that does not rise although it should: the reading waits until it does."""
        for key, raw in shown.items():
            if raw.value != self._counters[key].last:
                self._moved[key] = time
            elif not raw.still and time - self._moved[key] > self._limits.still_s:
                seconds = time - self._moved[key]
                return Unknown(f"stale: {key} has stood at {raw.value} for {seconds:.1f} s, so it is not at work")
        return None

    def _follow(self, time: float, shown: Mapping[Key, Raw], step: int) -> Sample | Unknown:
        problem = self._count.gap(time)
        rises, wrong = self._take(time, shown, sound=not problem)
        if problem or wrong:
            return self._count.break_off(time, problem or wrong)
        joules, seconds = sum(rises.values()) * self._joules, self._count.seconds(time)
        watts = joules / seconds if seconds > 0.0 else 0.0
        sample = self._count.rise(time, joules, max(self._step_j(step), watts * self._update_s))
        if isinstance(sample, Sample):  # what the sum does not believe is no part's either
            for key, rise in rises.items():
                self._totals[key] = self._totals.get(key, 0) + rise
        return sample

    def _take(self, time: float, shown: Mapping[Key, Raw], sound: bool = True) -> tuple[dict[Key, int], str]:
        """By how much each of them rose, and what is wrong with one of them. All go on from here."""
        seconds = self._count.seconds(time) + self._limits.late_s
        wrong = ""
        for key, raw in shown.items():
            most = min(raw.most_w, self._limits.most_w) * seconds / self._joules
            problem = self._counters[key].problem(raw.value, most)
            if raw.most is None and most > raw.least_range:
                problem = problem or MAY_HAVE_WRAPPED
            wrong = wrong or (f"{key}: {problem}" if problem else "")
        sound = sound and not wrong
        return {key: self._counters[key].take(raw.value, sound) for key, raw in shown.items()}, wrong

    def _step_j(self, step: int) -> float:
        return float(step * self._joules * max(len(self._counters), 1) ** 0.5)


def _changes(before: set[Key], after: set[Key]) -> str:
    gone, new = (", ".join(sorted(map(str, keys))) for keys in (before - after, after - before))
    words = [f"{gone} went" if gone else "", f"{new} came" if new and before else ""]
    return f"the counters are not those of before: {' and '.join(filter(None, words)) or 'they began anew'}"
