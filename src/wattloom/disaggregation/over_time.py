"""A recording's joules over time: the online filter, fed with one figure of the meter after the other.

Owns the windows. What the meter is like (how late, how smooth, how often new) is known beforehand; what idle and
functions draw is not: each window is shared out by what the readings up to its end have told. Functions + idle +
unattributed = meter in every window, and windows add up to the recording. Gaps are in none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from wattloom.disaggregation.activity import Array, Calls, Indices, activity
from wattloom.disaggregation.cores import slowed
from wattloom.disaggregation.online import PowerFilter, WattsNow
from wattloom.disaggregation.power_window import FunctionWindow, PowerWindow
from wattloom.disaggregation.readings import Readings, updates
from wattloom.disaggregation.response import Reading, Response

NOTHING_S: Final = 1e-6
"""Less was not metered: times are rounded."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is fed. `cores`: that calls shared, if they did. `idle_w`: if it is known."""

    found: Readings
    calls: Calls
    names: Sequence[str]
    response: Response
    cores: float | None = None
    idle_w: float | None = None


def over_time(given: Recording, every_s: float) -> list[PowerWindow]:
    """Windows of so many seconds from the first reading on; the last is as long as what is left. Those without any
    reading are left out."""
    figures = _figures(given.found)
    pieces = _pieces(given.found, figures.place, every_s)
    ran, load = _under_way(given, figures.time)
    fed = _feed(given, figures, load, set(pieces.last_figure.tolist()))
    return _windows(given, pieces, fed, pieces.sums(figures.watts[:, None])[:, 0], pieces.sums(ran), pieces.sums(load))


# -- what is fed -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the meter said: a figure may be shown by several readings, and counts for the seconds of all."""

    time: Array
    watts: Array
    seconds: Array
    place: Indices
    """Of each reading's figure."""


def _figures(found: Readings) -> _Figures:
    time = updates(found).time
    place = np.searchsorted(time, found.time, side="right") - 1
    seconds = np.zeros(len(time))
    np.add.at(seconds, place, found.stands_for)
    return _Figures(time, found.watts[np.searchsorted(found.time, time)], seconds, place)


def _under_way(given: Recording, time: Array) -> tuple[Array, Array]:
    """Calls of each function that a figure shows: as they are, and by CPU time or part of a core, where known."""
    found, calls = given.found, given.calls
    span = float(found.time[0]), float(found.time[-1])
    over = activity(replace(calls, rate=np.ones(len(calls.start))), len(given.names), *span, found.every)
    ran = Reading(over, time, given.response).of(over.level)
    if given.cores is None and (calls.rate == 1.0).all():
        return np.maximum(ran, 0.0), np.maximum(ran, 0.0)
    told = activity(calls, len(given.names), *span, found.every)
    told = told if given.cores is None else slowed(told, given.cores)
    return np.maximum(ran, 0.0), np.maximum(Reading(told, time, given.response).of(told.level), 0.0)


@dataclass(frozen=True, slots=True)
class _Fed:
    """What the filter said. `shared_w`: a row for each figure; functions, then idle, then nobody."""

    shared_w: Array
    known: dict[int, list[WattsNow | None]]
    """After some of the figures: functions, then idle."""


def _feed(given: Recording, figures: _Figures, load: Array, wanted: set[int]) -> _Fed:
    names, power = given.names, PowerFilter(idle_w=given.idle_w)
    shared_w, known = np.zeros((len(figures.time), len(names) + 2)), {}
    pauses = _pauses(given.found, figures.time)
    for at, (seconds, watts) in enumerate(zip(figures.seconds.tolist(), figures.watts.tolist(), strict=True)):
        power.pause(pauses.get(at, 0.0))
        running = np.flatnonzero(load[at]).tolist()
        shares = power.feed(seconds, watts, {names[each]: seconds * float(load[at, each]) for each in running})
        if seconds > 0.0:
            shared_w[at, running] = [shares.functions[names[each]] / seconds for each in running]
            shared_w[at, -2:] = shares.idle_j / seconds, shares.unattributed_j / seconds
        if at in wanted:
            known[at] = [*(power.of(name) for name in names), power.idle]
    return _Fed(shared_w, known)


