"""Whose joules of a device they are: pure arithmetic over one interval.

Owns the rules. The idle watts stay with the device. What is above them goes to the processes whose kernels ran, by the
share of the time in which they did. Where the driver does not tell that, memory is the next best key, and the spread
says how poor a key it is. A process that only holds a context pays nothing. What nobody is known to have used stays
unattributed. Knows no drivers or clocks; docs/explanation/energy.md says the same in words.

What a process paid falls to the calls it ran meanwhile by time: a device does not tell which call a kernel came from,
and a worker uses its device on behalf of its calls.

Of a usage: `meter_j == idle_j + unattributed_j + sum of processes`, to the last bit.
"""

from collections.abc import Iterable, Sequence
from math import hypot, sqrt
from typing import Final, Literal

import msgspec

from wattloom.energy.grains import in_grains, to_grain

Key = Literal["utilisation", "memory", "nothing"]
"""What the active joules of an interval were shared out by."""
UTILISATION_STEP: Final = 0.01
"""Drivers tell whole percents."""
NOTHING: Final = 1e-9
"""A share that is only the rounding of sums."""
UNSEEN: Final = 0.15
"""A device that is busier than its processes together by more than this is used by others too. It is not less because
the two figures are of slightly different times."""


class Use(msgspec.Struct, frozen=True, gc=False):
    """What one process did on the device in the interval."""

    pid: int
    utilisation: float | None
    """Share of the interval in which its kernels ran. None: not known."""
    memory_bytes: int | None = None


class DeviceInterval(msgspec.Struct, frozen=True):
    """What a device counted between two good readings."""

    device: str
    seconds: float
    joules: float
    spread_j: float
    """What both readings leave open."""
    idle_w: float
    idle_spread_w: float = 0.0
    utilisation: float | None = None
    """Of the whole device. More than its processes have together: others, whom we do not see, use it too."""


class DeviceUsage(msgspec.Struct, frozen=True):
    """Where the joules of one interval went."""

    device: str
    seconds: float
    meter_j: float | None
    """None: not known, and `problem` says why."""
    idle_j: float = 0.0
    unattributed_j: float = 0.0
    processes: dict[int, tuple[float, float]] = {}
    """Joules and spread by process. Only of those that used it."""
    key: Key = "nothing"
    problem: str = ""


def share_out(interval: DeviceInterval, uses: Sequence[Use], model_error: float) -> DeviceUsage:
    """Share out what a device counted. `model_error`: how far watts of single workloads are from the mean."""
    meter = to_grain(max(interval.joules, 0.0))
    idle = to_grain(min(max(interval.idle_w, 0.0) * interval.seconds, meter))
    active = meter - idle
    shares = _shares(uses, interval.utilisation)
    joules, left = in_grains({pid: active * share for pid, share in shares.of.items()}, active)
    paid = {
        pid: (joules[pid], _spread(interval, active, share, shares, model_error)) for pid, share in shares.of.items()
    }
    return DeviceUsage(interval.device, interval.seconds, meter, idle, left, paid, shares.key)


class _Shares(msgspec.Struct, frozen=True):
    """Shares of the active joules. They add up to 1, or to less where others were at work."""

    key: Key
    of: dict[int, float]
    """By process."""
    busy: float
    """The utilisation that counts as the whole."""


def _shares(uses: Sequence[Use], device: float | None) -> _Shares:
    ran = _sums((use.pid, use.utilisation or 0.0) for use in uses)
    hidden = {use.pid for use in uses if use.utilisation is None}
    total = sum(ran.values())
    busy = device if device is not None and device > total + UNSEEN else total
    shares = {pid: share / busy for pid, share in ran.items() if share > 0.0 and pid not in hidden}
    if not hidden:
        return _Shares("utilisation" if shares else "nothing", shares, busy)
    # Those of whom only memory is known share what the others have left of the device's time.
    rest = 1.0 - sum(shares.values()) if busy > 0.0 or device is None else 0.0
    by_memory = {
        pid: rest * weight
        for pid, weight in _memory([use for use in uses if use.pid in hidden]).items()
        if weight > 0.0
    }
    if rest <= NOTHING or not by_memory:
        return _Shares("utilisation" if shares else "nothing", shares, busy)
    return _Shares("memory", shares | by_memory, busy)


