"""CPU time of processes that nobody saw: they came and went between two looks, and their parents waited for them.

Owns that none of it is counted twice. What the kernel adds to a parent when a child ends is the child's whole time, so
what was seen of the child while it lived is taken off again. Pure arithmetic over what the census has read.
"""

from collections.abc import Iterable, Mapping

from wattloom.monitoring.process import Process


def unseen(
    gains: Mapping[Process, float], vanished: Iterable[Process], living: Mapping[int, Process]
) -> dict[Process, float]:
    """CPU seconds of unseen children by parent. `gains`: what each parent's count of its children rose by."""
    debts: dict[Process, float] = {}
    loose = 0.0
    gone = {process.pid: process for process in vanished}
    for process in gone.values():
        seen = process.used_s + process.children_s
        heir = _heir(process, gone, living)
        if heir is not None and heir in gains:
            debts[heir] = debts.get(heir, 0.0) + seen
        else:
            loose += seen
    found = {parent: gain - debts.get(parent, 0.0) for parent, gain in gains.items()}
    # A parent that died before its child left it to another: what was seen of that one is taken off somewhere else.
    loose -= sum(left for left in found.values() if left < 0.0)
    claims = {parent: left for parent, left in found.items() if left > 0.0}
    return _less(claims, loose)


def capped(claims: Mapping[Process, float], most: float) -> dict[Process, float]:
    """All in proportion, so that they are not more than there can have been."""
    whole = sum(claims.values())
    if whole <= most:
        return dict(claims)
    return {parent: claim * most / whole for parent, claim in claims.items()} if most > 0.0 else {}


def _less(claims: dict[Process, float], loose: float) -> dict[Process, float]:
    whole = sum(claims.values())
    return claims if loose <= 0.0 else capped(claims, whole - loose)


def _heir(process: Process, gone: Mapping[int, Process], living: Mapping[int, Process]) -> Process | None:
    """The nearest forefather that lives."""
    parent, steps = process.parent, 0
    while parent in gone and steps < len(gone):
        parent, steps = gone[parent].parent, steps + 1
    return living.get(parent)
