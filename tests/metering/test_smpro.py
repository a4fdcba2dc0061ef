from pathlib import Path

import pytest
from tests.metering.rigs import SmproRig
from tests.metering.trees import HwmonTree

from wattloom.energy.forecast import Unknown
from wattloom.metering.protocol import Sample
from wattloom.metering.smpro import Smpro


def good(answer: Sample | Unknown) -> Sample:
    assert isinstance(answer, Sample), answer
    return answer


def test_all_five_rails_are_the_package_with_its_memory(tmp_path: Path) -> None:
    tree = SmproRig(tmp_path).tree
    meter = Smpro(tree.root)
    good(meter.read(0.0))
    assert good(meter.read(2.0)).joules == pytest.approx(200.0)
    assert {zone.name: zone.joules for zone in meter.zones()} == pytest.approx(
        {"CORE VRD": 120.0, "SoC": 40.0, "DIMM VRD1": 16.0, "DIMM VRD2": 14.0, "RCA VRD": 10.0}
    )


def test_two_sockets_are_summed(tmp_path: Path) -> None:
    root = SmproRig(tmp_path).tree.root
    second = HwmonTree(root, "smpro_hwmon", "hwmon4")
    for number in range(1, 6):
        second.input(f"power{number}", f"power{number} {SmproRig.RAILS[number - 1]}", 10_000_000)
    meter = Smpro(root)
    good(meter.read(0.0))
    assert good(meter.read(1.0)).joules == pytest.approx(150.0)
    assert len(meter.zones()) == 10
    assert meter.zones()[0].name == "socket 0 CORE VRD"


def test_power_that_changed_is_taken_to_have_changed_evenly_and_says_what_that_leaves_open(tmp_path: Path) -> None:
    tree = SmproRig(tmp_path).tree
    meter = Smpro(tree.root)
    steady = good(meter.read(0.0)).resolution_j
    tree.set("power1", 160_000_000)
    after = good(meter.read(2.0))
    assert after.joules == pytest.approx(300.0)
    assert after.resolution_j > 2.0 * 100.0 / 12**0.5 > 10 * steady


def test_a_socket_that_shows_fewer_rails_is_not_summed(tmp_path: Path) -> None:
    tree = SmproRig(tmp_path).tree
    for name in ("power5_input", "power5_label"):
        (tree.folder / name).unlink()
    meter = Smpro(tree.root)
    assert "shows 4 rails, not 5" in (meter.available() or "")
    assert isinstance(meter.read(0.0), Unknown)


def test_a_rail_below_nothing_breaks_the_count_off(tmp_path: Path) -> None:
    tree = SmproRig(tmp_path).tree
    meter = Smpro(tree.root)
    before = good(meter.read(0.0))
    tree.set("power2", -1)
    answer = meter.read(1.0)
    assert isinstance(answer, Unknown)
    assert "SoC shows" in answer.reason
    tree.set("power2", 20_000_000)
    meter.read(2.0)
    after = good(meter.read(2.0))
    assert after.epoch > before.epoch
    assert after.joules == before.joules


def test_without_the_hardware_it_says_which_module(tmp_path: Path) -> None:
    assert "sudo modprobe smpro_hwmon" in (Smpro(tmp_path / "hwmon").available() or "")
