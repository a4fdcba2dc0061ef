"""What was seen changes what is expected, and what is expected changes where tasks go."""

from wattloom.energy.forecast import Forecast, Unknown
from wattloom.policies.protocol import RankingPolicy
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.scheduling import events as ev
from wattloom.testing.builders import ARM, LINEAR, machine, requirements
from wattloom.testing.harness import Harness


class Fastest(RankingPolicy):
    """Least expected seconds."""

    name = "fastest"
    summary = "for tests"
    needs_runtime = True

    def cost(self, shape: object, site: object, estimate: PlacementEstimate) -> float:
        return estimate.seconds


def seconds_of(h: Harness, task: str) -> float | None:
    forecast = h.placements[task][-1].forecast
    return forecast.seconds if isinstance(forecast, Forecast) else None


def run(h: Harness, name: str, seconds: float) -> None:
    h.submit(name)
    h.finish(name, seconds)


def test_a_function_never_run_has_no_forecast_until_it_has_run_three_times() -> None:
    h = Harness().node("a")
    for number in range(3):
        run(h, f"t{number}", 5.0)
        assert isinstance(h.placements[f"t{number}"][0].forecast, Unknown)
    run(h, "t3", 5.0)
    forecast = h.placements["t3"][0].forecast
    assert isinstance(forecast, Forecast)
    assert forecast.seconds == 5.0


def test_a_forecast_moves_from_what_was_declared_to_what_is_seen() -> None:
    h = Harness().node("a").function(seconds={"linear": 10.0})
    run(h, "first", 20.0)
    assert seconds_of(h, "first") == 10.0
    for number in range(100):
        run(h, f"t{number}", 20.0)
    run(h, "last", 20.0)
    last = seconds_of(h, "last")
    assert last is not None
    assert 18.0 < last < 20.0


def test_what_is_seen_on_one_machine_is_carried_over_to_another_by_their_speeds() -> None:
    h = Harness().node("a", LINEAR)
    for number in range(3):
        run(h, f"t{number}", 6.0)
    h.node("b", ARM)
    h.submit("x", needs=requirements(1.0, arch=("aarch64",)))
    assert seconds_of(h, "x") == 12.0


def test_a_run_time_declared_for_a_machine_that_is_defined_later_is_used_from_then_on() -> None:
    h = Harness().node("a").function(seconds={"slow": 40.0})
    h.submit("before")
    assert isinstance(h.placements["before"][0].forecast, Unknown)
    h.machine(machine("slow", speed=0.25))
    h.submit("after")
    assert seconds_of(h, "after") == 10.0


def test_rankings_follow_what_was_learned() -> None:
    h = Harness(Fastest()).node("a", LINEAR).node("b", machine("other")).function(seconds={"linear": 5.0, "other": 8.0})
    h.submit("first")
    assert h.where("first") == "a"
    h.finish("first", 5.0)
    for number in range(30):
        h.submit(f"t{number}")
        h.finish(f"t{number}", 50.0 if h.where(f"t{number}") == "a" else 8.0)
    h.submit("last")
    assert h.where("last") == "b"
    h.replay()


def test_a_function_whose_builds_change_is_learned_anew() -> None:
    h = Harness().node("a").function(seconds={"linear": 10.0})
    for number in range(50):
        run(h, f"t{number}", 100.0)
    h.function(seconds={"linear": 2.0})
    h.submit("new")
    assert seconds_of(h, "new") == 2.0


def test_a_function_defined_again_as_it_was_keeps_what_was_learned() -> None:
    h = Harness().node("a").function(seconds={"linear": 10.0})
    for number in range(50):
        run(h, f"t{number}", 100.0)
    h.function(seconds={"linear": 10.0})
    h.submit("new")
    assert seconds_of(h, "new") != 10.0
    assert len(h.engine.ledger.shapes) == 1


def test_tasks_that_are_here_keep_the_function_as_it_was() -> None:
    h = Harness().function(needs=requirements(1.0))
    h.submit("old")
    h.function(needs=requirements(3.0))
    h.submit("new")
    h.node("a")
    assert h.record("old").shape.cpu == 1000
    assert h.record("new").shape.cpu == 3000


def test_a_run_time_that_makes_no_sense_is_refused() -> None:
    h = Harness().node("a")
    h.submit("t")
    for seconds in (float("nan"), -1.0, float("inf")):
        assert h.refused(ev.TaskFinished(h.time, "t", 1, seconds)).field == "seconds"


def test_a_run_of_no_time_at_all_is_learned_without_harm() -> None:
    h = Harness(Fastest()).node("a")
    for number in range(10):
        run(h, f"t{number}", 0.0)


# -- readings --------------------------------------------------------------------------------------------------------


def test_a_functions_usual_draw_is_half_new_half_old() -> None:
    h = Harness().node("a")
    h.submit("t")
    h.reading("a", 30.0, {"t": 8.0})
    h.reading("a", 30.0, {"t": 4.0})
    assert h.engine.ledger.readings.usual("f") == 6.0
    assert h.engine.ledger.readings.expected("a") == 30.0


def test_readings_that_make_no_sense_are_refused() -> None:
    h = Harness().node("a")
    assert h.refused(ev.ReadingArrived(0.0, "b", 1.0)).field == "node"
    assert h.refused(ev.ReadingArrived(0.0, "a", float("nan"))).field == "watts"
    assert h.refused(ev.ReadingArrived(0.0, "a", -1.0)).field == "watts"
    assert h.refused(ev.ReadingArrived(0.0, "a", 1.0, {"t": float("inf")})).field == "tasks"
