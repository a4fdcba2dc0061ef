from pathlib import Path

import pytest
from tests.metering.trees import SupplyTree

from wattloom.energy.forecast import Unknown
from wattloom.metering.battery import Battery
from wattloom.metering.protocol import Sample


@pytest.fixture
def tree(tmp_path: Path) -> SupplyTree:
    made = SupplyTree(tmp_path / "power_supply")
    made.charger(0)
    return made


def good(answer: Sample | Unknown) -> Sample:
    assert isinstance(answer, Sample), answer
    return answer


def watts(tree: SupplyTree) -> float:
    meter = Battery(tree.root)
    first = good(meter.read(0.0))
    return (good(meter.read(5.0)).joules - first.joules) / 5.0


def test_power_is_taken_as_it_is_shown(tree: SupplyTree) -> None:
    tree.battery(power_now=9_500_000)
    assert watts(tree) == pytest.approx(9.5)


def test_without_power_it_is_current_times_voltage_whatever_its_sign(tree: SupplyTree) -> None:
    tree.battery(current_now=-1_250_000, voltage_now=12_000_000)
    assert watts(tree) == pytest.approx(15.0)


def test_without_either_what_is_left_tells(tree: SupplyTree) -> None:
    tree.battery(energy_now=40_000_000)
    meter = Battery(tree.root)
    good(meter.read(0.0))
    tree.set("BAT0", energy_now=39_900_000)
    after = good(meter.read(60.0))
    assert after.joules == pytest.approx(360.0)
    assert after.resolution_j >= 36.0


def test_charge_in_ampere_hours_counts_at_the_batterys_voltage(tree: SupplyTree) -> None:
    tree.battery(charge_now=4_000_000, voltage_min_design=10_000_000)
    meter = Battery(tree.root)
    good(meter.read(0.0))
    tree.set("BAT0", charge_now=3_990_000)
    assert good(meter.read(60.0)).joules == pytest.approx(0.01 * 10.0 * 3600.0)


def test_two_batteries_are_summed_as_far_as_they_are_discharged(tree: SupplyTree) -> None:
    tree.battery("BAT0", power_now=6_000_000)
    tree.battery("BAT1", power_now=5_000_000)
    assert watts(tree) == pytest.approx(11.0)
    tree.set("BAT0", status="Not charging", power_now=0)
    assert watts(tree) == pytest.approx(5.0)


def test_the_batteries_of_mice_are_not_the_machines(tree: SupplyTree) -> None:
    tree.battery("hidpp_battery_0", scope="Device", power_now=1_000_000)
    assert "no battery" in (Battery(tree.root).available() or "")


@pytest.mark.parametrize(
    ("charger", "status", "says"),
    [
        (1, "Charging", "the charger AC is plugged in"),
        (1, "Full", "unplug it"),
        (0, "Full", "no battery is being discharged (BAT0 is Full)"),
        (0, "Unknown", "no battery is being discharged"),
    ],
)
def test_on_the_charger_it_does_not_work_and_says_why(tree: SupplyTree, charger: int, status: str, says: str) -> None:
    tree.battery(power_now=9_000_000, status=status)
    tree.charger(charger)
    meter = Battery(tree.root)
    assert says in (meter.available() or "")
    answer = meter.read(0.0)
    assert isinstance(answer, Unknown)
    assert says in answer.reason


def test_a_phone_charger_counts_as_one(tree: SupplyTree) -> None:
    tree.battery(power_now=9_000_000)
    tree.set("ucsi-source-psy-1", type="USB", online=1)
    assert "ucsi-source-psy-1 is plugged in" in (Battery(tree.root).available() or "")


def test_what_was_drawn_while_the_charger_was_in_is_never_made_up(tree: SupplyTree) -> None:
    tree.battery(power_now=10_000_000)
    meter = Battery(tree.root)
    good(meter.read(0.0))
    before = good(meter.read(5.0))
    tree.charger(1)
    assert isinstance(meter.read(10.0), Unknown)
    assert isinstance(meter.read(15.0), Unknown)
    tree.charger(0)
    assert isinstance(meter.read(20.0), Unknown)
    anew = good(meter.read(20.0))
    assert anew.epoch > before.epoch
    assert anew.joules == before.joules
    assert good(meter.read(25.0)).joules - anew.joules == pytest.approx(50.0)


def test_no_power_from_a_battery_that_is_being_discharged_is_unknown(tree: SupplyTree) -> None:
    tree.battery(power_now=0)
    answer = Battery(tree.root).read(0.0)
    assert isinstance(answer, Unknown)
    assert "shows 0 W, which cannot be" in answer.reason
