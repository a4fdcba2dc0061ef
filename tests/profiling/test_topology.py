"""Which CPUs a level takes."""

from pathlib import Path

import pytest

from wattloom.errors import InputError
from wattloom.profiling.topology import levels_of, loading_order, usual_levels


def describe(system: Path, cpus: dict[int, tuple[int, int]], capacity: dict[int, int] | None = None) -> Path:
    """CPUs with their package and core, as the kernel describes them."""
    for cpu, (package, core) in cpus.items():
        topology = system / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_id").write_text(f"{core}\n")
    for cpu, value in (capacity or {}).items():
        (system / f"cpu{cpu}" / "cpu_capacity").write_text(f"{value}\n")
    return system


def test_every_core_has_one_before_any_has_two(tmp_path: Path) -> None:
    siblings_beside = describe(tmp_path / "a", {0: (0, 0), 1: (0, 0), 2: (0, 1), 3: (0, 1)})
    assert loading_order(range(4), siblings_beside) == [0, 2, 1, 3]
    siblings_behind = describe(tmp_path / "b", {0: (0, 0), 1: (0, 1), 2: (0, 0), 3: (0, 1)})
    assert loading_order(range(4), siblings_behind) == [0, 1, 2, 3]


def test_packages_take_turns(tmp_path: Path) -> None:
    system = describe(tmp_path, {cpu: (cpu // 4, cpu % 4 // 2) for cpu in range(8)})
    assert loading_order(range(8), system) == [0, 4, 2, 6, 1, 5, 3, 7]


def test_the_faster_cores_come_first(tmp_path: Path) -> None:
    system = describe(tmp_path, {cpu: (0, cpu) for cpu in range(4)}, {0: 400, 1: 400, 2: 1024, 3: 1024})
    assert loading_order(range(4), system) == [2, 3, 0, 1]


def test_only_cpus_that_may_be_used_are_taken(tmp_path: Path) -> None:
    system = describe(tmp_path, {cpu: (0, cpu // 2) for cpu in range(8)})
    assert loading_order({1, 4, 5}, system) == [1, 4, 5]


def test_a_kernel_that_tells_nothing_has_its_cpus_taken_by_number(tmp_path: Path) -> None:
    assert loading_order({3, 1, 2}, tmp_path) == [1, 2, 3]


def test_a_small_machine_has_every_level_and_a_large_one_its_bends() -> None:
    assert usual_levels(4, 8) == [1, 2, 3, 4, 5, 6, 7, 8]
    large = usual_levels(64, 128)
    assert {1, 2, 64, 128} <= set(large)
    assert len(large) < 24


@pytest.mark.parametrize(
    ("wanted", "levels"), [("1,2,4", [1, 2, 4]), ("1-3,8", [1, 2, 3, 8]), (" 2 ", [2]), ("all", list(range(1, 9)))]
)
def test_levels_are_numbers_and_ranges(wanted: str, levels: list[int]) -> None:
    assert levels_of(wanted, 4, 8) == levels


@pytest.mark.parametrize("wanted", ["0", "9", "1-9", "x", "-1", "1,,2", "3-1"])
def test_levels_that_cannot_be_are_refused(wanted: str) -> None:
    with pytest.raises(InputError, match="levels"):
        levels_of(wanted, 4, 8)
