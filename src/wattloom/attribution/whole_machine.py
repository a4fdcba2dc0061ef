"""Recorded whole-machine power to functions: puts records and arithmetic together.

Owns what a record means: calls outside the metered time, CPU time as the measure of a call's load, and a package meter
beside the wall's (the CPU's part from the package, the rest from what the wall saw beyond it). Reads no file.
"""

from dataclasses import replace
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from wattloom.attribution.power_files import Array, RecordedPower, RecordedRuns
from wattloom.disaggregation.activity import Calls, of_levels
from wattloom.disaggregation.clocks import WIDEST_S, Clocks
from wattloom.disaggregation.disaggregate import Wanted, clocks_of, disaggregate
from wattloom.disaggregation.joules import Disaggregated
from wattloom.disaggregation.lag import find_response
from wattloom.disaggregation.over_time import Recording, over_time
from wattloom.disaggregation.power_window import PowerWindow
from wattloom.disaggregation.readings import readings, updates
from wattloom.disaggregation.response import Reading, Response
from wattloom.disaggregation.result import IdlePolicy, Mode, PowerAttribution, result
from wattloom.errors import InputError

STEP_S: Final = 0.2
MARGIN_S: Final = 30.0
ABOVE_LOW: Final = 1.03
NOISES: Final = 3.0
"""Idle watts that are given may be so much above the lowest twentieth of readings: meters round, and are noisy."""
ZONE_S: Final = 1800.0
MOST_ZONES_S: Final = 26 * 3600.0
"""Time zones differ by half hours, and from one end of the world to the other by 26 hours."""
MOST_RATE: Final = 512.0
"""CPU seconds per second that one call may have used."""
SIMILAR: Final = 0.2
NEARLY: Final = 0.95
"""Readings are not quite as far apart as they are said to be."""
MOST_FIGURES: Final = 500_000.0
"""Windows times functions: beyond, nobody would read them, and they would take gigabytes."""
WELL: Final = 0.9
LITTLE: Final = 0.5
FAR_LESS: Final = 0.2
"""A given lag that explains less than 90% is compared with the one that is found, and 20 points less is said."""


def attribute_power(
    power: RecordedPower,
    runs: RecordedRuns,
    mode: Mode,
    idle: IdlePolicy,
    wanted: Wanted,
    package: RecordedPower | None = None,
    every_s: float | None = None,
) -> PowerAttribution:
    """Joules of every function that ran while the meter was read; and over time, in windows of `every_s`."""
    if wanted.idle_w is not None:
        _check_idle(power, wanted.idle_w)
    if wanted.lag_s is not None:
        _check_lag(power, runs, wanted.lag_s)
    if package is not None:
        power, package = _common(power, package)
    clocks = _clocks(power, runs, wanted)
    kept = _metered_calls(power, runs, (clocks.shift_s, clocks.shift_s))
    calls, names = _calls(runs, kept, float(power.time[-1]) - clocks.shift_s)
    if every_s is not None:
        _check_every(power, every_s, len(names))
    found = _found(power, package, calls, len(names), wanted, clocks)
    counts = np.bincount(calls.function, minlength=len(names))
    seconds = np.bincount(calls.function, weights=calls.end - calls.start, minlength=len(names))
    made = result(found, names, counts.tolist(), seconds.tolist(), mode, idle)
    package_j = None if package is None else readings(package.time, package.watts).joules
    windows = None if every_s is None else _over_time(power, calls, names, found, every_s)
    warnings = _warnings(found)
    if wanted.lag_s is not None and found.explained < WELL:
        free = _found(power, package, calls, len(names), replace(wanted, lag_s=None), None)
        warnings = _warn_of_lag(wanted.lag_s, found, free) or warnings
    return msgspec.structs.replace(
        made, outside=int((~kept).sum()), package_j=package_j, over_time=windows, warnings=warnings
    )


def _clocks(power: RecordedPower, runs: RecordedRuns, wanted: Wanted) -> Clocks:
    """How far apart they are: looked for with all calls that could lie between the readings."""
    reach = (-WIDEST_S, WIDEST_S) if wanted.lag_s is None else (wanted.lag_s, wanted.lag_s)
    kept = _metered_calls(power, runs, reach)
    calls, names = _calls(runs, kept, float(power.time[-1]) - min(reach[0], 0.0))
    return clocks_of(updates(readings(power.time, power.watts)), calls, len(names), wanted.lag_s)


def _found(
    power: RecordedPower,
    package: RecordedPower | None,
    calls: Calls,
    functions: int,
    wanted: Wanted,
    clocks: Clocks | None,
) -> Disaggregated:
    if package is None:
        return disaggregate(power.time, power.watts, calls, functions, wanted, clocks)
    return _in_two(power, package, calls, functions, wanted, clocks)


# -- what is said ------------------------------------------------------------------------------------------------------


