"""The driver's rules: log before anything is done, one event at a time, and each mode does what its name says."""

from collections.abc import Callable

import pytest

from wattloom.driving.driver import Driver, DrivingMode
from wattloom.errors import EventRefused
from wattloom.policies.fifo import Fifo
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.testing.builders import LINEAR, SLEEPER, function, node, task


class Bench:
    """A driver whose log and hands note in one list what they were given, in order."""

    def __init__(self, mode: DrivingMode = "obey", policy: Policy | None = None, *, forgiving: bool = False) -> None:
        self.noted: list[tuple[str, object]] = []
        self.refused: list[tuple[ev.AnyEvent, EventRefused]] = []
        self.answer: Callable[[AnyInstruction, float], None] = lambda instruction, time: None
        refused = (lambda event, problem: self.refused.append((event, problem))) if forgiving else None
        self.driver = Driver(Engine(policy or Fifo()), self._carry_out, self, mode, refused)
        self.driver.tell_all(
            [
                ev.MachineDefined(0.0, LINEAR),
                ev.FunctionDefined(0.0, function("f", seconds={"linear": 10.0})),
                ev.NodeJoined(0.0, node("a", LINEAR)),
            ]
        )
        self.noted.clear()

    def write(self, event: ev.AnyEvent, instructions: list[AnyInstruction]) -> None:
        self.noted.append(("event", event))
        self.noted += [("instruction", each) for each in instructions]

    def _carry_out(self, instructions: list[AnyInstruction], time: float) -> None:
        for instruction in instructions:
            self.noted.append(("done", instruction))
            self.answer(instruction, time)

    def kinds(self) -> list[str]:
        return [
            f"{what} {getattr(record, 'task', '') and getattr(record.task, 'id', record.task)}"  # type: ignore[attr-defined]
            for what, record in self.noted
        ]


def test_an_event_and_its_instructions_are_logged_before_anything_is_done() -> None:
    bench = Bench()

    bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))

    assert [what for what, _ in bench.noted] == ["event", "instruction", "done"]
    assert isinstance(bench.noted[2][1], Place)


def test_what_comes_up_while_instructions_are_carried_out_waits_its_turn() -> None:
    bench = Bench()
    bench.driver.tell(ev.NodeLost(0.0, "a"))
    for name in ("one", "two"):
        bench.driver.tell(ev.TaskSubmitted(0.0, task(name)))
    bench.noted.clear()

    def starts(instruction: AnyInstruction, time: float) -> None:
        if isinstance(instruction, Place):
            bench.driver.tell(ev.TaskStarted(time, instruction.task, instruction.attempt))

    bench.answer = starts
    bench.driver.tell(ev.NodeJoined(0.0, node("a", LINEAR)))

    assert bench.kinds() == [
        "event ", "instruction one", "instruction two", "done one", "done two", "event one", "event two",
    ]  # fmt: skip


def test_a_log_that_tells_does_not_get_in_between() -> None:
    bench = Bench()
    write = bench.write

    def telling(event: ev.AnyEvent, instructions: list[AnyInstruction]) -> None:
        write(event, instructions)
        if isinstance(event, ev.TaskSubmitted) and event.task.id == "one":
            bench.driver.tell(ev.TaskSubmitted(0.0, task("two")))

    bench.driver.log = bench
    bench.write = telling  # type: ignore[method-assign]
    bench.driver.tell(ev.TaskSubmitted(0.0, task("one")))

    assert bench.kinds() == [
        "event one", "instruction one", "done one", "event two", "instruction two", "done two",
    ]  # fmt: skip


def test_several_events_at_once_are_not_interrupted() -> None:
    bench = Bench()
    bench.answer = lambda instruction, time: (
        bench.driver.tell(ev.TaskStarted(time, instruction.task, instruction.attempt))
        if isinstance(instruction, Place)
        else None
    )

    bench.driver.tell_all([ev.TaskSubmitted(0.0, task("one")), ev.TaskSubmitted(0.0, task("two"))])

    told = [(type(record).__name__, getattr(record, "task", None)) for what, record in bench.noted if what == "event"]
    assert [kind for kind, _ in told] == ["TaskSubmitted", "TaskSubmitted", "TaskStarted", "TaskStarted"]


def test_a_refusal_is_its_tellers_and_is_not_logged() -> None:
    bench = Bench(forgiving=True)

    with pytest.raises(EventRefused, match="never-was"):
        bench.driver.tell(ev.TaskFinished(0.0, "never-was", 1))

    assert bench.noted == []
    assert bench.refused == []
    bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))
    assert bench.driver.engine.ledger.tasks["t"].node == "a"


