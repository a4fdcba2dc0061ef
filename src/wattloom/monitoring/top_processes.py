"""Which processes get a series of their own, and what all others have used together.

Owns the few places there are, who has them, and that both counts never fall: a process that gets a place counts from
then on, and what it had used before stays with the others. Many short series are what hurts a Prometheus most. Pure.
"""

from typing import Final

import msgspec

from wattloom.monitoring.snapshot import Entity, Snapshot

MUCH_MORE: Final = 2.0
"""Whoever has a place keeps it until another has used this many times as much: series are not to come and go."""


class Detail(msgspec.Struct, frozen=True):
    """How much is shown of single processes."""

    processes: int = 0
    """Places. 0: nothing is shown of single processes."""
    least_w: float = 0.1
    """Only such get one that have drawn at least this at a look."""


class Prominent(msgspec.Struct, frozen=True):
    """Processes that have a series."""

    processes: tuple[tuple[Entity, float], ...] = ()
    """Each with its joules since it has a place."""
    other_j: float | None = None
    """Of all others. None: nothing is shown of single processes."""


class Prominence:
    """Told of every snapshot, in their order."""

    def __init__(self, detail: Detail) -> None:
        self._detail: Final = detail
        self._since: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._retired_j = 0.0

    def update(self, shown: Snapshot) -> Prominent:
        if not self._detail.processes:
            return Prominent()
        there = {each.key: each for each in shown.processes}
        for key in [key for key in self._since if key not in there]:
            self._retire(key)
        self._admit(there)
        found = tuple((there[key], there[key].joules - since) for key, since in self._since.items())
        self._last = {entity.key: joules for entity, joules in found}
        return Prominent(found, shown.totals.entities_j - self._retired_j - sum(joules for _, joules in found))

    def _retire(self, key: str) -> None:
        """Its series ends; what it has counted stays counted."""
        del self._since[key]
        self._retired_j += self._last.get(key, 0.0)

    def _admit(self, there: dict[str, Entity]) -> None:
        least_w = max(self._detail.least_w, 1e-9)
        candidates = [each for each in there.values() if each.watts >= least_w and each.key not in self._since]
        for each in sorted(candidates, key=lambda each: -each.joules):
            if len(self._since) >= self._detail.processes and not self._make_room(each, there):
                return
            self._since[each.key] = each.joules

    def _make_room(self, newcomer: Entity, there: dict[str, Entity]) -> bool:
        """Those that have ended go first; then the smallest, if it is much smaller."""
        smallest = min(self._since, key=lambda key: (not there[key].ended, there[key].joules))
        if not there[smallest].ended and newcomer.joules < MUCH_MORE * there[smallest].joules:
            return False
        self._last[smallest] = there[smallest].joules - self._since[smallest]
        self._retire(smallest)
        return True