def _memory(uses: Sequence[Use]) -> dict[int, float]:
    """Weights by memory. One alone needs no key. Empty: there is none."""
    held = _sums((use.pid, float(use.memory_bytes or 0)) for use in uses)
    if len(held) == 1:
        return dict.fromkeys(held, 1.0)
    total = sum(held.values())
    return {pid: share / total for pid, share in held.items()} if total > 0.0 else {}


def _sums(parts: Iterable[tuple[int, float]]) -> dict[int, float]:
    """A process may come several times: once for each instance of the device that it uses."""
    sums: dict[int, float] = {}
    for pid, part in parts:
        sums[pid] = sums.get(pid, 0.0) + part
    return sums


def _spread(interval: DeviceInterval, active: float, share: float, shares: _Shares, model_error: float) -> float:
    """One standard deviation of a process' joules: the meter's, that of idle, and that of the share itself."""
    meter = share * hypot(interval.spread_j, interval.idle_spread_w * interval.seconds)
    if shares.key == "memory":
        # All the work may have been one process': who it was is a draw of lots weighted by memory.
        return hypot(meter, active * sqrt(max(share * (1.0 - share), 0.0)))
    step = (1.0 - share) * UTILISATION_STEP / sqrt(12.0) / max(shares.busy, UTILISATION_STEP)
    return hypot(meter, active * step, active * share_error(share, shares.of.values(), model_error))


def share_error(share: float, shares: Iterable[float], model_error: float) -> float:
    """Standard deviation of a share, if each sharer's intensity is off by `model_error` by itself.

    Who is alone has all of it, whatever the intensity; two equals are off by half of the error over the root of two.
    """
    everybody = list(shares)
    return error_of_share(share, sum(everybody), sum(each * each for each in everybody), model_error)


def error_of_share(share: float, whole: float, squares: float, model_error: float) -> float:
    """The same, of shares whose sum and sum of squares are known: for those who ask for each of thousands."""
    rest = max(1.0 - whole, 0.0)  # what others used is one more sharer
    return model_error * share * sqrt((1.0 - share) ** 2 + max(squares - share * share, 0.0) + rest * rest)


# -- calls inside a process --------------------------------------------------------------------------------------------


class DeviceCall(msgspec.Struct, frozen=True, gc=False):
    """One call, or the part of one that has run so far."""

    task: str
    function: str
    pid: int
    start: float
    end: float


class CallShares(msgspec.Struct, frozen=True):
    """What calls cost on devices in one interval."""

    calls: dict[str, tuple[float, float]]
    """Joules and spread by task."""
    overhead_j: float
    """Of workers in whose interval no call ran: loading a model before the first, say."""


def split_over_calls(
    begin: float, end: float, paid: Iterable[tuple[int, float, float]], calls: Sequence[DeviceCall], model_error: float
) -> CallShares:
    """Split what processes paid (pid, joules, spread) between `begin` and `end` over their calls, by time inside it."""
    found: dict[str, tuple[float, float]] = {}
    overhead = 0.0
    for pid, joules, spread in paid:
        shares = _by_time(begin, end, [call for call in calls if call.pid == pid])
        whole, squares = sum(shares.values()), sum(share * share for share in shares.values())
        parts, left = in_grains({task: joules * share for task, share in shares.items()}, to_grain(joules))
        for task, share in shares.items():
            off = hypot(spread * share, joules * error_of_share(share, whole, squares, model_error))
            before = found.get(task, (0.0, 0.0))
            found[task] = before[0] + parts[task], hypot(before[1], off)
        overhead += left
    return CallShares(found, overhead)


def _by_time(begin: float, end: float, calls: Sequence[DeviceCall]) -> dict[str, float]:
    """Shares by task. A call at one moment only, between two ticks of the clock, has no time and pays nothing."""
    inside: dict[str, float] = {}
    for call in calls:
        seconds = min(call.end, end) - max(call.start, begin)
        if seconds > 0.0:
            inside[call.task] = inside.get(call.task, 0.0) + seconds
    total = sum(inside.values())
    return {task: seconds / total for task, seconds in inside.items()}
