"""A predictor is handed to the engine and named in the log; the kit for predictors catches those that break a rule."""

from math import nan
from pathlib import Path

import msgspec
import pytest

import wattloom
from wattloom.energy.forecast import RunTime, Unknown
from wattloom.energy.used import Used
from wattloom.errors import PredictorError
from wattloom.history.log import Log
from wattloom.machines.machine import Machine
from wattloom.policies.least_joules import LeastJoules
from wattloom.prediction.loading import available_predictors, load_predictor
from wattloom.prediction.protocol import Key, Predictor
from wattloom.prediction.table import Table
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import Place
from wattloom.testing import builders
from wattloom.testing import predictor_conformance as kit
from wattloom.testing.builders import CONCAVE, LINEAR, function
from wattloom.units import Seconds
from wattloom.workload.function import Function, Variant
from wattloom.workload.task import Task

WORSE = """
from wattloom.prediction.table import Table


class Slower(Table):
    name = "slower"
    summary = "says that everything takes so many times as long on machines of one kind"

    def __init__(self, times: float = 100.0) -> None:
        super().__init__()
        self.times = times

    def expect(self, function, variant, machine, size=0):
        run = super().expect(function, variant, machine, size)
        if not hasattr(run, "seconds") or machine.profile.arch != "x86_64":
            return run
        return type(run)(run.seconds * self.times, run.spread, run.provenance)
"""


@pytest.mark.parametrize("check", kit.CHECKS, ids=kit.check_name)
def test_the_usual_predictor_does_what_predictors_do(check: kit.Check) -> None:
    for name, predictor in available_predictors().items():
        assert name
        check(predictor)


class Rogue(Table):
    name = "rogue"
    summary = "breaks a rule"


class Guesses(Rogue):
    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        said = super().expect(function, variant, machine, size)
        return RunTime(Seconds(1.0)) if isinstance(said, Unknown) else said


class Negative(Rogue):
    def intensity(self, function: str, machine: str) -> float:
        return nan


class Tires(Rogue):
    asked = 0

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        Tires.asked += 1
        return RunTime(Seconds(float(Tires.asked))) if function.name != "never-run" else Unknown("never ran")


class Silent(Rogue):
    def learn(self, function: Function, variant: Variant, machine: Machine, seconds: Seconds, size: int) -> bool:
        super().learn(function, variant, machine, seconds, size)
        return False


class Keeps(Rogue):
    def forget(self, function: str) -> None:
        return None


class Amnesiac(Rogue):
    def recall(self, function: Function, variant: str, machine: Machine, used: Used) -> bool:
        return False


class Nameless(Rogue):
    summary = ""


class Moody(Rogue):
    made = 0

    def __init__(self) -> None:
        super().__init__()
        Moody.made += 1
        self.mood = float(Moody.made)

    def intensity(self, function: str, machine: str) -> float:
        return self.mood


class Secretive(Rogue):
    class Settings(msgspec.Struct, frozen=True):
        url: str = ""
        token: str = ""

    def __init__(self, settings: Settings) -> None:
        super().__init__()


CAUGHT: list[tuple[type[Predictor], kit.Check]] = [
    (Nameless, kit.it_describes_itself),
    (Guesses, kit.it_guesses_nothing),
    (Negative, kit.it_gives_numbers_or_says_that_it_does_not_know),
    (Tires, kit.it_is_changed_by_no_question),
    (Moody, kit.it_comes_to_the_same_by_the_same_history),
    (Silent, kit.it_says_when_forecasts_change),
    (Keeps, kit.it_forgets_what_it_is_told_to_forget),
    (Amnesiac, kit.it_can_be_told_by_another_what_was_measured),
    (Secretive, kit.it_can_be_set),
]


@pytest.mark.parametrize(("rogue", "check"), CAUGHT, ids=lambda value: getattr(value, "__name__", ""))
def test_the_kit_catches_who_breaks_a_rule(rogue: type[Predictor], check: kit.Check) -> None:
    with pytest.raises(AssertionError):
        check(rogue)