def _pauses(found: Readings, time: Array) -> dict[int, float]:
    """Seconds of a gap, by the first figure after it."""
    after = np.searchsorted(time, found.gaps[:, 1])
    return {int(at): float(end - begin) for at, (begin, end) in zip(after, found.gaps, strict=True)}


# -- windows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Metered time, cut where a reading or a window ends."""

    edges: Array
    seconds: Array
    window: Indices
    figure: Indices

    def sums(self, rows: Array) -> Array:
        """Of a row for each figure, over the seconds of each window."""
        found = np.zeros((len(self.edges) - 1, rows.shape[1]))
        np.add.at(found, self.window, self.seconds[:, None] * rows[self.figure])
        return found

    @property
    def last_figure(self) -> Indices:
        """Of each window; -1: there is none."""
        found = np.full(len(self.edges) - 1, -1, dtype=np.intp)
        np.maximum.at(found, self.window, self.figure)
        return found


def _pieces(found: Readings, place: Indices, every_s: float) -> _Pieces:
    """A reading stands for the time half the way to its neighbours, but for none of a gap."""
    time, first, last = found.time, float(found.time[0]), float(found.time[-1])
    count = max(int(np.ceil((last - first) / every_s - NOTHING_S)), 1)
    edges = np.append(first + every_s * np.arange(count), last)
    gap = np.isin(time[:-1], found.gaps[:, 0])
    halfway = (time[:-1] + time[1:]) / 2
    begin = np.append(first, np.where(gap, time[1:], halfway))
    end = np.append(np.where(gap, time[:-1], halfway), last)
    cuts = np.unique(np.concatenate([begin, end, edges]))
    middle = (cuts[:-1] + cuts[1:]) / 2
    reading = np.searchsorted(begin, middle, side="right") - 1
    metered = middle < end[reading]
    window = np.clip(np.searchsorted(edges, middle, side="right") - 1, 0, count - 1)
    return _Pieces(edges, np.diff(cuts)[metered], window[metered], place[reading[metered]])


def _windows(given: Recording, pieces: _Pieces, fed: _Fed, meter: Array, ran: Array, load: Array) -> list[PowerWindow]:
    metered = np.bincount(pieces.window, weights=pieces.seconds, minlength=len(ran))
    joules, begun, last = pieces.sums(fed.shared_w), _begun(given, pieces.edges), pieces.last_figure
    part = np.ones(len(given.names))
    made = []
    for at in np.flatnonzero(metered > NOTHING_S):
        # What the filter knows is of a unit of load; how much of it one call is may differ from window to window.
        part = np.where(ran[at] > 0.0, load[at] / np.where(ran[at] > 0.0, ran[at], 1.0), part)
        *known, idle = fed.known[int(last[at])]
        assert idle is not None
        functions = [
            FunctionWindow(
                function=name,
                begun=int(begun[at, each]),
                seconds=float(ran[at, each]),
                joules=float(joules[at, each]),
                watts=now.watts * float(part[each]),
                spread=now.spread * float(part[each]),
            )
            for each, (name, now) in enumerate(zip(given.names, known, strict=True))
            if now is not None
        ]
        made.append(
            PowerWindow(
                start_s=float(pieces.edges[at]),
                end_s=float(pieces.edges[at + 1]),
                metered_s=float(metered[at]),
                functions=functions,
                idle_j=float(joules[at, -2]),
                unattributed_j=max(float(joules[at, -1]), 0.0),
                meter_j=float(meter[at]),
                idle_w=idle.watts,
                idle_spread_w=idle.spread,
            )
        )
    return made


def _begun(given: Recording, edges: Array) -> Indices:
    """Calls of each function that begin in each window, as late as the meter shows it."""
    shown = given.calls.start + given.response.behind(given.found.every)
    metered = (shown >= edges[0]) & (shown <= edges[-1])
    for begin, end in given.found.gaps:
        metered &= ~((shown > begin) & (shown < end))
    window = np.clip(np.searchsorted(edges, shown[metered], side="right") - 1, 0, len(edges) - 2)
    found = np.zeros((len(edges) - 1, len(given.names)), dtype=np.intp)
    np.add.at(found, (window, given.calls.function[metered]), 1)
    return found
