"""What everybody has used so far: counters that never fall.

Owns one counter for each process, container, pod, virtual machine and unit, and what becomes of them when they have
ended: they stay for a while, so that the last joules are seen, and then go into one sum of their kind. So totals never
fall and memory is bounded. Pure; the time is handed in.
"""

from collections.abc import Iterable
from math import hypot
from typing import Final

from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.process import Process
from wattloom.monitoring.snapshot import KINDS, Entity, Kind
from wattloom.monitoring.split import Departed, Who

KEEP_S: Final = 300.0
"""Prometheus asks every 15 s to 2 min: the last count of what has ended is to be there for some of these."""
MOST_ENDED: Final = 5_000
"""Ended processes that are kept at all: the oldest go first."""


class _Counter:
    __slots__ = (
        "active_j",
        "cpu_s",
        "doubt",
        "entity",
        "interval_j",
        "key",
        "kind",
        "place",
        "seen",
        "shared_j",
        "variance",
        "who",
    )

    def __init__(self, kind: Kind, key: str, place: Place, who: Who | None) -> None:
        self.kind: Final = kind
        self.key: Final = key
        self.place = place
        self.who: Final = who
        self.cpu_s = self.active_j = self.shared_j = self.interval_j = 0.0
        self.variance = self.doubt = 0.0
        """Of the active joules: see `sharing.uncertainty`."""
        self.seen = 0.0
        self.entity: Entity | None = None


class EntityCounters:
    """All counters."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self._keep_s = keep_s
        self._counters: dict[Kind, dict[str, _Counter]] = {kind: {} for kind in KINDS}
        self._around: dict[Place, tuple[_Counter, ...]] = {}
        self._hot: list[_Counter] = []
        """Those that have joules of the last interval."""
        self._seconds = 0.0
        self.gone: dict[str, float] = dict.fromkeys(KINDS, 0.0)

    def open_interval(self, seconds: float) -> None:
        """An interval was closed, and its joules follow."""
        for counter in self._hot:
            counter.interval_j = 0.0
            counter.entity = None
        self._hot.clear()
        self._seconds = seconds

    def charge(
        self, who: Who, cpu_s: float, active_j: float, shared_j: float, off: tuple[float, float], now: float
    ) -> None:
        """`off`: variance and doubt of the active joules."""
        own = self._own(who, now)
        for counter in (own, *self._groups(who.place, now)):
            counter.cpu_s += cpu_s
            counter.active_j += active_j
            counter.shared_j += shared_j
            counter.variance += off[0]
            counter.doubt += off[1]
            counter.interval_j += active_j + shared_j
            counter.seen = now
            counter.entity = None
            self._hot.append(counter)

    def seen(self, processes: Iterable[Process], now: float) -> None:
        """Who lives, whether it ran or not."""
        mine = self._counters["process"]
        for process in processes:
            counter = mine.get(process.key)
            if counter is not None:
                counter.seen = now
        for place in {process.place for process in processes}:
            for counter in self._groups(place, now):
                counter.seen = now

    def fold(self, now: float) -> None:
        """Put those that ended long ago into the sum of their kind."""
        for kind, counters in self._counters.items():
            old = [each for each in counters.values() if each.seen < now - self._keep_s]
            ended = [each for each in counters.values() if each.seen < now]
            if len(ended) > MOST_ENDED:
                old = sorted(ended, key=lambda each: each.seen)[: len(ended) - MOST_ENDED]
            for counter in old:
                self.gone[kind] += self._partition_j(counter)
                del counters[counter.key]
                if kind != "process" or len(self._around) > MOST_ENDED:
                    self._around = {}

    def entities(self, kind: Kind, now: float) -> tuple[Entity, ...]:
        return tuple(self._entity(counter, now) for counter in self._counters[kind].values())

    # -- counters ----------------------------------------------------------------------------------------------------

    def _partition_j(self, counter: _Counter) -> float:
        """A machine inside a container is counted there: only the others are part of the whole."""
        inside = counter.kind == "vm" and counter.place.container
        return 0.0 if inside else counter.active_j + counter.shared_j

    def _own(self, who: Who, now: float) -> _Counter:
        found = self._counters["process"].get(who.key)
        if found is None:
            found = self._counters["process"][who.key] = _Counter("process", who.key, who.place, who)
        found.place = who.place
        return found

    def _groups(self, place: Place, now: float) -> tuple[_Counter, ...]:
        """The counters of all that a place is in."""
        found = self._around.get(place)
        if found is None:
            named: list[tuple[Kind, str]] = [("container", place.container), ("pod", place.pod), ("vm", place.vm)]
            if not place.container and not place.vm:
                named.append(("unit", place.unit or "/"))
            wanted = [(kind, key) for kind, key in named if key]
            found = self._around[place] = tuple(self._group(kind, key, place) for kind, key in wanted)
        return found

    def _group(self, kind: Kind, key: str, place: Place) -> _Counter:
        counters = self._counters[kind]
        if key not in counters:
            counters[key] = _Counter(kind, key, place, None)
        return counters[key]

    def _entity(self, counter: _Counter, now: float) -> Entity:
        ended = counter.seen < now
        found = counter.entity
        if found is None or found.ended != ended:
            found = counter.entity = self._made(counter, ended)
        return found

    def _made(self, counter: _Counter, ended: bool) -> Entity:
        place, who = counter.place, counter.who
        process = who if isinstance(who, Process) else None
        return Entity(
            kind=counter.kind,
            key=counter.key,
            name=_name(counter),
            cpu_s=counter.cpu_s,
            active_j=counter.active_j,
            spread_j=hypot(counter.doubt, counter.variance**0.5),
            shared_j=counter.shared_j,
            watts=counter.interval_j / self._seconds if self._seconds > 0.0 else 0.0,
            pid=process.pid if process is not None else 0,
            command=process.command if process is not None else "",
            container=place.container,
            engine=place.engine,
            pod=place.pod,
            vm=place.vm,
            unit=place.unit,
            exited=isinstance(who, Departed),
            ended=ended,
        )


def _name(counter: _Counter) -> str:
    who, place = counter.who, counter.place
    if isinstance(who, Process):
        return who.name or f"process {who.pid}"
    if isinstance(who, Departed):
        return who.parent or place.vm or place.container[:12] or place.unit or "/"
    return counter.key[:12] if counter.kind == "container" and len(counter.key) == 64 else counter.key
