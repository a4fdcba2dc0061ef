"""The same plan, nodes and arrivals on the simulator.

Owns the trial that a carried plan comes to. Executions take as long as the plan's E says; on nodes that the plan has no
E for, as long as where they are slowest. A plan made anew on the way is one more event of the trial: what happened
before it happens again in the same way, so the run is made once more with it.
"""

from msgspec.structs import replace

from wattloom.cluster.node import Node
from wattloom.history.observed_calls import Calls
from wattloom.history.records import Record
from wattloom.load_testing.carried import Carried
from wattloom.load_testing.drive import NOTHING_MORE, Replanning, Wishes, asked_rates, by_plan_name, driven
from wattloom.load_testing.report import Driven, driven_function
from wattloom.planning.plan import Plan
from wattloom.policies.loading import load_policy
from wattloom.scheduling.events import AnyEvent, Event, PlanChanged
from wattloom.scheduling.instructions import AnyInstruction
from wattloom.simulation.loop import Simulation
from wattloom.simulation.trial import Arrival, Trial
from wattloom.workload.function import DEFAULT_VARIANT, Function, Variant
from wattloom.workload.function_profile import FunctionProfiles
from wattloom.workload.open_loop import schedule
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


class Recording:
    """A log that is kept in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, event: AnyEvent, instructions: list[AnyInstruction]) -> None:
        self.records += [event, *instructions]


def drive_simulated(carried: Carried, wishes: Wishes, profiles: FunctionProfiles = NOTHING_MORE) -> Driven:
    """Drive the plan on the simulator: what this machine would do if all were as planned."""
    wishes.check()
    rates = asked_rates(carried, wishes.rates)
    names = {name: name for name in rates}
    again = Replanning(carried, wishes, profiles, names)
    trial = trial_of_plan(carried, rates, wishes)
    changes = [PlanChanged(0.0, again.digests[0])]
    looked_at, since = 0.0, 0.0
    while True:
        records = simulated(trial, changes, wishes.wait)
        looked_at += wishes.check_s
        while looked_at < wishes.seconds:
            digest = _look(again, trial, records, since, looked_at)
            if digest:
                changes.append(PlanChanged(looked_at, digest))
                since = looked_at
                break
            looked_at += wishes.check_s
        else:
            break
    if len(changes) == 1:
        _look(again, trial, records, 0.0, wishes.seconds)
    return _told(again, carried, trial, records, wishes, names)


def trial_of_plan(carried: Carried, rates: dict[str, float], wishes: Wishes) -> Trial:
    """Nodes as they are shown here, functions with the plan's E, arrivals as the load generator would drive them."""
    profiles = {profile.name: profile for profile in carried.machines.values()}
    arrivals = schedule(rates, wishes.seconds, wishes.arrivals, wishes.seed)
    nodes = [Node(each.name, carried.machines[each.name].name, cpu=float(each.cores)) for each in carried.plan.servers]
    seconds = _seconds(carried.plan, carried)
    functions = [_function(name, carried.plan, seconds) for name in rates]
    return Trial(
        name="plan",
        machines=list(profiles.values()),
        functions=functions,
        nodes=nodes,
        arrivals=[
            Arrival(time, Task(f"t{number}", name, idempotent=True))
            for number, (time, name) in enumerate(arrivals, start=1)
        ],
        seconds=seconds,
    )


def _seconds(plan: Plan, carried: Carried) -> dict[tuple[str, str, str], float]:
    machine = {name: profile.name for name, profile in carried.machines.items()}
    known: dict[tuple[str, str, str], float] = {}
    for each in plan.assignments:
        build = each.variant or DEFAULT_VARIANT.name
        known[each.function, build, machine[each.server]] = 1.0 / each.per_core_s
    slowest: dict[tuple[str, str], float] = {}
    for (function, build, _), seconds in known.items():
        slowest[function, build] = max(seconds, slowest.get((function, build), 0.0))
    everywhere = {(*pair, name): seconds for pair, seconds in slowest.items() for name in machine.values()}
    return everywhere | known


def _function(name: str, plan: Plan, seconds: dict[tuple[str, str, str], float]) -> Function:
    builds = dict.fromkeys(build for function, build, _ in seconds if function == name)
    cpu = next((each.cpu for each in plan.demand if each.function == name), 1.0)
    variants = [
        Variant(build, seconds={at: s for (function, of, at), s in seconds.items() if (function, of) == (name, build)})
        for build in builds
    ]
    return Function(name, Requirements(cpu=cpu), tuple(variants))


def simulated(trial: Trial, changes: list[PlanChanged], wait: float) -> list[Record]:
    """Every event and instruction of a run in which these plans hold one after the other."""
    log = Recording()
    policy = load_policy(f"planned:wait={wait},sleep=false")
    Simulation(replace(trial, happenings=list(changes)), policy, log).run()  # type: ignore[arg-type]
    return log.records


def _until(records: list[Record], until: float) -> list[Record]:
    """What was told up to then."""
    found: list[Record] = []
    for record in records:
        if isinstance(record, Event) and record.time > until:
            break
        found.append(record)
    return found


def _look(again: Replanning, trial: Trial, records: list[Record], since: float, now: float) -> str:
    due = [each for each in trial.arrivals if since <= each.time < now]
    asked: dict[str, int] = {}
    for each in due:
        asked[each.task.function] = asked.get(each.task.function, 0) + 1
    counted = {each.task.id for each in due}
    seen = Calls(None, counted).take(_until(records, now)).functions
    return again.look(now, now - since, asked, seen, {name: each.joules for name, each in seen.items()})


def _told(
    again: Replanning, carried: Carried, trial: Trial, records: list[Record], wishes: Wishes, names: dict[str, str]
) -> Driven:
    seen = by_plan_name(Calls().take(records), names)
    asked = {name: sum(each.task.function == name for each in trial.arrivals) for name in names}
    functions = [
        driven_function(
            name,
            carried.plan,
            wishes.seconds,
            (asked[name], 0, 0),
            each,
            sum(end <= wishes.seconds for end in each.ends),
            each.joules,
            "modelled",
        )
        for name, each in seen.items()
    ]
    return driven("simulation", again, carried, wishes, wishes.seconds, functions, False, None)
