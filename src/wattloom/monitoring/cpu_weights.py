"""How heavy a process's CPU second is: by what the processor counted in it, where it counts.

Owns which processes are counted (the busiest, since every one costs descriptors) and how heavy their CPU seconds came
out. The watts of an event are the counter model's. Without counters a CPU second weighs what was learned of its program
from the meter, if that measures, and `summary` says why nothing is counted.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from wattloom.metering import perf_events
from wattloom.monitoring.process import Process
from wattloom.monitoring.split import Who

if TYPE_CHECKING:
    from wattloom.attribution.counter_model import CounterModel

MOST_COUNTED: Final = 64
LEAST_SHARE: Final = 0.01
"""Of a look's CPU time: who uses less is not worth counting."""
SMOOTH: Final = 0.3
"""Weight of the last look in a process's factor."""
LIGHTEST, HEAVIEST = 0.2, 5.0
"""A model that says more than this of anybody is wrong about him."""


class CpuWeights(Protocol):
    """Says how heavy CPU seconds are."""

    summary: str
    """What joules are shared by, and if nothing is counted, why."""
    counted: bool
    """Whether `factor` says anything."""

    def observe(self, used: Mapping[Who, float]) -> None:
        """Somebody used CPU seconds since the last look."""

    def learn(self, active_w: float, seconds: float) -> None:
        """The looks since the last time drew so many watts above idle."""

    def factor(self, who: Who) -> float:
        """How heavy his CPU seconds are against the mean."""


class Counts(Protocol):
    """Where counts come from: see `perf_events.ProcessCounters`."""

    @property
    def events(self) -> tuple[perf_events.Event, ...]: ...

    def __len__(self) -> int: ...

    def __contains__(self, pid: int) -> bool: ...

    def watch(self, pid: int) -> str | None: ...

    def read(self, pid: int) -> tuple[float, ...] | None: ...

    def unwatch(self, pid: int) -> None: ...


class ByCpuTime:
    """Nothing is counted: every CPU second weighs the same, as far as nothing is learned."""

    counted = False

    def __init__(self, why: str = "") -> None:
        self.summary = f"CPU time ({why})" if why else "CPU time"

    def observe(self, used: Mapping[Who, float]) -> None:
        pass

    def learn(self, active_w: float, seconds: float) -> None:
        pass

    def factor(self, who: Who) -> float:
        return 1.0


class ByCounters:
    """CPU seconds weigh what the events in them draw. The first event must be cycles: they tell the frequency."""

    counted = True

    def __init__(self, counts: Counts, model: "CounterModel") -> None:
        self._counts = counts
        self._model = model
        self.summary = ", ".join(event.name for event in counts.events)
        self._before: dict[Process, tuple[float, ...]] = {}
        self._factors: dict[Process, float] = {}
        self._sums = [0.0] * len(counts.events)
        self._counted_s = self._all_s = 0.0

    def observe(self, used: Mapping[Who, float]) -> None:
        rises = self._rises(used)
        self._all_s += sum(used.values())
        for process, rise in rises.items():
            self._counted_s += used[process]
            self._sums = [before + more for before, more in zip(self._sums, rise, strict=True)]
        self._weigh(used, rises)
        self._choose(used)

    def learn(self, active_w: float, seconds: float) -> None:
        counted_s, all_s, sums = self._counted_s, self._all_s, self._sums
        self._sums, self._counted_s, self._all_s = [0.0] * len(sums), 0.0, 0.0
        if counted_s <= 0.0 or seconds <= 0.0:
            return
        # Who was not counted is taken for the mean: the counted have their part of the watts.
        watts = active_w * counted_s / all_s
        self._model.observe(watts, [each / seconds for each in sums], sums[0] / counted_s)

    def factor(self, who: Who) -> float:
        return self._factors.get(who, 1.0) if isinstance(who, Process) else 1.0

    # -- one look -------------------------------------------------------------------------------------------------

    def _rises(self, used: Mapping[Who, float]) -> dict[Process, tuple[float, ...]]:
        """What was counted since the last look, of those who were counted then and now."""
        rises: dict[Process, tuple[float, ...]] = {}
        for process in list(self._before):
            now, before = self._counts.read(process.pid), self._before[process]
            if now is None or process not in used:
                continue
            self._before[process] = now
            rise = tuple(max(new - old, 0.0) for new, old in zip(now, before, strict=True))
            if rise[0] > 0.0 and used[process] > 0.0:
                rises[process] = rise
        return rises

    def _weigh(self, used: Mapping[Who, float], rises: dict[Process, tuple[float, ...]]) -> None:
        """Watts of each one's CPU second, against the mean of all that were counted."""
        counted_s = sum(used[process] for process in rises)
        if counted_s <= 0.0:
            return
        hertz = sum(rise[0] for rise in rises.values()) / counted_s
        joules = {process: self._model.watts(rise, hertz) for process, rise in rises.items()}
        known = [each for each in joules.values() if each is not None]
        if len(known) < len(joules) or sum(known) <= 0.0:
            return
        mean = sum(known) / counted_s
        for process, each in joules.items():
            assert each is not None
            heavy = min(max(each / used[process] / mean, LIGHTEST), HEAVIEST)
            before = self._factors.get(process, heavy)
            self._factors[process] = before + SMOOTH * (heavy - before)

    def _choose(self, used: Mapping[Who, float]) -> None:
        """Count the busiest from now on, and forget who is idle or gone."""
        least = LEAST_SHARE * sum(used.values())
        busy = [who for who, seconds in used.items() if isinstance(who, Process) and seconds > least]
        busy.sort(key=lambda who: -used[who])
        wanted = set(busy[:MOST_COUNTED])
        for process in set(self._before) - wanted:
            self._counts.unwatch(process.pid)
            del self._before[process]
            self._factors.pop(process, None)
        for process in wanted - set(self._before):
            if self._counts.watch(process.pid) is None:
                begun = self._counts.read(process.pid)
                if begun is not None:
                    self._before[process] = begun


def best_cpu_weights() -> CpuWeights:
    """By counters where this machine counts for us, else by CPU time."""
    why = perf_events.problem()
    if why is not None:
        return ByCpuTime(why)
    from wattloom.attribution.counter_model import CounterModel

    events = perf_events.countable()
    return ByCounters(perf_events.ProcessCounters(events), CounterModel(len(events)))
