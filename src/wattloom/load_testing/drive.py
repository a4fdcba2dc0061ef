"""A plan driven: its rates asked for, open loop, on this machine or on the simulator, and what was reached.

Owns the run: which calls count, when it is looked for drift, and when another plan holds. Both backends get the same
plan, nodes, policy and arrivals, and are told of by the same fold over their logs.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from wattloom.energy.measured import Energy
from wattloom.errors import InputError
from wattloom.history.log import Log
from wattloom.history.observed_calls import Calls, Observed
from wattloom.load_testing.carried import Carried, carried_out
from wattloom.load_testing.drift import Drift, drifts, replanned
from wattloom.load_testing.load_generator import MOST_OPEN, Call, LoadGenerator
from wattloom.load_testing.report import Driven, FunctionDriven, driven_function
from wattloom.local.executor import Executor
from wattloom.local.functions import name_of
from wattloom.local.import_path import prints_nowhere
from wattloom.planning.instance import Clock
from wattloom.planning.plan import Plan
from wattloom.planning.plan_store import keep_plan
from wattloom.workload.function_profile import FunctionProfiles
from wattloom.workload.open_loop import Arrivals, schedule

PATIENCE_S: Final = 30.0
"""After the time is over, so long is waited for what is open."""
MOST_S: Final = 7 * 86_400.0
NOTHING_MORE: Final = FunctionProfiles()
"""Than what the plan itself knows of its functions."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan is to be driven."""

    seconds: float = 10.0
    arrivals: Arrivals = "poisson"
    seed: int = 0
    rates: dict[str, float] = {}
    """Asked instead of what was planned for, at the plan's scale."""
    replan: bool = False
    move_price: float = 1.0
    """What a move must save, in the goal's measure."""
    check_s: float = 5.0
    """How often it is looked for drift."""
    most_open: int = MOST_OPEN
    wait: float = 10.0
    """The policy's option: executions for which a call waits for its function's cores."""
    meter: str = "auto"
    journal: Path | None = None

    def check(self) -> None:
        if not 0.0 < self.seconds <= MOST_S:
            raise InputError("seconds", f"must be positive, at most {MOST_S:g}, not {self.seconds}")
        if not self.check_s > 0.0:
            raise InputError("check", f"must be positive, not {self.check_s}")
        if self.most_open < 1:
            raise InputError("most_open", f"must be at least 1, not {self.most_open}")


def asked_rates(carried: Carried, rates: dict[str, float]) -> dict[str, float]:
    """What is asked of each function of the plan, at the scale of this machine. InputError: one is not in the plan."""
    planned: dict[str, float] = {}
    for each in carried.plan.assignments:
        planned[each.function] = planned.get(each.function, 0.0) + each.rate
    for name, rate in rates.items():
        if name not in planned:
            raise InputError(f"rates.{name}", f"is not in the plan, which has {', '.join(planned)}")
        planned[name] = rate * carried.scale
    return planned


def renamed(plan: Plan, names: dict[str, str]) -> Plan:
    """The plan with functions as the engine knows them."""
    return msgspec.structs.replace(
        plan,
        assignments=tuple(
            msgspec.structs.replace(each, function=names.get(each.function, each.function)) for each in plan.assignments
        ),
        demand=(),
    )


