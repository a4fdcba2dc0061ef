import tempfile
from pathlib import Path

import pytest
from tests.metering.rigs import as_nobody
from tests.metering.trees import RANGE_UJ, RaplTree

from wattloom.energy.forecast import Unknown
from wattloom.metering.powercap import Powercap, host_zones
from wattloom.metering.protocol import Sample


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
    tree.add("intel-rapl:0", 5_000_000)
    answer = meter.read(3600.0)
    assert isinstance(answer, Unknown)
    assert "more than once" in answer.reason
    tree.add("intel-rapl:0", 5_000_000)
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


def test_counters_only_root_may_read_are_named_with_the_ways_to_allow_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        tree = RaplTree(Path(folder) / "powercap")
        (tree.zone("intel-rapl:0", "package-0") / "energy_uj").chmod(0o000)
        with as_nobody():
            meter = Powercap(tree.root)
            problem, answer = meter.available(), meter.read(0.0)
    assert problem is not None
    what, *how = problem.splitlines()
    assert what.endswith("intel-rapl:0/energy_uj may not be read by this user")
    assert f"until the next boot: sudo chmod a+r {tree.root}/intel-rapl:*/energy_uj" in how
    assert any('SUBSYSTEM=="powercap", ACTION=="add", KERNEL=="intel-rapl:*", RUN+=' in line for line in how)
    assert any("usermod -aG" in line for line in how)
    assert any("setcap cap_dac_read_search+ep" in line for line in how)
    assert isinstance(answer, Unknown)
    assert "may not be read" in answer.reason


def test_the_zones_of_each_die_are_summed_where_they_are_apart(tree: RaplTree, tmp_path: Path) -> None:
    dies(tree)
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nvendor_id\t: GenuineIntel\n")
    assert len(host_zones(tree.root, tmp_path / "cpuinfo")) == 4


def test_where_every_die_shows_its_whole_package_one_of_them_is_counted(tree: RaplTree, tmp_path: Path) -> None:
    dies(tree)
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\n")
    found = [zone.name for zone in host_zones(tree.root, tmp_path / "cpuinfo")]
    assert found == ["intel-rapl:0", "intel-rapl:2"]
    meter = Powercap(tree.root, cpuinfo=tmp_path / "cpuinfo")
    joules(meter, 0.0)
    for zone in range(4):
        tree.add(f"intel-rapl:{zone}", 7_000_000)
    assert joules(meter, 1.0) == pytest.approx(14.0)


def dies(tree: RaplTree) -> None:
    for number in range(4):
        tree.zone(f"intel-rapl:{number}", f"package-{number // 2}-die-{number % 2}")


def test_every_zone_can_be_seen_and_which_of_them_are_summed(tree: RaplTree) -> None:
    server(tree)
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    for zone, watts in {"intel-rapl:0": 9, "intel-rapl:0:0": 6, "intel-rapl:0:2": 2, "intel-rapl:1": 3}.items():
        tree.add(zone, watts * 1_000_000)
    assert joules(meter, 1.0) == pytest.approx(14.0)
    seen = {zone.name: (round(zone.joules, 6), zone.inside, zone.counted) for zone in meter.zones()}
    assert seen["package-0"] == (9.0, "", True)
    assert seen["package-0/core"] == (6.0, "package-0", False)
    assert seen["package-0/dram"] == (2.0, "package-0", True)
    assert seen["package-1"] == (3.0, "", True)
    assert len(seen) == 8
    counted = sum(zone.joules for zone in meter.zones() if zone.counted)
    assert counted == pytest.approx(joules(meter, 1.0))


def test_psys_that_counts_less_than_its_packages_is_not_believed(tree: RaplTree) -> None:
    server(tree)
    tree.zone("intel-rapl:2", "psys")
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    for zone, watts in {"intel-rapl:2": 10, "intel-rapl:0": 30, "intel-rapl:1": 30}.items():
        tree.add(zone, watts * 1_000_000)
    answer = meter.read(1.0)
    assert isinstance(answer, Unknown)
    assert "psys counts less than the packages inside it" in answer.reason
    before = meter.read(1.0)
    for zone, watts in {"intel-rapl:2": 10, "intel-rapl:0": 30, "intel-rapl:1": 30, "intel-rapl:0:2": 4}.items():
        tree.add(zone, watts * 1_000_000)
    after = meter.read(2.0)
    assert isinstance(before, Sample)
    assert isinstance(after, Sample)
    assert before.epoch == after.epoch == 1
    assert after.joules - before.joules == pytest.approx(64.0)
    assert next(zone.joules for zone in meter.zones() if zone.name == "package-0") == pytest.approx(60.0)


def test_psys_that_holds_its_packages_is_believed(tree: RaplTree) -> None:
    server(tree)
    tree.zone("intel-rapl:2", "psys")
    meter = Powercap(tree.root)
    for second in range(5):
        assert joules(meter, float(second)) == pytest.approx(80.0 * second)
        for zone, watts in {"intel-rapl:2": 80, "intel-rapl:0": 30, "intel-rapl:1": 30}.items():
            tree.add(zone, watts * 1_000_000)


def test_zones_that_a_container_hides_are_told_from_none(tmp_path: Path) -> None:
    root = tmp_path / "powercap"
    root.mkdir()
    (root / "intel-rapl:0").symlink_to(tmp_path / "masked" / "intel-rapl:0")
    problem = Powercap(root).available()
    assert problem is not None
    assert "hidden from this container" in problem
    assert "systempaths=unconfined" in problem


def test_a_package_that_stands_still_is_unknown_and_memory_may(tree: RaplTree) -> None:
    server(tree)
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    for second in (1.0, 2.0, 3.0):
        tree.add("intel-rapl:0", 1_000_000)
        tree.add("intel-rapl:1", 1_000_000)
        assert joules(meter, second) == pytest.approx(2.0 * second)
    tree.add("intel-rapl:0", 1_000_000)
    answer = meter.read(4.0)
    assert isinstance(answer, Unknown)
    assert "package-1 (intel-rapl:1) has stood at 4000000 for 1.0 s" in answer.reason


def test_a_counter_without_a_range_is_not_bridged_over_a_time_in_which_it_may_have_wrapped(tree: RaplTree) -> None:
    tree.zone("intel-rapl:0", "package-0", most=None)
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    tree.add("intel-rapl:0", 1_000_000)
    assert joules(meter, 60.0) == pytest.approx(1.0)
    tree.add("intel-rapl:0", 1_000_000)
    answer = meter.read(160.0)
    assert isinstance(answer, Unknown)
    assert "its range is not known" in answer.reason


@pytest.mark.parametrize("content", ["", "12.5\n", "unknown\n", "-5\n"])
def test_what_is_no_count_is_unknown(tree: RaplTree, content: str) -> None:
    tree.zone("intel-rapl:0", "package-0")
    meter = Powercap(tree.root)
    joules(meter, 0.0)
    (tree.root / "intel-rapl:0" / "energy_uj").write_text(content)
    assert isinstance(meter.read(0.1), Unknown)


def test_a_read_error_of_the_driver_is_unknown_in_words(tree: RaplTree) -> None:
    energy = tree.zone("intel-rapl:0", "package-0") / "energy_uj"
    energy.unlink()
    energy.symlink_to("/proc/self/mem")  # reading its beginning is an EIO
    answer = Powercap(tree.root).read(0.0)
    assert isinstance(answer, Unknown)
    assert "Input/output error" in answer.reason
