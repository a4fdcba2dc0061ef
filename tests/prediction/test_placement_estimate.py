"""What one task would do at a site."""

from wattloom.cluster.fit import Terms
from wattloom.cluster.node_class import Mode, NodeClass
from wattloom.cluster.node_numbering import NodeNumbering
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Forecast, Unknown
from wattloom.machines.machine import Machine
from wattloom.machines.profile import MachineProfile
from wattloom.prediction.placement_estimate import PlacementEstimate, PlacementEstimates
from wattloom.prediction.readings import Readings
from wattloom.prediction.table import Table
from wattloom.testing.builders import LINEAR, SLEEPER, SMT, WITHOUT_CURVE, function, node, requirements
from wattloom.workload.shape import Shape


def site(profile: MachineProfile, demand: int = 0, mode: Mode = Mode.AWAKE, serial: int = 1) -> Site:
    there = Machine(profile)
    cls = NodeClass(serial, NodeClass.key_of(node("a", profile), there), there)
    return Site(serial, cls, demand, demand, 0, (), mode, NodeNumbering(lambda: None))


def look(place: Site, seconds: dict[str, float] | None = None, cpu: float = 1.0) -> PlacementEstimate:
    estimates = PlacementEstimates(Table(), Terms())
    estimate = estimates.at(Shape(0, function(seconds=seconds or {}), requirements(cpu), 0.5, False), place)
    assert isinstance(estimate, PlacementEstimate)
    return estimate


def test_joules_are_additional_watts_times_seconds_among_the_neighbours() -> None:
    estimate = look(site(SMT, 7_000), {"smt": 10.0})
    assert estimate.seconds == 15.0
    assert estimate.watts == 2.5
    assert estimate.joules == 37.5
    assert isinstance(estimate.forecast, Forecast)
    assert estimate.forecast.joules == estimate.joules


def test_waking_a_node_adds_what_it_draws_then_to_the_clusters_watts_but_not_to_the_tasks() -> None:
    estimate = look(site(SLEEPER, mode=Mode.ASLEEP), {"sleeper": 10.0})
    assert estimate.watts == 10.0
    waking = SLEEPER.wake_j / SLEEPER.wake_s
    assert estimate.added_microwatts == round((max(30.0, waking) - (SLEEPER.sleep_w or 0.0)) * 1e6)


def test_each_missing_figure_is_told_apart() -> None:
    both = look(site(WITHOUT_CURVE))
    assert (both.unknown, both.knows_power, both.alone) == (Reason.RUNTIME_UNKNOWN, False, 0.0)
    power = look(site(WITHOUT_CURVE), {"without-curve": 3.0})
    assert (power.unknown, power.knows_power, power.alone) == (Reason.POWER_UNKNOWN, False, 3.0)
    time = look(site(LINEAR))
    assert (time.unknown, time.knows_power, time.alone) == (Reason.RUNTIME_UNKNOWN, True, 0.0)
    assert isinstance(time.forecast, Unknown)


def test_a_node_kept_for_another_has_no_room() -> None:
    estimates = PlacementEstimates(Table(), Terms())
    shape = Shape(0, function(), requirements(1.0), 0.5, False)
    assert estimates.at(shape, site(LINEAR, mode=Mode.HELD)) == Reason.HELD


def test_what_is_forgotten_is_worked_out_again() -> None:
    table = Table()
    estimates = PlacementEstimates(table, Terms())
    f = function()
    shape, place = Shape(0, f, requirements(1.0), 0.5, False), site(LINEAR)
    first = estimates.at(shape, place)
    assert estimates.at(shape, place) is first
    estimates.invalidate(shape)
    assert estimates.at(shape, place) is not first


# -- readings --------------------------------------------------------------------------------------------------------


def test_what_was_placed_since_the_last_reading_is_added_until_a_meter_sees_it() -> None:
    readings = Readings()
    assert readings.expected("a") is None
    readings.arrived("a", 50.0, {})
    readings.averaged("f", 8.0)
    readings.placed("a", "t", "f", 3.0, 0.25)
    assert readings.expected("a") == 58.0
    readings.arrived("a", 57.0, {"t": 7.0})
    assert readings.expected("a") == 57.0
    readings.placed("a", "v", "f", None, 0.25)
    readings.gone("a", "v")
    assert readings.expected("a") == 57.0
    readings.node_lost("a")
    assert readings.expected("a") is None
    assert readings.usual("f") == 8.0


def test_a_function_that_was_never_measured_counts_by_the_curve_else_by_the_mean_of_all_others() -> None:
    readings = Readings()
    readings.arrived("a", 50.0, {})
    readings.placed("a", "t", "new", None, 0.25)
    assert readings.expected("a") == 62.5  # nothing at all is known: a quarter of the cores, a quarter of the draw
    readings.arrived("a", 50.0, {"t": 9.0})
    readings.averaged("f", 8.0)
    readings.averaged("g", 4.0)
    readings.placed("a", "u", "newer", None, 0.25)
    assert readings.expected("a") == 56.0
    readings.placed("a", "v", "newest", 3.0, 0.25)
    assert readings.expected("a") == 59.0


def test_what_follows_on_a_lease_is_measured_as_what_it_follows() -> None:
    readings = Readings()
    readings.arrived("a", 50.0, {})
    readings.placed("a", "t", "f", 3.0, 0.25)
    readings.handed_on("a", "t", "u")
    assert readings.expected("a") == 53.0
    readings.arrived("a", 53.0, {"u": 3.0})
    readings.handed_on("a", "u", "v")
    assert readings.expected("a") == 53.0