def _warnings(found: Disaggregated) -> list[str]:
    """What speaks against the figures as a whole."""
    said = []
    if found.clocks.at_edge:
        said.append(
            f"the lag of {found.lag_s:.0f} s is at the edge of the search, so the clocks may be further apart: "
            "compare them, and give the lag with --lag"
        )
    if found.clocks.rivals:
        others = ", ".join(f"{each.shift_s:.0f}" for each in found.clocks.rivals)
        said.append(
            f"a lag of about {others} s explains the power about as well as {found.lag_s:.1f} s: calls come too "
            "evenly, or are too few, to tell; the spreads know of it. Give the lag with --lag if you know it"
        )
    if found.explained < LITTLE:
        said.append(
            f"who ran explains only {100 * found.explained:.0f}% of the ups and downs of power: most of it is others' "
            "on the machine, or the clocks do not agree (by whole hours, as time zones do?), or these are not its calls"
        )
    return said


def _warn_of_lag(given_s: float, found: Disaggregated, free: Disaggregated) -> list[str]:
    """A lag is used as it was given, but one that makes nonsense of the readings is not left unsaid."""
    if free.explained - found.explained < FAR_LESS:
        return []
    return [
        f"the given lag of {given_s:g} s explains {100 * found.explained:.0f}% of the ups and downs, "
        f"{free.lag_s:.1f} s would explain {100 * free.explained:.0f}%: leave the lag out, and it is found"
    ]


def _check_idle(power: RecordedPower, idle_w: float) -> None:
    """A meter's noise goes below idle, but its low readings as a whole do not."""
    noise_w = float(np.median(np.abs(np.diff(power.watts))))
    most = ABOVE_LOW * float(np.percentile(power.watts, 5.0)) + NOISES * noise_w
    if not 0.0 <= idle_w <= most:
        raise InputError(
            "idle_w",
            f"{idle_w:g} W cannot be idle: the lowest reading in {power.name} is {power.watts.min():g} W; leave it "
            f"out, and idle is found",
        )


def _check_lag(power: RecordedPower, runs: RecordedRuns, lag_s: float) -> None:
    """It may be hours, as time zones are, but it must leave calls to speak of."""
    if not (np.isfinite(lag_s) and _between_readings(power, runs, (lag_s, lag_s)).any()):
        raise InputError(
            "lag_s",
            f"with {lag_s:g} s added to their times, no call in {runs.name} lies between the readings in {power.name}; "
            "leave it out, and it is found",
        )


def _between_readings(power: RecordedPower, runs: RecordedRuns, reach: tuple[float, float]) -> NDArray[np.bool_]:
    """Which calls could lie, at least in part, between the readings, with a lag from the first of `reach` to the
    second added to their times."""
    first, last = float(power.time[0]), float(power.time[-1])
    kept = (runs.start + reach[0] <= last) & (np.where(np.isfinite(runs.end), runs.end + reach[1], last) >= first)
    return np.asarray(kept)


def _metered_calls(power: RecordedPower, runs: RecordedRuns, reach: tuple[float, float]) -> NDArray[np.bool_]:
    """Those; InputError if there are none."""
    kept = _between_readings(power, runs, reach)
    if kept.any():
        return kept
    first, last = float(power.time[0]), float(power.time[-1])
    begin, end = float(runs.start.min()), float(runs.start.max())
    raise InputError(
        runs.name,
        f"calls begin from {begin:.10g} to {end:.10g} s, but {power.name} is from {first:.10g} to {last:.10g} s: "
        f"they have no time in common{_hint((first, last), (begin, end))}",
    )


def _hint(readings: tuple[float, float], calls: tuple[float, float]) -> str:
    """What may be the matter with times that have nothing in common."""
    (first, last), (begin, end) = readings, calls
    if first <= begin / 1000 <= last or first <= end / 1000 <= last:
        return "; the times of the calls look like milliseconds: divide them by 1000"
    if begin <= first / 1000 <= end and (last - first) / 1000 > SIMILAR * (end - begin):
        return "; the times of the readings look like milliseconds: divide them by 1000"
    shift = ZONE_S * round(((first + last) - (begin + end)) / 2 / ZONE_S)
    room = WIDEST_S + max(0.0, ((last - first) - (end - begin)) / 2)
    if 0.0 < abs(shift) <= MOST_ZONES_S and abs((first + last) / 2 - (begin + end) / 2 - shift) <= room:
        hours = f"{abs(shift) / 3600:g} h"
        return f"; they are about {hours} apart, as time zones are: add {shift:g} s to the times of the calls"
    return ""


def _calls(runs: RecordedRuns, kept: NDArray[np.bool_], last: float) -> tuple[Calls, list[str]]:
    """Those calls, with the functions they are of; open ones end with the readings."""
    start, function = runs.start[kept], runs.function[kept]
    end = np.where(np.isfinite(runs.end[kept]), runs.end[kept], max(last, float(start.max())))
    present = np.unique(function)
    names = [runs.names[at] for at in present]
    return Calls(start, end, np.searchsorted(present, function), _rate(runs.cpu_s[kept], end - start)), names


def _rate(cpu_s: Array, length: Array) -> Array:
    """CPU seconds per second, where all are known; else every call counts as one."""
    if np.isnan(cpu_s).any() or cpu_s.sum() <= 0.0:
        return np.ones(len(length))
    return np.asarray(np.clip(cpu_s / np.maximum(length, 1e-3), 0.0, MOST_RATE))


