"""A bad event changes nothing and names what is wrong with it. That nothing changes, the harness checks."""

import pytest

from wattloom.errors import EventRefused
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.testing import builders
from wattloom.testing.builders import machine, task
from wattloom.testing.harness import Harness
from wattloom.workload.constraints import Constraints, Expression, NodeTerm
from wattloom.workload.function import Function, Variant
from wattloom.workload.requirements import Requirements

MANY_RULES = Constraints(terms=(NodeTerm((Expression("zone", "Exists"),) * 10),) * 101)
NAN, INF = float("nan"), float("inf")

EVENTS: list[tuple[ev.AnyEvent, str]] = [
    (ev.Tick(4.9), "time"),
    (ev.Tick(NAN), "time"),
    (ev.Tick(INF), "time"),
    (ev.Tick(1.7e12), "time"),
    (ev.MachineDefined(5.0, machine("")), "machine.name"),
    (ev.MachineDefined(5.0, machine("m", cores=0)), "machine.cores"),
    (ev.MachineDefined(5.0, machine("m", watts=((1.0, 5.0),))), "machine.watts"),
    (ev.MachineDefined(5.0, machine("m", watts=((0.0, 5.0), (NAN, 6.0)))), "machine.watts"),
    (ev.MachineDefined(5.0, machine("m", wake_s=NAN)), "machine.wake_s"),
    (ev.MachineDefined(5.0, machine("m", tdp_w=-1.0)), "machine.tdp_w"),
    (ev.MachineDefined(5.0, MachineProfile("m", "x", 4, 4, 0, smt_slowdown=INF)), "machine.smt_slowdown"),
    (ev.FunctionDefined(5.0, Function("")), "function.name"),
    (ev.FunctionDefined(5.0, Function("g", variants=())), "function.variants"),
    (ev.FunctionDefined(5.0, Function("g", variants=(Variant(), Variant()))), "function.variants"),
    (ev.FunctionDefined(5.0, Function("g", Requirements(cpu=-1.0))), "function.requirements.cpu"),
    (
        ev.FunctionDefined(5.0, Function("g", variants=(Variant("v", seconds={"m": 0.0}),))),
        "function.variants.v.seconds.m",
    ),
    (ev.TaskFound(5.0, task("waiting"), "a", past=ev.Past(place=-1)), "past.place"),
    (ev.TaskFound(5.0, task("new"), "a", variant="never-built"), "variant"),
    (ev.TaskFound(5.0, task("new"), "a", devices=((1001,),)), "devices"),
    (ev.FunctionsForgotten(5.0, ("never-defined",)), "functions"),
    (ev.FunctionsForgotten(5.0, ("f",)), "functions"),
    (ev.TaskSubmitted(5.0, task("")), "task.id"),
    (ev.TaskSubmitted(5.0, task("t")), "task.id"),
    (ev.TaskSubmitted(5.0, task("done")), "task.id"),
    (ev.TaskSubmitted(5.0, task("u", "nothing")), "task.function"),
    (ev.TaskSubmitted(5.0, task("u", energy_weight=1.1)), "task.energy_weight"),
    (ev.TaskSubmitted(5.0, task("u", energy_weight=NAN)), "task.energy_weight"),
    (ev.TaskSubmitted(5.0, task("u", deadline_s=0.0)), "task.deadline_s"),
    (ev.TaskSubmitted(5.0, task("u", deadline_s=INF)), "task.deadline_s"),
    (ev.TaskSubmitted(5.0, task("u", defer_s=-1.0)), "task.defer_s"),
    (ev.TaskSubmitted(5.0, task("u", priority=2**62)), "task.priority"),
    (ev.TaskSubmitted(5.0, task("u", retries=-1)), "task.retries"),
    (ev.TaskSubmitted(5.0, task("u", infrastructure_retries=-1)), "task.infrastructure_retries"),
    (ev.TaskSubmitted(5.0, task("u", after=("u",))), "task.after"),
    (ev.TaskSubmitted(5.0, task("u", needs=Requirements(memory=-1))), "task.requirements.memory"),
    (ev.TaskStarted(5.0, "nobody", 1), "task"),
    (ev.TaskStarted(5.0, "done", 1), "task"),
    (ev.TaskStarted(5.0, "t", 1), "task"),
    (ev.TaskStarted(5.0, "t", 2), "attempt"),
    (ev.TaskFinished(5.0, "waiting", 0), "task"),
    (ev.TaskFailed(5.0, "t", 1, "magic"), "kind"),  # type: ignore[arg-type]
    (ev.CancelRequested(5.0, "nobody"), "task"),
    (ev.InstructionFailed(5.0, "place", "t", 1), "task"),
    (ev.InstructionFailed(5.0, "evict", "t", 1), "task"),
    (ev.InstructionFailed(5.0, "dance", "t", 1), "instruction"),  # type: ignore[arg-type]
    (ev.TaskSubmitted(5.0, task("u", needs=Requirements(constraints=MANY_RULES))), "task.requirements.where.rules"),
    (ev.CapChanged(5.0, 0.0), "watts"),
    (ev.CapChanged(5.0, NAN), "watts"),
    (ev.CapChanged(5.0, INF), "watts"),
]


@pytest.mark.parametrize(("event", "field"), EVENTS, ids=[f"{type(row[0]).__name__}-{row[1]}" for row in EVENTS])
def test_a_bad_event_is_refused_with_the_field_that_is_wrong(event: ev.AnyEvent, field: str) -> None:
    h = Harness().node("a")
    h.submit("done")
    h.finish("done")
    h.submit("t")
    h.start("t")
    h.submit("waiting", needs=builders.requirements(64.0))
    h.tick(5.0)
    refusal = h.refused(event)
    assert refusal.field == field
    assert str(refusal) == f"{field}: {refusal.problem}"


def test_something_that_is_no_event_is_refused() -> None:
    h = Harness()

    class Party(ev.Event, frozen=True, tag="party"):
        pass

    with pytest.raises(EventRefused, match="unknown kind: Party"):
        h.engine.handle(Party(1.0))  # type: ignore[arg-type]


def test_after_a_refusal_the_engine_goes_on_as_if_nothing_had_been_said() -> None:
    h = Harness().node("a")
    h.refused(ev.TaskSubmitted(100.0, task("t", "nothing")))
    h.time = 1.0
    h.submit("t")
    assert h.where("t") == "a"
    h.replay()
