"""What comes out: joules per call of each function, and where the rest of the meter's joules went.

Owns the sums: functions + idle + unattributed = meter, exactly as printed, in both ways of counting; and what gives way
where a model says more than was metered: idle that was found, as far as it is in doubt, then functions, in proportion.
What was taken off is in the spread.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import msgspec
import numpy as np

from wattloom.disaggregation.joules import Disaggregated
from wattloom.disaggregation.power_window import PowerWindow
from wattloom.errors import InputError

Mode = Literal["marginal", "full"]
IdlePolicy = Literal["node", "pro-rata"]
NEARLY_ALL: Final = 0.99
"""Where the meter shows so much of a function's calls, the rest is not corrected for."""


def way_of_counting(mode: str, idle: str | None) -> tuple[Mode, IdlePolicy]:
    """Checked; idle is nobody's when counting marginally, and shared by running seconds when counting fully."""
    modes: dict[str, Mode] = {"marginal": "marginal", "full": "full"}
    policies: dict[str, IdlePolicy] = {"node": "node", "pro-rata": "pro-rata"}
    if mode not in modes:
        raise InputError("mode", f"must be {' or '.join(modes)}, not {mode}")
    if idle is None:
        return modes[mode], "node" if mode == "marginal" else "pro-rata"
    if idle not in policies:
        raise InputError("idle", f"must be {' or '.join(policies)}, not {idle}")
    return modes[mode], policies[idle]


class FunctionEnergy(msgspec.Struct, frozen=True):
    """What a function cost."""

    function: str
    calls: int
    """Those that the meter shows, at least in part."""
    joules_per_call: float
    spread: float
    """One standard deviation of `joules_per_call`: how far the mean may be off, not how much calls differ."""
    joules: float
    """While the meter was read."""
    seconds_per_call: float
    watts: float
    """Joules per second of running."""

    def to_json(self) -> dict[str, Any]:
        found = msgspec.structs.asdict(self)
        del found["function"]
        return found


class PowerAttribution(msgspec.Struct, frozen=True):
    """A whole machine's joules by function."""

    mode: Mode
    idle: IdlePolicy
    functions: list[FunctionEnergy]
    idle_j: float
    """What idling cost and no function is charged for."""
    unattributed_j: float
    """What is left: others on the machine and, counted marginally, what functions share."""
    meter_j: float
    lag_s: float
    idle_w: float
    idle_spread_w: float
    window_s: float
    """Seconds that a reading averages over."""
    fading_s: float
    """Seconds in which two thirds of a change show."""
    curve: str
    """How power bends with load, in the likeliest model."""
    cores: float | None
    """Cores that calls shared, if they took longer when there were many."""
    noise_w: float
    explained: float
    """Share of the variance of power that the model explains."""
    seconds: float
    """Metered, gaps left out."""
    gap_s: float
    """Without readings for long: left out."""
    missed: int = 0
    """Readings that did not come in between; power is taken to go on evenly there."""
    outside: int = 0
    """Calls that are left out: nothing of them lies between the first and the last reading."""
    package_j: float | None = None
    """Part of `meter_j` that the package meter saw, where there is one."""
    over_time: list[PowerWindow] | None = None
    """Window by window, each from what came before; None: was not asked for."""
    warnings: list[str] = []
    """What speaks against these figures, in words."""
    provenance: str = "modelled"

    def of(self, function: str) -> FunctionEnergy:
        """InputError if no call of it was metered."""
        for each in self.functions:
            if each.function == function:
                return each
        known = ", ".join(each.function for each in self.functions)
        raise InputError("function", f"no call of {function!r} was metered; there is {known}")

    def to_json(self) -> dict[str, Any]:
        """Functions by their names."""
        found = msgspec.structs.asdict(self)
        found["functions"] = {each.function: each.to_json() for each in self.functions}
        if self.over_time is not None:
            found["over_time"] = [each.to_json() for each in self.over_time]
        return found