def test_every_check_has_caught_somebody() -> None:
    assert {check for _, check in CAUGHT} == set(kit.CHECKS)


# -- the engine --------------------------------------------------------------------------------------------------------


def placed_on(predictor: Predictor | None) -> Place:
    """Where the one task goes."""
    engine = Engine(LeastJoules(), predictor=predictor)
    for profile in (LINEAR, CONCAVE):
        engine.handle(ev.MachineDefined(0.0, profile))
        engine.handle(ev.NodeJoined(0.0, builders.node(profile.name, profile)))
    engine.handle(ev.FunctionDefined(0.0, function(seconds={LINEAR.name: 10.0, CONCAVE.name: 10.0})))
    (place,) = engine.handle(ev.TaskSubmitted(0.0, Task("t", "f")))
    assert isinstance(place, Place)
    return place


class Contrary(Predictor):
    """Only what the engine has to have."""

    name = "contrary"
    summary = "for tests: everything takes a second on concave machines, and an hour elsewhere"

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        return RunTime(Seconds(1.0 if machine.name == CONCAVE.name else 3600.0))


def test_the_engine_goes_by_the_predictor_that_it_is_given() -> None:
    assert placed_on(None).node == placed_on(Table()).node == LINEAR.name
    assert placed_on(Contrary()).node == CONCAVE.name


class Fails(Table):
    name = "fails"
    summary = "for tests: fails at everything"

    def expect(self, function: Function, variant: Variant, machine: Machine, size: int = 0) -> RunTime | Unknown:
        raise RuntimeError("not today")

    def know_machine(self, machine: Machine) -> None:
        raise RuntimeError("not today")

    def learn(self, function: Function, variant: Variant, machine: Machine, seconds: Seconds, size: int) -> bool:
        raise RuntimeError("not today")

    def intensity(self, function: str, machine: str) -> float:
        raise RuntimeError("not today")

    def measured(self) -> dict[Key, Used]:
        raise RuntimeError("not today")


def test_what_a_failing_predictor_does_not_say_is_unknown_and_work_goes_on() -> None:
    assert placed_on(Fails()).cost is None
    result = wattloom.simulate("heats-bursts", "least-joules", predictor=Fails())
    assert result.tasks.finished == result.tasks.submitted
    assert any("RuntimeError: not today" in warning for warning in result.warnings)


# -- logs --------------------------------------------------------------------------------------------------------------


def test_a_log_names_its_predictor_and_replays_with_it(tmp_path: Path) -> None:
    (tmp_path / "slower.py").write_text(WORSE)
    spec, log = f"{tmp_path / 'slower.py'}:Slower:times=50", tmp_path / "run.log"
    result = wattloom.simulate("heats-bursts", "least-joules", log=log, predictor=spec)
    assert result.digest != wattloom.simulate("heats-bursts", "least-joules").digest
    assert Log(log).header.predictor == spec
    assert wattloom.replay(log, trust_policy=True).same_decisions
    with pytest.raises(PredictorError, match="--trust-policy"):
        wattloom.replay(log)
    lines = log.read_bytes().split(b"\n", 1)
    header = msgspec.json.decode(lines[0])
    del header["predictor"]
    log.write_bytes(msgspec.json.encode(header) + b"\n" + lines[1])
    assert not wattloom.replay(log).same_decisions


def test_the_usual_predictor_is_not_written_so_that_earlier_readers_are_not_stopped(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    wattloom.simulate("heats-bursts", "fifo", log=log)
    assert b"predictor" not in log.read_bytes()
    assert Log(log).header.predictor == "table"


def test_a_predictor_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(PredictorError, match="did you mean table"):
        load_predictor("tabel")
    with pytest.raises(PredictorError, match="has none"):
        load_predictor("table:x=1")