def test_a_refusal_of_one_that_waited_is_told_to_whoever_looks_after_that() -> None:
    bench = Bench(forgiving=True)
    wrong = ev.TaskFinished(0.0, "never-was", 1)
    bench.answer = lambda instruction, time: bench.driver.tell(wrong)

    bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))

    assert [event for event, _ in bench.refused] == [wrong]
    assert "event never-was" not in bench.kinds()


def test_without_such_a_one_it_is_an_error() -> None:
    bench = Bench()
    bench.answer = lambda instruction, time: bench.driver.tell(ev.TaskFinished(0.0, "never-was", 1))

    with pytest.raises(EventRefused, match="never-was"):
        bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))


def test_a_shadow_decides_and_does_nothing() -> None:
    bench = Bench("shadow")

    bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))

    assert [what for what, _ in bench.noted] == ["event", "instruction"]
    assert bench.driver.engine.ledger.tasks["t"].node == "a"


def test_a_shadow_is_told_what_others_did_instead() -> None:
    bench = Bench("shadow")
    bench.driver.tell(ev.NodeJoined(0.0, node("b", LINEAR)))
    bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))

    bench.driver.tell(ev.TaskFound(1.0, task("t"), "b"))

    record = bench.driver.engine.ledger.tasks["t"]
    assert (record.node, record.holding.started) == ("b", True)
    assert not bench.driver.engine.ledger.index.nodes["a"].tasks


def test_a_recording_is_told_what_others_decided_and_asked_nothing() -> None:
    bench = Bench("record")

    bench.driver.tell(ev.TaskFound(0.0, task("t"), "a"))
    with pytest.raises(EventRefused, match="others decide"):
        bench.driver.tell(ev.TaskSubmitted(0.0, task("u")))
    bench.driver.tell(ev.TaskFinished(5.0, "t", 1, 5.0))

    assert bench.driver.engine.proposals == 0
    assert [what for what, _ in bench.noted] == ["event", "event"]


def test_ticks_come_when_they_are_wanted() -> None:
    bench = Bench(policy=LeastJoules(sleep=True))
    bench.driver.tell(ev.MachineDefined(0.0, SLEEPER))
    bench.driver.tell(ev.NodeJoined(0.0, node("s", SLEEPER)))
    due = bench.driver.next_tick
    assert due is not None

    assert not bench.driver.tick(due / 2.0)
    assert bench.driver.tick(due)

    assert [what for what, _ in bench.noted][-3:] == ["event", "instruction", "done"]


def test_a_recording_wants_no_ticks() -> None:
    bench = Bench("record", LeastJoules(sleep=True))
    bench.driver.tell(ev.MachineDefined(0.0, SLEEPER))
    bench.driver.tell(ev.NodeJoined(0.0, node("s", SLEEPER)))

    assert bench.driver.engine.next_tick is not None
    assert bench.driver.next_tick is None
    assert not bench.driver.tick(1e6)


def test_it_goes_on_with_another_engine() -> None:
    bench = Bench()
    bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))
    state: list[ev.AnyEvent] = [
        ev.MachineDefined(1.0, LINEAR),
        ev.FunctionDefined(1.0, function("f", seconds={"linear": 10.0})),
        ev.NodeJoined(1.0, node("a", LINEAR)),
        ev.TaskFound(1.0, task("t"), "a", 1),
    ]
    bench.noted.clear()

    bench.driver.begin_anew(Engine(Fifo()), bench, state)
    bench.driver.tell(ev.TaskFinished(2.0, "t", 1))

    assert [record for what, record in bench.noted if what == "event"] == [*state, ev.TaskFinished(2.0, "t", 1)]


def test_what_an_error_left_waiting_has_its_turn_before_what_is_told_next() -> None:
    bench = Bench()

    def fails(instruction: AnyInstruction, time: float) -> None:
        bench.driver.tell(ev.TaskStarted(time, "t", 1))
        raise OSError("no room on the disk")

    bench.answer = fails
    with pytest.raises(OSError, match="no room"):
        bench.driver.tell(ev.TaskSubmitted(0.0, task("t")))
    bench.answer = lambda instruction, time: None
    bench.driver.tell(ev.TaskFinished(5.0, "t", 1))
    events = [type(record) for what, record in bench.noted if what == "event"]
    assert events == [ev.TaskSubmitted, ev.TaskStarted, ev.TaskFinished]
