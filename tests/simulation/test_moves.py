"""The simulator carries out what a policy changes of what runs, in the model."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from wattloom.history.log import VERSION, Header, Log
from wattloom.policies.answers import Dismissal, Eviction, Frequency, Migration, Move, Preparation, Resizing
from wattloom.policies.view import View
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import ALL_MOVES
from wattloom.simulation.log_file import log_writer
from wattloom.simulation.loop import MIGRATION_BYTES_PER_S, Simulation
from wattloom.simulation.replay import replay
from wattloom.simulation.trial import Arrival, ColdStart, Trial
from wattloom.testing import builders
from wattloom.testing.builders import LINEAR, machine, requirements
from wattloom.testing.odd_policies import Lingering
from wattloom.units import GIB

FAST = machine("fast", cores=4, watts=((0.0, 50.0), (4.0, 100.0)), memory=64 * GIB)


class Once(Lingering):
    """Its moves are made at 10 s, and no others."""

    name = "once"
    summary = "for tests"
    reconsider_interval_s = 10.0

    def __init__(self, *moves: Move) -> None:
        super().__init__()
        self.moves = moves

    def linger(self, cls: object, view: View) -> float | None:
        return None

    def reconsider(self, view: View) -> Iterable[Move]:
        return self.moves if view.time == 10.0 else ()


def trial(cold: float = 0.0, second_at: float | None = None) -> Trial:
    """A task of 100 s on a (linear), 50 s on b (fast); maybe another one later."""
    function = builders.function("f", requirements(2.0, 5 * GIB), seconds={"linear": 100.0, "fast": 50.0})
    tasks = [Arrival(0.0, builders.task("t", idempotent=True), 1.0)]
    if second_at is not None:
        tasks.append(Arrival(second_at, builders.task("u", idempotent=True), 1.0))
    return Trial(
        name="moves",
        machines=[LINEAR, FAST],
        functions=[function],
        nodes=[builders.node("a", LINEAR), builders.node("b", FAST)],
        arrivals=tasks,
        seconds={("f", "default", "linear"): 100.0, ("f", "default", "fast"): 50.0},
        cold_starts={"f": ColdStart(cold, 0.0)} if cold else {},
    )


def run(policy: Lingering, of: Trial) -> tuple[Simulation, float, float]:
    simulation = Simulation(of, policy)
    result = simulation.run()
    assert result.tasks.finished == len(of.arrivals)
    return simulation, result.makespan_s, result.energy.active


def test_a_task_goes_on_on_another_node_with_as_much_as_was_left() -> None:
    _, makespan, active = run(Once(Migration("t", "b")), trial())
    moved_at = 10.0 + 5 * GIB / MIGRATION_BYTES_PER_S
    left = 1.0 - moved_at / 100.0
    assert makespan == pytest.approx(moved_at + left * 50.0)
    assert active == pytest.approx(20.0 * moved_at + 25.0 * left * 50.0)


def test_half_the_frequency_takes_twice_as_long_at_an_eighth_of_the_active_watts() -> None:
    _, makespan, active = run(Once(Frequency("a", 0.5)), trial())
    assert makespan == pytest.approx(10.0 + 2 * 90.0)
    assert active == pytest.approx(20.0 * 10.0 + 20.0 / 8 * 180.0)


def test_a_task_that_is_resized_runs_on_as_it_did() -> None:
    simulation, makespan, _ = run(Once(Resizing("t", 1.0, GIB)), trial())
    assert makespan == pytest.approx(100.0)
    assert simulation.engine.reconsideration.refused == []


def test_an_evicted_task_begins_anew_and_has_not_failed() -> None:
    _, makespan, _ = run(Once(Eviction("t")), trial())
    assert makespan == pytest.approx(10.0 + 100.0)


@pytest.mark.parametrize(("moves", "cold"), [([], True), ([Preparation("b", "f")], False)])
def test_an_instance_that_is_ready_saves_the_next_task_its_cold_start(moves: list[Move], cold: bool) -> None:
    simulation, makespan, _ = run(Once(*moves), trial(cold=5.0, second_at=80.0))
    assert makespan == pytest.approx(80.0 + 50.0 + 5.0 * cold)
    assert simulation.engine.ledger.view.instances.expected("b", "f") == 0


def test_an_instance_that_is_dismissed_is_gone() -> None:
    class Twice(Once):
        def reconsider(self, view: View) -> Iterable[Move]:
            return [Dismissal("b", "f")] if view.time == 20.0 else super().reconsider(view)

    _, makespan, _ = run(Twice(Preparation("b", "f")), trial(cold=5.0, second_at=80.0))
    assert makespan == pytest.approx(80.0 + 50.0 + 5.0)


def test_a_log_with_moves_replays_to_the_same_decisions_and_joules(tmp_path: Path) -> None:
    moves = (Migration("t", "b"), Frequency("b", 0.8), Preparation("b", "f"))
    path = tmp_path / "run.log"
    with ExitStack() as stack:
        header = Header(VERSION, "once", "simulation", moves=tuple(sorted(ALL_MOVES)))
        result = Simulation(trial(second_at=30.0), Once(*moves), log_writer(stack, path, header)).run()
    kinds = {type(record) for record in Log(path).records()}
    assert {ev.TaskMigrated, ev.FrequencyChanged, ev.InstanceReady, ev.InstanceGone} <= kinds
    again = replay(path, Once(*moves))
    assert again.same_decisions
    assert again.recorded.energy.active == pytest.approx(result.energy.active)
    assert again.recorded.energy.idle == pytest.approx(result.energy.idle)


def test_signals_of_a_recorded_run_are_there_for_another_policy(tmp_path: Path) -> None:
    told = ev.SignalChanged(20.0, "carbon", 300.0, ((40.0, 100.0),))
    path = tmp_path / "run.log"
    with ExitStack() as stack:
        header = Header(VERSION, "once", "simulation", moves=tuple(sorted(ALL_MOVES)))
        of = msgspec.structs.replace(trial(second_at=30.0), happenings=[told, ev.PlanChanged(21.0, "0a")])
        Simulation(of, Once(), log_writer(stack, path, header)).run()
    other = replay(path, Once(), Lingering())
    assert other.counterfactual is not None
    assert other.counterfactual.tasks.finished == 2
