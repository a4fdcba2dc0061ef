"""Joules of calls on devices, added to what the calls cost on the processors.

Owns which calls ran when on which worker, what running ones have cost on devices so far, and the sum of both accounts:
`meter + held before = tasks + held + idle + unattributed`, to the last bit, with the devices in every part. Used by one
thread. Reads the device meters and has no clock. A call on a device whose joules are not known has none at all: half of
a figure would be taken for the whole.
"""

from collections.abc import Iterable
from math import hypot
from typing import Final

from msgspec.structs import replace

from wattloom.attribution.gpu import DeviceCall, DeviceUsage, split_over_calls
from wattloom.attribution.gpu_account import GpuAccount
from wattloom.attribution.usage import Usage
from wattloom.energy.forecast import Provenance
from wattloom.energy.grains import to_grain
from wattloom.metering.devices import DeviceMeter

EARLIER: Final = ""
"""Instead of a task: all calls of a worker that were answered for while a device was silent."""
BEST_FIRST: Final[tuple[Provenance, ...]] = ("measured", "modelled", "estimated")


class DevicesBeside:
    """The accounts of all device meters, and the calls of our workers."""

    def __init__(self, meters: Iterable[DeviceMeter]) -> None:
        self._accounts: Final = [GpuAccount(meter) for meter in meters]
        self.users: set[int] = set()
        """Processes that had a context on a device at the last look."""
        self._workers: Final[set[int]] = set()
        self._gone: Final[set[int]] = set()
        self._heard: list[tuple[str, str, int, float, float]] = []
        """Calls that ended since the last look: task, function, pid, seconds, and when we heard of it."""
        self._running: list[tuple[int, str, str, float]] = []
        self._ended: list[DeviceCall] = []
        """Calls that ended and may have to pay for an interval that is still open."""
        self._waiting: Final[dict[str, DeviceCall]] = {}
        """By task: an ended call that was not answered for yet."""
        self._held: Final[dict[str, tuple[float, float]]] = {}
        """By task that runs or waits: joules so far, and their spread."""
        self._broken: Final[dict[str, str]] = {}
        """By task: why its joules will never be known."""
        self._silent: dict[int, str] = {}
        """By process: what cannot be read now, of the devices it has a context on."""
        self._meter_j = self._idle_j = self._rest_j = self._overhead_j = 0.0
        """Since the last interval that was told: of the devices, and what is no call's."""
        self._told_held_j = 0.0

    # -- what the backend tells ----------------------------------------------------------------------------------

    def worker_started(self, worker: int) -> None:
        self._workers.add(worker)
        self._gone.discard(worker)

    def worker_gone(self, worker: int) -> None:
        """Its calls still count at the next look."""
        self._gone.add(worker)

    def ended(self, worker: int, task: str, function: str, seconds: float, heard: float) -> None:
        """A call ended that pays by itself. No function: it did not come to its end."""
        self._heard.append((task, function, worker, seconds, heard))

    def running(self, worker: int, task: str, function: str, since: float) -> None:
        """What a worker runs now. Holds for the next look alone."""
        self._running.append((worker, task, function, since))

    # -- the interval --------------------------------------------------------------------------------------------

    def beside(self, usage: Usage, now: float) -> Usage:
        """Look at the devices, and add them to what the account of the processors has just found."""
        running = [DeviceCall(task, function, pid, since, now) for pid, task, function, since in self._running]
        self._running = []
        placed = _placed(self._heard)
        self._heard = []
        self._waiting.update((call.task, call) for call in placed)
        self._ended += placed
        calls = [*self._ended, *running]
        self._silent = {}
        for account in self._accounts:
            for closed in account.sample(now):
                self._share_out(account, closed, now, calls)
            self._note_silent(account)
        both = self._together(usage, {call.task for call in running})
        self._tidy(now)
        return both

    def _share_out(self, account: GpuAccount, closed: DeviceUsage, now: float, calls: list[DeviceCall]) -> None:
        begin = now - closed.seconds
        if closed.meter_j is None:
            self._break(account.users(closed.device), f"device {closed.device}: {closed.problem}", begin, calls)
            return
        ours = [(pid, joules, spread) for pid, (joules, spread) in closed.processes.items() if pid in self._workers]
        shares = split_over_calls(begin, now, ours, calls, account.meter.model_error)
        for task, (joules, spread) in shares.calls.items():
            before = self._held.get(task, (0.0, 0.0))
            # A call that draws more than its worker's others does so in every interval: spreads add up.
            self._held[task] = before[0] + joules, before[1] + spread
        paid = sum(joules for joules, _ in shares.calls.values())
        self._meter_j += closed.meter_j
        self._idle_j += closed.idle_j
        self._overhead_j += shares.overhead_j
        self._rest_j += closed.meter_j - closed.idle_j - paid

    def _break(self, users: set[int], why: str, begin: float, calls: list[DeviceCall]) -> None:
        """The count of a device broke off: whoever ran on it meanwhile has no figure."""
        for call in calls:
            if call.pid in users and call.end > begin:
                self._broken.setdefault(call.task, why)

    def _note_silent(self, account: GpuAccount) -> None:
        for device, why in account.silent.items():
            for pid in account.users(device):
                self._silent.setdefault(pid, f"device {device}: {why}")

    # -- both together -------------------------------------------------------------------------------------------

    def _together(self, usage: Usage, running: set[str]) -> Usage:
        before = self._told_held_j
        for task in usage.unknown:
            self._waiting.pop(task, None)
        if usage.meter_j is None:  # what the devices counted is told with the next good reading
            return replace(usage, held_j=usage.held_j + before, held_before_j=usage.held_before_j + before)
        tasks, functions = dict(usage.tasks), dict(usage.functions)
        added_j, lost_j, unknown = 0.0, 0.0, dict.fromkeys(usage.unknown, usage.problem)
        for task in usage.tasks:
            call = self._waiting.pop(task, None)
            why = self._broken.get(task) or (self._silent.get(call.pid) if call is not None else None)
            if why:
                lost_j += _leave_out(task, call, tasks, functions)
                unknown[task] = why
            elif task in self._held:
                added_j += _add(task, call, self._held.pop(task), tasks, functions)
        self._waiting.clear()  # a good reading answers for all that ended
        self._let_go(running)
        held_j = sum(joules for joules, _ in self._held.values())
        lost_j = min(to_grain(lost_j), usage.tasks_j)
        sources = (usage.provenance, *(account.meter.provenance for account in self._accounts))
        both = replace(
            usage,
            provenance=max(sources, key=BEST_FIRST.index),
            meter_j=usage.meter_j + self._meter_j,
            tasks_j=usage.tasks_j - lost_j + added_j,
            idle_j=usage.idle_j + self._idle_j,
            unattributed_j=usage.unattributed_j + lost_j + self._rest_j,
            overhead_j=usage.overhead_j + self._overhead_j,
            held_j=usage.held_j + held_j,
            held_before_j=usage.held_before_j + before,
            tasks=tasks,
            functions=functions,
            unknown=tuple(unknown),
            problem="; ".join(dict.fromkeys(filter(None, (usage.problem, *unknown.values())))),
        )
        self._told_held_j = held_j
        self._meter_j = self._idle_j = self._rest_j = self._overhead_j = 0.0
        return both

    def _let_go(self, running: set[str]) -> None:
        """What is held for tasks that neither run nor wait is nobody's: they were answered for without it."""
        for task in [task for task in self._held if task not in running and task not in self._waiting]:
            self._rest_j += self._held.pop(task)[0]
        for task in [task for task in self._broken if task not in running and task not in self._waiting]:
            del self._broken[task]

    def _tidy(self, now: float) -> None:
        """Begin the next interval."""
        silent = any(account.silent for account in self._accounts)
        self._ended = _folded(self._ended, self._waiting, now) if silent else []
        for account in self._accounts:
            account.forget(self._gone)
        self._workers.difference_update(self._gone)
        self._gone.clear()
        self.users = {pid for account in self._accounts for pid in account.all_users}


