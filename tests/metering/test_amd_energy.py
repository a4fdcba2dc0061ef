import tempfile
from pathlib import Path

import pytest
from tests.metering.rigs import as_nobody
from tests.metering.trees import HwmonTree

from wattloom.energy.forecast import Unknown
from wattloom.metering.amd_energy import AmdEnergy
from wattloom.metering.protocol import Sample


def tree_of(root: Path, sockets: int = 2, name: str = "amd_energy") -> HwmonTree:
    tree = HwmonTree(root, name)
    for core in range(4):
        tree.input(f"energy{core + 1}", f"Ecore{core:03d}", 1_000_000)
    for socket in range(sockets):
        tree.input(f"energy{socket + 5}", f"Esocket{socket}", 9_000_000)
    return tree


def rise(tree: HwmonTree) -> float:
    """Of one second: every core by 1 J, every socket by 50 J."""
    meter = AmdEnergy(tree.root)
    first = meter.read(0.0)
    for number in range(1, 7):
        tree.set(f"energy{number}", tree.get(f"energy{number}") + (1_000_000 if number < 5 else 50_000_000))
    second = meter.read(1.0)
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    return second.joules - first.joules


def test_sockets_are_summed_and_never_their_cores(tmp_path: Path) -> None:
    assert rise(tree_of(tmp_path)) == pytest.approx(100.0)


def test_its_fork_is_read_the_same_way(tmp_path: Path) -> None:
    assert rise(tree_of(tmp_path, name="zenergy")) == pytest.approx(100.0)


def test_each_socket_can_be_seen(tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    meter = AmdEnergy(tree.root)
    meter.read(0.0)
    tree.set("energy5", 12_000_000)
    tree.set("energy6", 10_000_000)
    meter.read(1.0)
    assert {zone.name: zone.joules for zone in meter.zones()} == pytest.approx({"Esocket0": 3.0, "Esocket1": 1.0})


def test_other_hardware_monitors_are_not_taken_for_it(tmp_path: Path) -> None:
    HwmonTree(tmp_path, "coretemp").input("energy1", "Esocket0", 5)
    meter = AmdEnergy(tmp_path)
    problem = meter.available()
    assert problem is not None
    assert "sudo modprobe amd_energy" in problem
    assert "powercap reads the same counters" in problem
    assert isinstance(meter.read(0.0), Unknown)


def test_counters_that_only_root_may_read_are_named_with_the_ways_to_allow_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        tree = tree_of(Path(folder) / "hwmon")
        for number in (5, 6):
            (tree.folder / f"energy{number}_input").chmod(0o000)
        with as_nobody():
            meter = AmdEnergy(tree.root)
            problem, answer = meter.available() or "", meter.read(0.0)
    assert "energy5_input may not be read by this user" in problem
    assert 'SUBSYSTEM=="hwmon", ACTION=="add", ATTR{name}=="amd_energy", RUN+=' in problem
    assert isinstance(answer, Unknown)


def test_a_driver_that_was_loaded_again_begins_anew(tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    meter = AmdEnergy(tree.root)
    before = meter.read(0.0)
    tree.set("energy5", 5)
    tree.set("energy6", 5)
    answer, after = meter.read(1.0), meter.read(1.0)
    assert isinstance(before, Sample)
    assert isinstance(answer, Unknown)
    assert "went backwards" in answer.reason
    assert isinstance(after, Sample)
    assert after.epoch > before.epoch
