import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import ProcTree, machine

from wattloom.attribution.idle import IDLE_SHARE, IdleDraw
from wattloom.energy.forecast import Provenance
from wattloom.metering.estimate import Estimate
from wattloom.metering.protocol import Quantity


def meter(quantity: Quantity = "package", provenance: Provenance = "measured") -> Scripted:
    made = Scripted()
    made.quantity, made.provenance = quantity, provenance
    return made


def test_idle_watts_that_were_measured_here_are_taken_if_they_are_of_the_meters_quantity() -> None:
    idle = IdleDraw(machine("package", provenance="measured"), meter())
    idle.learn(3.0, 0.0)
    assert idle.watts == 10.0


@pytest.mark.parametrize("curve", ["modelled", "estimated"])
@pytest.mark.parametrize("kind", ["measured", "modelled", "estimated"])
def test_what_a_meter_shows_goes_before_a_curve_of_other_machines(curve: Provenance, kind: Provenance) -> None:
    idle = IdleDraw(machine("package", provenance=curve), meter(provenance=kind))
    idle.learn(60.0, 0.0)
    assert idle.watts == pytest.approx(60.0)
    assert idle.known is not None


def test_a_curve_of_other_machines_tells_how_much_of_a_busy_machine_is_idle() -> None:
    idle = IdleDraw(machine("wall"), meter("wall"))
    idle.learn(300.0, 1.0)  # ten times what the curve says of one busy core
    assert idle.watts == pytest.approx(100.0)


@pytest.mark.parametrize("curve", ["measured", "modelled", "estimated"])
def test_the_estimate_has_the_idle_watts_of_the_curve_it_works_with(
    curve: Provenance, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = machine("wall", provenance=curve)
    idle = IdleDraw(here, Estimate(here, proc=ProcTree(tmp_path_factory.mktemp("proc")).root))
    idle.learn(17.0, 0.0)
    assert idle.watts == 10.0


def test_watts_at_the_plug_are_never_taken_for_those_of_the_package() -> None:
    idle = IdleDraw(machine("wall", provenance="measured"), meter())
    idle.learn(3.0, 0.0)
    assert idle.watts == pytest.approx(3.0)
    assert idle.known is None


def test_where_only_busy_times_were_seen_a_usual_share_is_idle() -> None:
    idle = IdleDraw(machine(watts=()), meter())
    idle.learn(100.0, 2.0)
    assert idle.watts == pytest.approx(100.0 * IDLE_SHARE)


def test_a_less_busy_time_tells_more_and_a_busier_one_nothing() -> None:
    idle = IdleDraw(machine(watts=()), meter())
    idle.learn(100.0, 2.0)
    idle.learn(25.0, 0.0)
    assert idle.watts == pytest.approx(25.0)
    idle.learn(100.0, 2.0)
    assert idle.watts == pytest.approx(25.0)


def test_idle_is_never_more_than_the_least_that_was_drawn() -> None:
    idle = IdleDraw(machine(watts=()), meter())
    for watts in (25.0, 20.0, 21.0, 30.0):
        idle.learn(watts, 0.0)
    assert idle.watts == 20.0