def _placed(heard: list[tuple[str, str, int, float, float]]) -> list[DeviceCall]:
    """When calls ran. A worker makes one at a time and tells of several together, so each ended before the next."""
    placed: list[DeviceCall] = []
    next_start: dict[int, float] = {}
    for task, function, pid, seconds, when in reversed(heard):
        end = min(when, next_start.get(pid, when))
        next_start[pid] = end - seconds
        placed.append(DeviceCall(task, function, pid, end - seconds, end))
    placed.reverse()
    return placed


def _folded(ended: list[DeviceCall], waiting: dict[str, DeviceCall], now: float) -> list[DeviceCall]:
    """The same without those that were answered for: of each worker only their time is kept, which others must not pay
    for when the device is back. A device may be silent for days."""
    seconds: dict[int, float] = {}
    kept = []
    for call in ended:
        if call.task in waiting:
            kept.append(call)
        else:
            seconds[call.pid] = seconds.get(call.pid, 0.0) + call.end - call.start
    return [DeviceCall(EARLIER, "", pid, now - spent, now) for pid, spent in seconds.items()] + kept


def _add(
    task: str,
    call: DeviceCall | None,
    more: tuple[float, float],
    tasks: dict[str, tuple[float, float]],
    functions: dict[str, tuple[int, float, float]],
) -> float:
    """Add a task's joules on devices to its own and its function's; how many that were."""
    joules, spread = tasks[task]
    tasks[task] = joules + more[0], hypot(spread, more[1])
    if call is not None and call.function in functions:
        calls, total, squares = functions[call.function]
        functions[call.function] = calls, total + more[0], squares + (joules + more[0]) ** 2 - joules**2
    return more[0]


def _leave_out(
    task: str,
    call: DeviceCall | None,
    tasks: dict[str, tuple[float, float]],
    functions: dict[str, tuple[int, float, float]],
) -> float:
    """A task whose joules on devices are not known has none; those on the processors, which are nobody's then."""
    joules, _ = tasks.pop(task)
    if call is not None and call.function in functions:
        calls, total, squares = functions[call.function]
        functions[call.function] = calls - 1, max(total - joules, 0.0), max(squares - joules**2, 0.0)
    return joules
