import os
import tempfile
from pathlib import Path

import pytest
from tests.metering.trees import RANGE_UJ, RaplTree

from wattloom.energy.forecast import Unknown
from wattloom.metering.powercap import Powercap, host_zones
from wattloom.metering.protocol import Sample

NOBODY = 65534


@pytest.fixture
def tree(tmp_path: Path) -> RaplTree:
    return RaplTree(tmp_path / "powercap")


def zones(tree: RaplTree) -> list[str]:
    return [zone.name for zone in host_zones(tree.root)]


def joules(meter: Powercap, now: float) -> float:
    sample = meter.read(now)
    assert isinstance(sample, Sample), sample
    return sample.joules


def server(tree: RaplTree) -> None:
    for package in (0, 1):
        tree.zone(f"intel-rapl:{package}", f"package-{package}")
        tree.zone(f"intel-rapl:{package}:0", "core")
        tree.zone(f"intel-rapl:{package}:1", "uncore")
        tree.zone(f"intel-rapl:{package}:2", "dram")


def test_a_server_is_its_packages_and_its_memory_and_no_parts_of_them(tree: RaplTree) -> None:
    server(tree)
    assert zones(tree) == ["intel-rapl:0", "intel-rapl:1", "intel-rapl:0:2", "intel-rapl:1:2"]


def test_where_there_is_psys_it_is_all(tree: RaplTree) -> None:
    server(tree)
    tree.zone("intel-rapl:2", "psys")
    assert zones(tree) == ["intel-rapl:2"]


def test_the_mmio_duplicates_are_ignored(tree: RaplTree) -> None:
    tree.zone("intel-rapl:0", "package-0")
    tree.zone("intel-rapl-mmio:0", "package-0")
    (tree.root / "intel-rapl").mkdir()
    assert zones(tree) == ["intel-rapl:0"]


def test_zones_that_show_both_beside_and_inside_their_parents_count_once(tree: RaplTree) -> None:
    tree.zone("intel-rapl:0", "package-0")
    tree.zone("intel-rapl:0/intel-rapl:0:0", "dram")
    assert zones(tree) == ["intel-rapl:0", "intel-rapl:0:0"]
    (tree.root / "intel-rapl:0:0").symlink_to(tree.root / "intel-rapl:0" / "intel-rapl:0:0")
    assert zones(tree) == ["intel-rapl:0", "intel-rapl:0:0"]


def test_joules_are_the_sum_over_the_zones(tree: RaplTree) -> None:
    server(tree)
    meter = Powercap(tree.root)
    assert joules(meter, 0.0) == 0.0
    for zone in ("intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:2", "intel-rapl:1"):
        tree.add(zone, 2_000_000)
    assert joules(meter, 1.0) == pytest.approx(6.0)


def test_a_wrap_in_one_zone_is_undone(tree: RaplTree) -> None:
    tree.zone("intel-rapl:0", "package-0", RANGE_UJ - 500_000)
    tree.zone("intel-rapl:1", "package-1", 0)
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    tree.set("intel-rapl:0", 1_500_000)
    tree.set("intel-rapl:1", 1_000_000)
    assert joules(meter, 1.0) == pytest.approx(3.0)


def test_a_counter_without_a_range_that_falls_is_unknown(tree: RaplTree) -> None:
    tree.zone("intel-rapl:0", "package-0", 5_000_000, most=None)
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    tree.set("intel-rapl:0", 4_000_000)
    answer = meter.read(1.0)
    assert isinstance(answer, Unknown)
    assert "backwards" in answer.reason


def test_a_counter_that_was_not_read_for_too_long_may_have_wrapped_twice(tree: RaplTree) -> None:
    tree.zone("intel-rapl:0", "package-0")
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    answer = meter.read(3600.0)
    assert isinstance(answer, Unknown)
    assert "more than once" in answer.reason
    again = meter.read(3601.0)
    assert isinstance(again, Sample)
    assert again.epoch == 1


def test_a_failed_read_of_one_zone_loses_nothing_of_the_others(tree: RaplTree) -> None:
    server(tree)
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    tree.add("intel-rapl:0", 1_000_000)
    (tree.root / "intel-rapl:1" / "energy_uj").write_text("")
    assert isinstance(meter.read(1.0), Unknown)
    tree.set("intel-rapl:1", 3_000_000)
    assert joules(meter, 2.0) == pytest.approx(3.0)


def test_a_machine_without_counters_says_what_is_missing(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nothing"):
        meter = Powercap(root)
        assert "virtual machine" in (meter.available() or "")
        assert isinstance(meter.read(0.0), Unknown)


def test_counters_that_turn_up_later_are_found(tree: RaplTree) -> None:
    meter = Powercap(tree.root)
    assert isinstance(meter.read(0.0), Unknown)
    tree.zone("intel-rapl:0", "package-0")
    assert joules(meter, 1.0) == 0.0


def test_counters_only_root_may_read_are_named_with_the_way_to_allow_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        tree = RaplTree(Path(folder) / "powercap")
        energy = tree.zone("intel-rapl:0", "package-0") / "energy_uj"
        energy.chmod(0o000)
        meter, was = Powercap(tree.root), os.geteuid()
        if was == 0:  # root may read everything
            os.seteuid(NOBODY)
        try:
            problem, answer = meter.available(), meter.read(0.0)
        finally:
            os.seteuid(was)
    assert problem is not None
    assert "root only" in problem
    assert f"chmod a+r {tree.root}/intel-rapl:*/energy_uj" in problem
    assert isinstance(answer, Unknown)
