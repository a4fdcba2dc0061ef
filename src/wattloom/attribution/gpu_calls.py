"""Joules of a device for single calls inside a worker: pure arithmetic.

Owns the split of what one process paid over the calls it ran meanwhile. A device does not tell which call a kernel came
from, so the time is the key: a worker uses its device on behalf of its calls.
"""

from collections.abc import Iterable, Sequence
from math import hypot

import msgspec

from wattloom.attribution.gpu import error_of_share
from wattloom.attribution.sharing import to_grain


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
        left = to_grain(joules)
        for task, share in shares.items():
            part = min(to_grain(joules * share), left)
            left -= part
            off = hypot(spread * share, joules * error_of_share(share, whole, squares, model_error))
            before = found.get(task, (0.0, 0.0))
            found[task] = before[0] + part, hypot(before[1], off)
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