def result(
    found: Disaggregated,
    names: Sequence[str],
    calls: Sequence[int],
    seconds: Sequence[float],
    mode: Mode,
    idle: IdlePolicy,
) -> PowerAttribution:
    """`calls` and `seconds`: of each function, those that the meter shows."""
    found = within_the_meter(found, mode)
    functions = []
    for at, name in enumerate(names):
        joules, spread = _joules(found, at, mode, idle)
        functions.append(_function(name, calls[at], float(found.metered[at]), seconds[at], joules, spread))
    kept = found.idle_j - (float(found.idle_share_j.sum()) if idle == "pro-rata" else 0.0)
    charged = sum(each.joules for each in functions)
    return PowerAttribution(
        mode=mode,
        idle=idle,
        functions=functions,
        idle_j=kept,
        unattributed_j=max(found.meter_j - kept - charged, 0.0),
        meter_j=found.meter_j,
        lag_s=found.lag_s,
        idle_w=found.idle_w,
        idle_spread_w=found.idle_spread / found.seconds if found.seconds else 0.0,
        window_s=found.window_s,
        fading_s=found.fading_s,
        curve=found.curve,
        cores=found.cores,
        noise_w=found.noise_w,
        explained=found.explained,
        seconds=found.seconds,
        gap_s=found.gap_s,
        missed=found.missed,
    )


def _joules(found: Disaggregated, at: int, mode: Mode, idle: IdlePolicy) -> tuple[float, float]:
    own = found.marginal_j if mode == "marginal" else found.full_j
    spread = found.marginal_spread if mode == "marginal" else found.full_spread
    share = float(found.idle_share_j[at]) if idle == "pro-rata" else 0.0
    doubt = share * found.idle_spread / found.idle_j if idle == "pro-rata" and found.idle_j > 0 else 0.0
    return float(own[at]) + share, float((spread[at] ** 2 + doubt**2) ** 0.5)


def _function(name: str, calls: int, metered: float, seconds: float, joules: float, spread: float) -> FunctionEnergy:
    counted = float(calls) if metered >= NEARLY_ALL * calls else max(metered, 1e-9)
    return FunctionEnergy(
        function=name,
        calls=calls,
        joules_per_call=joules / counted,
        spread=spread / counted,
        joules=joules,
        seconds_per_call=seconds / calls if calls else 0.0,
        watts=joules / (seconds * counted / calls) if seconds else 0.0,
    )


def within_the_meter(found: Disaggregated, mode: Literal["marginal", "full"]) -> Disaggregated:
    """The same where there is room, else with less for idle or functions."""
    found = replace(found, full_j=np.maximum(found.full_j, 0.0))
    found = _less_idle(found, found.idle_j - found.meter_j)
    own = found.marginal_j if mode == "marginal" else found.full_j
    above = float(own.sum()) + found.idle_j - found.meter_j
    if found.idle_given_w is None:
        less = min(above, found.idle_spread, found.idle_j)
        found, above = _less_idle(found, less), above - less
    return _less_functions(found, mode, min(above / float(own.sum()), 1.0)) if above > 0.0 < own.sum() else found


def _less_idle(found: Disaggregated, less: float) -> Disaggregated:
    if less <= 0.0 or found.idle_j <= 0.0:
        return found
    left = 1.0 - less / found.idle_j
    return replace(found, idle_j=left * found.idle_j, idle_share_j=left * found.idle_share_j)


def _less_functions(found: Disaggregated, mode: Literal["marginal", "full"], part: float) -> Disaggregated:
    if mode == "marginal":
        spread = np.hypot(found.marginal_spread, part * found.marginal_j)
        return replace(found, marginal_j=(1.0 - part) * found.marginal_j, marginal_spread=spread)
    spread = np.hypot(found.full_spread, part * found.full_j)
    return replace(found, full_j=(1.0 - part) * found.full_j, full_spread=spread)
