"""A run on the rig: calls of several functions in changing mixes, and what was said of each beside the truth.

Owns the plan of calls and the way they are made, which is the ordinary executor with the ordinary meter.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.functions import FUNCTIONS, Burnt, join
from tests.beds.rig.rig import Rig
from tests.beds.rig.truth import Truth

from wattloom.attribution.usage import Totals
from wattloom.energy.measured import Energy
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.local.metered_accounting import MeteredAccounting

QUIET_S: Final = 1.5
"""Before the first call: executors are seldom busy from their first moment on."""


class Plan(msgspec.Struct, frozen=True):
    """Which calls are made."""

    cpu_s: float
    workers: int
    seconds: float
    """About how long the run takes, if the workers have the machine's cores to themselves."""
    cores: int
    mixes: bool = True
    """Whether the mix of functions changes every second or so, as mixes do. Else all are alike all the time."""
    functions: int = len(FUNCTIONS)
    seed: int = 1

    @property
    def calls(self) -> int:
        return max(round(self.seconds * min(self.workers, self.cores) / self.cpu_s), self.workers)

    def order(self) -> Iterator[int]:
        """Which function each call is of."""
        chance = Random(self.seed)
        every = max(round(min(self.workers, self.cores) / self.cpu_s), 1)
        weights = [1.0] * self.functions
        for number in range(self.calls):
            if self.mixes and number % every == 0:
                weights = [chance.gammavariate(0.5, 1.0) + 1e-3 for _ in weights]
            yield chance.choices(range(self.functions), weights)[0]


class Told(msgspec.Struct, frozen=True):
    """A call, what it really cost, and what was said of it."""

    call: Burnt
    truth_j: float
    joules: float
    spread: float

    @property
    def error(self) -> float:
        """Relative."""
        return self.joules / self.truth_j - 1.0


class Trial(msgspec.Struct, frozen=True):
    """A run that is over."""

    plan: Plan
    told: list[Told]
    truth: Truth
    totals: Totals
    """Of the account."""


def run(plan: Plan, conditions: Conditions) -> Trial:
    """Make the calls, and hold what is said of them against the truth."""
    with tempfile.TemporaryDirectory() as folder, Rig(conditions) as rig:
        executor = Executor(
            plan.workers,
            meter=rig.meter(),
            journal=Path(folder) / "journal.db",
            policy="fifo",
            initializer=join,
            initargs=(rig.slots,),
        )
        with executor:
            _warm_up(executor, plan.workers)
            time.sleep(QUIET_S)
            futures = _make(executor, plan)
            calls = [future.result() for future in futures]
            said = [(call, future.energy, _packing(call, future)) for call, future in zip(calls, futures, strict=True)]
            accounting = executor._dispatcher._accounting
            assert isinstance(accounting, MeteredAccounting)
        totals, truth = accounting.account.totals, rig.stop()
    told = [
        Told(call, truth.joules(call, packing_s), energy.joules, energy.spread)
        for call, energy, packing_s in said
        if isinstance(energy, Energy)
    ]
    if len(told) < len(said):
        raise RuntimeError(f"{len(said) - len(told)} calls of {len(said)} have no figure")
    return Trial(plan, told, truth, totals)


def _packing(call: Burnt, future: TaskFuture) -> float:
    """CPU seconds of a call beside those of its function. Of long ones they are not known, and do not matter."""
    charged_s = future._energy
    return max(charged_s - (call.cpu_ended - call.cpu_began), 0.0) if isinstance(charged_s, float) else 0.0


def _warm_up(executor: Executor, workers: int) -> None:
    """So that every worker has started and is known to the rig."""
    for future in [executor.submit(time.sleep, 0.3) for _ in range(workers)]:
        future.result()


def _make(executor: Executor, plan: Plan) -> list[TaskFuture]:
    """All of them at once: they wait for a worker in this order."""
    return [executor.submit(FUNCTIONS[function], plan.cpu_s) for function in plan.order()]