# -- over time ---------------------------------------------------------------------------------------------------------


def _check_every(power: RecordedPower, every_s: float, functions: int) -> None:
    """Windows that hold readings, and not more of them than anyone could look at."""
    if not 0.0 < every_s < np.inf:
        raise InputError("every_s", f"must be seconds above 0, not {every_s:g}")
    apart = float(np.median(np.diff(np.unique(power.time))))
    if every_s < NEARLY * apart:
        raise InputError(
            "every_s", f"{every_s:g} s is less than the {apart:g} s between readings in {power.name}; take more"
        )
    windows = float(power.time[-1] - power.time[0]) / every_s
    if windows * functions > MOST_FIGURES:
        least = np.ceil(every_s * windows * functions / MOST_FIGURES)
        raise InputError(
            "every_s", f"{every_s:g} s would make {windows:,.0f} windows of {functions:,} functions; take {least:g} s"
        )


def _over_time(
    power: RecordedPower, calls: Calls, names: list[str], found: Disaggregated, every_s: float
) -> list[PowerWindow]:
    """With the lag and the averaging that the whole recording showed."""
    ready = readings(power.time, power.watts)
    left = found.lag_s - found.clocks.shift_s
    response = Response.with_lag(left, found.window_s, found.fading_s, ready.every)
    aligned = found.clocks.shifted(calls)
    return over_time(Recording(ready, aligned, names, response, found.cores, found.idle_given_w), every_s)


# -- wall and package --------------------------------------------------------------------------------------------------


def _common(power: RecordedPower, package: RecordedPower) -> tuple[RecordedPower, RecordedPower]:
    """Both, from the later begin to the earlier end."""
    first = max(power.time[0], package.time[0])
    last = min(power.time[-1], package.time[-1])
    cut = [_between(each, other.name, first, last) for each, other in ((power, package), (package, power))]
    if min(len(each.time) for each in cut) < 10:
        raise InputError(package.name, f"has hardly any time in common with {power.name}")
    return cut[0], cut[1]


def _between(power: RecordedPower, other: str, first: float, last: float) -> RecordedPower:
    inside = (power.time >= first) & (power.time <= last)
    name = power.name if inside.all() else f"{power.name}, as far as {other} goes,"
    return RecordedPower(name, power.time[inside], power.watts[inside])


def _in_two(
    power: RecordedPower,
    package: RecordedPower,
    calls: Calls,
    functions: int,
    wanted: Wanted,
    clocks: Clocks | None,
) -> Disaggregated:
    """The package's watts by who ran, and by who ran what the wall saw beyond them. That rest says little about clocks,
    so those are found in the wall's readings as they are."""
    cpu = disaggregate(package.time, package.watts, calls, functions)
    clocks = clocks or clocks_of(updates(readings(power.time, power.watts)), calls, functions, wanted.lag_s)
    shown = _shown_by_the_wall(power, package, wanted.lag_s, clocks.shift_s - cpu.clocks.shift_s)
    idle = None if wanted.idle_w is None else wanted.idle_w - cpu.idle_j / cpu.seconds
    rest = disaggregate(power.time, power.watts - shown, calls, functions, Wanted(idle, wanted.lag_s), clocks)
    return replace(
        rest,
        marginal_j=cpu.marginal_j + rest.marginal_j,
        marginal_spread=np.hypot(cpu.marginal_spread, rest.marginal_spread),
        full_j=cpu.full_j + rest.full_j,
        full_spread=np.hypot(cpu.full_spread, rest.full_spread),
        idle_share_j=cpu.idle_share_j + rest.idle_share_j,
        idle_j=cpu.idle_j + rest.idle_j if wanted.idle_w is None else wanted.idle_w * rest.seconds,
        idle_spread=float(np.hypot(cpu.idle_spread, rest.idle_spread)) if wanted.idle_w is None else 0.0,
        idle_given_w=wanted.idle_w,
        meter_j=rest.meter_j + readings(power.time, shown).joules,
        unclaimed_j=cpu.unclaimed_j + rest.unclaimed_j,
        curve=f"package: {cpu.curve}; rest: {rest.curve}",
    )


def _shown_by_the_wall(power: RecordedPower, package: RecordedPower, lag: float | None, shift: float) -> Array:
    """The package's watts as late and as smooth as the wall's meter shows them. `shift`: makes the package's times the
    wall's."""
    begin = float(power.time[0]) - MARGIN_S
    steps = int((float(power.time[-1]) - begin + MARGIN_S) / STEP_S)
    moments = begin + STEP_S * (np.arange(steps) + 0.5)
    level = np.interp(moments, package.time + shift, package.watts)[:, None]
    over = of_levels(begin, STEP_S, level)
    every = float(np.median(np.diff(np.unique(power.time))))
    near = None if lag is None else lag - shift
    response = find_response(power.time, power.watts, over, every, near, shift=shift)
    return Reading(over, power.time, response).of(level[:, 0])