class Replanning:
    """Looks for drift, and has another plan made where that is wished. `clock`: by which that takes not too long; on
    the simulator there is none, so that the same run twice is the same."""

    def __init__(
        self,
        carried: Carried,
        wishes: Wishes,
        profiles: FunctionProfiles,
        names: dict[str, str],
        clock: Clock = lambda: 0.0,
    ) -> None:
        self._clock: Final = clock
        self.carried: Carried = carried
        self.found: list[Drift] = []
        self.said: list[str] = []
        self.moves: int = 0
        self._wishes: Final = wishes
        self._profiles: Final = profiles
        self._names: Final = names
        self.digests: Final = [keep_plan(renamed(carried.plan, names))]

    def look(
        self,
        now: float,
        seconds: float,
        asked: dict[str, int],
        seen: dict[str, Observed],
        joules: dict[str, list[float]],
    ) -> str:
        """What has drifted by now, by what was asked in the last so many seconds; the digest of another plan if one is
        to hold from now on."""
        self.found = drifts(self.carried, asked, seconds, seen, joules, self._profiles)
        if not (self._wishes.replan and self.found):
            return ""
        words = ", ".join(map(str, self.found))
        try:
            made = replanned(self.carried, self.found, self._profiles, self._wishes.move_price, self._clock)
        except InputError as problem:
            self.said.append(f"at {now:.1f} s: {words}; the plan stays: {problem}")
            return ""
        if made.assignments == self.carried.original.assignments:
            return ""
        self.carried = self._again(made)
        self.moves += made.moves
        moved = "no function moves" if not made.moves else f"{made.moves} of {len(made.demand)} functions move"
        self.said.append(f"at {now:.1f} s: {words}; planned anew, {moved}")
        self.digests.append(keep_plan(renamed(self.carried.plan, self._names)))
        self.found = []
        return self.digests[-1]

    def _again(self, made: Plan) -> Carried:
        """On the same nodes at the same scale."""
        old = self.carried
        if not old.nodes:
            return carried_out(made, scale=old.scale)
        names = [node.name for node in old.nodes]
        cores = len(names) * int(old.nodes[0].cpu or 1.0)
        return carried_out(made, servers=names, scale=old.scale, nodes=old.nodes, cores=cores)


# -- on this machine ---------------------------------------------------------------------------------------------------


def drive_here(
    carried: Carried,
    calls: dict[str, Call],
    wishes: Wishes,
    profiles: FunctionProfiles = NOTHING_MORE,
    beat: Callable[[float], None] = lambda now: None,
) -> Driven:
    """Drive the plan on this machine. Interrupted, it ends with what was counted so far."""
    wishes.check()
    rates = asked_rates(carried, wishes.rates)
    missing = [name for name in rates if name not in calls]
    if missing:
        raise InputError(f"functions.{missing[0]}", "nobody has said how it is called")
    names = {name: name_of(call.function) for name, call in calls.items() if name in rates}
    arrivals = schedule(rates, wishes.seconds, wishes.arrivals, wishes.seed)
    again = Replanning(carried, wishes, profiles, names, time.monotonic)
    with ExitStack() as stack:
        journal = wishes.journal
        if journal is None:
            journal = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wattloom-drive-"))) / "drive.journal"
        interrupted = False
        executor = Executor(
            policy=f"planned:plan={again.digests[0]},wait={wishes.wait},sleep=false",
            journal=journal,
            nodes=carried.nodes or None,
            meter=wishes.meter,
            idle_timeout=PATIENCE_S + wishes.check_s,
            initializer=prints_nowhere,
        )
        generator = LoadGenerator(executor, {name: calls[name] for name in rates}, wishes.most_open)
        watch = _Watch(executor, generator, again, names, wishes.check_s, beat)
        try:
            with executor:
                generator.warm_up({each.function: each.cores for each in carried.plan.assignments})
                try:
                    generator.run(arrivals, wishes.seconds, watch.beat)
                    generator.finish(PATIENCE_S)
                except KeyboardInterrupt:
                    interrupted = True
                joules = _joules(generator)
                if interrupted:
                    executor.kill_workers()
        except KeyboardInterrupt:
            interrupted, joules = True, _joules(generator)
        return _driven_here(again, carried, generator, wishes, names, joules, executor.journal, interrupted)


