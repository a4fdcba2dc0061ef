"""Function profiles from ordinary runs, without any bag, and together with those of bags.

Owns what calls in journals and logs come to, and which of two figures of the same function holds. A log of the
simulator or of Kubernetes is as good as a journal; W is known where joules are in it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import hypot, log
from pathlib import Path
from statistics import fmean
from typing import Final, cast

import msgspec

from wattloom.affinity.estimating import interval, inverse
from wattloom.affinity.exchange import contradiction, read_or_none
from wattloom.energy.forecast import Provenance
from wattloom.history.executions import SUREST, Executions, executions
from wattloom.history.search import wanted
from wattloom.machines.this_machine import this_machine
from wattloom.workload.function_profile import Figure, FunctionProfile, FunctionProfiles, exact

BLOCKS: Final = 10
"""Calls that follow each other are alike: so many parts of a history stand for it."""
ENOUGH: Final = 30
"""Calls after which what ordinary runs say holds against bags that say something else."""


def from_journals(journals: Sequence[str | Path] = (), names: Mapping[str, str] | None = None) -> FunctionProfiles:
    """What the calls of these journals and logs tell; none named: of all journals of this user. `names`: what functions
    are called here that have other names in journals."""
    paths = [path for each in journals for path in wanted(each)] if journals else wanted(None)
    called = names or {}
    found = [_row(each, called.get(each.function, each.function)) for each in executions(paths)]
    rows = [row for row in found if row.problem() is None]
    return FunctionProfiles().merged(sorted(rows, key=lambda row: (row.function, row.machine, row.variant)))


def _row(calls: Executions, function: str) -> FunctionProfile:
    doubt = fmean(calls.spread_j) / fmean(calls.joules) if calls.joules else 0.0
    here = this_machine()
    return FunctionProfile(
        function=function,
        machine=calls.machine,
        per_core_s=inverse(_figure(calls.core_s)),
        joules=_figure(calls.joules, doubt) if calls.joules else None,
        variant=calls.variant,
        executions=len(calls.core_s),
        provenance=cast(Provenance, calls.provenance) if calls.provenance else "estimated",
        quantity=here.quantity if calls.machine == here.name else "package",
        source=_source(calls),
    )


def _source(calls: Executions) -> str:
    where = ", ".join(sorted(calls.backends))
    return f"{_count(len(calls.core_s), 'call')} in {_count(calls.runs, 'run')} ({where})"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _figure(values: list[float], doubt: float = 0.0) -> Figure:
    """By means over parts of the history: the last and the first call are not as alike as two that follow."""
    parts = min(BLOCKS, len(values))
    edges = [len(values) * number // parts for number in range(parts + 1)]
    means = [fmean(values[first:last]) for first, last in pairwise(edges)]
    return interval(means, doubt=doubt) if parts > 1 or doubt > 0.0 else exact(means[0])


# -- both together -----------------------------------------------------------------------------------------------------


def together(bags: FunctionProfiles, calls: FunctionProfiles) -> FunctionProfiles:
    """Bags, kept up to date by ordinary runs. Rows that only one of them has stay as they are."""
    known = {(row.function, row.machine, row.variant): row for row in bags.rows}
    rows = []
    for row in calls.rows:
        bag = known.get((row.function, row.machine, row.variant))
        rows.append(row if bag is None else _one_of(bag, row))
    return bags.merged(rows)


def _one_of(bag: FunctionProfile, calls: FunctionProfile) -> FunctionProfile:
    """Where they agree, both by how sure they are; else the calls, as soon as they are enough: that is what it is used
    for now."""
    if contradiction(bag, calls):
        if calls.executions < ENOUGH:
            return bag
        source = f"{calls.source}; {bag.source} said otherwise"
        return msgspec.structs.replace(calls, cold_start_s=bag.cold_start_s, memory=bag.memory, source=source)
    return msgspec.structs.replace(
        bag,
        per_core_s=_weighed(bag.per_core_s, calls.per_core_s),
        executions=bag.executions + calls.executions,
        source=f"{bag.source}; {calls.source}",
        **_joules(bag, calls),
    )


def _joules(bag: FunctionProfile, calls: FunctionProfile) -> dict[str, object]:
    """Of the surer kind; of one kind both."""
    if calls.joules is None:
        return {}
    if bag.joules is None or SUREST.index(calls.provenance) < SUREST.index(bag.provenance):
        return {"joules": calls.joules, "provenance": calls.provenance, "quantity": calls.quantity}
    if (bag.provenance, bag.quantity) == (calls.provenance, calls.quantity):
        return {"joules": _weighed(bag.joules, calls.joules)}
    return {}


def _weighed(one: Figure, other: Figure) -> Figure:
    """The mean of two, by how narrow their intervals are. One without a spread counts for nothing beside one with."""
    widths = [log(each.high / each.low) if each.low > 0.0 else 10.0 for each in (one, other)]
    if not all(width > 0.0 for width in widths):
        return one if widths[0] > 0.0 or not widths[1] > 0.0 else other
    first, second = (1.0 / (width * width) for width in widths)
    share = first / (first + second)
    value = share * one.value + (1.0 - share) * other.value
    below = hypot(share * (one.value - one.low), (1.0 - share) * (other.value - other.low))
    above = hypot(share * (one.high - one.value), (1.0 - share) * (other.high - other.value))
    return Figure(value, max(value - below, 0.0), value + above)


def known_profiles(path: Path, journals: bool = True) -> FunctionProfiles:
    """What is known of functions: the bags in this file and, if wished, what this user's journals add to them."""
    stored = read_or_none(path)
    return together(stored, from_journals()) if journals else stored