class _Watch:
    """About four times a second: the caller's beat; now and then a look for drift."""

    def __init__(
        self,
        executor: Executor,
        generator: LoadGenerator,
        again: Replanning,
        names: dict[str, str],
        check_s: float,
        beat: Callable[[float], None],
    ) -> None:
        self._executor, self._generator, self._again, self._names = executor, generator, again, names
        self._check_s, self._beat = check_s, beat
        self._since: float = 0.0
        self._look_at: float = check_s
        self._before: dict[str, int] = {}
        """Calls that were due before the plan that holds did."""

    def beat(self, now: float) -> None:
        self._beat(now)
        if now < self._look_at:
            return
        self._look_at = now + self._check_s
        asked = {name: counts.asked for name, counts in self._generator.counts.items()}
        new = {name: count - self._before.get(name, 0) for name, count in asked.items()}
        seen = by_plan_name(_calls(self._executor.journal, self._generator), self._names)
        digest = self._again.look(now, now - self._since, new, seen, _known_joules(self._generator))
        if digest:
            self._executor.change_plan(digest)
            self._since, self._before = now, asked


def _calls(journal: Path, generator: LoadGenerator) -> Calls:
    return Calls(generator.late_by, generator.tasks).take(Log(journal).records())


def by_plan_name(calls: Calls, names: dict[str, str]) -> dict[str, Observed]:
    """What was seen of each function, under the name that the plan has for it."""
    return {name: calls.functions.get(engine, Observed()) for name, engine in names.items()}


def _known_joules(generator: LoadGenerator) -> dict[str, list[float]]:
    """Of calls that have ended and whose joules are known already: nobody waits for a meter here."""
    found: dict[str, list[float]] = {}
    for name, counts in generator.counts.items():
        known = [future._known_energy() for future in counts.futures if future.done() and not future._owed]
        found[name] = [float(each.joules) for each in known if isinstance(each, Energy)]
    return found


def _joules(generator: LoadGenerator) -> dict[str, tuple[list[float], str]]:
    """Of all calls that have ended, and what kind of figure they are."""
    found: dict[str, tuple[list[float], str]] = {}
    for name, counts in generator.counts.items():
        known = [each.energy for each in counts.futures if each.done() and each.exception() is None]
        energies = [each for each in known if isinstance(each, Energy)]
        found[name] = [float(each.joules) for each in energies], energies[0].provenance if energies else ""
    return found


def _driven_here(
    again: Replanning,
    carried: Carried,
    generator: LoadGenerator,
    wishes: Wishes,
    names: dict[str, str],
    joules: dict[str, tuple[list[float], str]],
    journal: Path,
    interrupted: bool,
) -> Driven:
    calls = _calls(journal, generator)
    seen = by_plan_name(calls, names)
    seconds = max(generator.seconds, 1e-9)
    began = calls.first - generator.first_s
    asked = {name: counts.asked for name, counts in generator.counts.items()}
    if not again.moves and len(again.digests) == 1:
        again.look(seconds, seconds, asked, seen, {name: each[0] for name, each in joules.items()})
    functions = [
        driven_function(
            name,
            carried.plan,
            seconds,
            (counts.asked, counts.late, counts.refused),
            seen[name],
            sum(end <= began + seconds for end in seen[name].ends),
            *joules[name],
        )
        for name, counts in generator.counts.items()
    ]
    return driven("local", again, carried, wishes, seconds, functions, interrupted, wishes.journal)


def driven(
    backend: str,
    again: Replanning,
    carried: Carried,
    wishes: Wishes,
    seconds: float,
    functions: list[FunctionDriven],
    interrupted: bool,
    journal: Path | None,
) -> Driven:
    return Driven(
        plan=carried.original.digest,
        backend=backend,
        seconds=seconds,
        arrivals=wishes.arrivals,
        seed=wishes.seed,
        scale=carried.scale,
        functions=tuple(functions),
        drift=tuple(again.found),
        plans=tuple(again.digests),
        moves=again.moves,
        replanning=tuple(again.said),
        journal="" if journal is None else str(journal),
        interrupted=interrupted,
        notes=carried.notes,
    )
