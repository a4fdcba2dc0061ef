"""Who used CPU time: every second once, whoever came, went, or took another's number."""

from pathlib import Path

import pytest
from tests.monitoring.scripted import GroupTree, ScriptedKernel

from wattloom.monitoring.census import Census, Count
from wattloom.monitoring.cgroups import ControlGroups

ID = "ab12" * 16


@pytest.fixture
def kernel() -> ScriptedKernel:
    return ScriptedKernel()


@pytest.fixture
def census(kernel: ScriptedKernel, tmp_path: Path) -> Census:
    """Without control groups."""
    return Census(kernel, ControlGroups(tmp_path / "none"))


def used(count: Count) -> dict[int, float]:
    return {process.pid: round(seconds, 6) for process, seconds in count.used}


def exited(count: Count) -> dict[str, float]:
    return {each.parent or each.place.unit: round(each.cpu_s, 6) for each in count.exited}


def test_the_first_look_only_takes_down_who_is_there(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7)
    kernel.run(7, 100.0)
    first = census.sample()
    assert (used(first), first.living) == ({}, 2)
    kernel.run(7, 0.25)
    assert used(census.sample()) == {7: 0.25}


def test_a_process_that_came_since_has_all_its_time_counted(kernel: ScriptedKernel, census: Census) -> None:
    census.sample()
    kernel.start(7)
    kernel.run(7, 0.3)
    assert used(census.sample()) == {7: 0.3}


def test_a_pid_used_again_is_another_process(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="old")
    kernel.run(7, 5.0)
    census.sample()
    kernel.end(7)
    kernel.start(7, command="new")
    kernel.run(7, 9.0)  # more than the old one had: time alone would not show it
    count = census.sample()
    assert [(process.name, seconds) for process, seconds in count.used] == [("new", 9.0)]
    assert [process.name for process in count.ended] == ["old"]


def test_a_directory_the_kernel_had_forgotten_makes_no_new_process(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7)
    census.sample()
    before = census.living[7]
    kernel.forget_directories()
    kernel.run(7, 0.5)
    assert used(census.sample()) == {7: 0.5}
    assert census.living[7] is before


def test_children_that_came_and_went_are_seen_through_their_parent(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="make")
    census.sample()
    for pid in range(100, 140):
        kernel.start(pid, parent=7)
        kernel.run(pid, 0.02)
        kernel.end(pid)
    kernel.run(7, 0.01)
    count = census.sample()
    assert used(count) == {7: 0.01}
    assert exited(count) == {"make": 0.8}


def test_what_was_seen_of_a_child_is_not_counted_again_when_it_ends(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="make")
    census.sample()
    kernel.start(100, parent=7)
    kernel.run(100, 0.4)
    assert used(census.sample()) == {100: 0.4}
    kernel.run(100, 0.1)
    kernel.end(100)
    kernel.run(7, 0.01)
    assert exited(census.sample()) == {"make": 0.1}


def test_a_child_whose_parent_died_first_is_not_counted_twice(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="make")
    kernel.start(100, parent=7)
    census.sample()
    kernel.run(100, 2.0)
    census.sample()
    kernel.end(7)
    kernel.end(100)  # init waited for it
    kernel.run(1, 0.01)
    assert exited(census.sample()) == {}


def test_grandchildren_count_once(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="make")
    kernel.start(8, parent=7, command="sh")
    census.sample()
    kernel.start(100, parent=8)
    kernel.run(100, 0.5)
    kernel.run(8, 0.1)
    assert used(census.sample()) == {100: 0.5, 8: 0.1}
    kernel.run(100, 0.2)
    kernel.end(100)
    kernel.end(8)
    kernel.run(7, 0.01)
    assert exited(census.sample()) == {"make": 0.2}


def test_a_child_nobody_waits_for_is_nobodys_and_eats_nobodys_time(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="make")
    kernel.start(100, parent=7)
    census.sample()
    kernel.run(100, 3.0)
    census.sample()
    kernel.end(100, waited_for=False)
    census.sample()
    kernel.start(101, parent=7)
    kernel.run(101, 0.2)
    kernel.end(101)
    kernel.run(7, 0.01)
    found: dict[str, float] = {}
    for _ in range(6):  # one that never had children is not asked at every look
        found |= exited(census.sample())
        kernel.run(7, 0.01)
    assert found == {"make": pytest.approx(0.2)}


def test_ten_thousand_short_lived_processes_are_not_lost(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7, command="storm")
    census.sample()
    whole = 0.0
    for look in range(10):
        for number in range(1000):
            kernel.start(1000 + number, parent=7)
            kernel.run(1000 + number, 0.001)
            if number % 10:
                kernel.end(1000 + number)
        kernel.run(7, 0.01)
        count = census.sample()
        whole += sum(used(count).values()) + sum(exited(count).values())
        for number in range(0, 1000, 10):
            kernel.end(1000 + number)
        assert count.living == 102, look
    assert whole == pytest.approx(kernel.busy_s, abs=1e-6)


def test_processes_we_may_not_read_still_have_cpu_time(kernel: ScriptedKernel, census: Census) -> None:
    kernel.start(7)
    kernel.hidden.add(7)
    census.sample()
    kernel.run(7, 0.5)
    count = census.sample()
    assert (used(count), count.hidden) == ({7: 0.5}, 1)


# -- control groups ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> GroupTree:
    return GroupTree(tmp_path / "cgroup")


DOCKER = f"/system.slice/docker-{ID}.scope"


def counted(kernel: ScriptedKernel, tree: GroupTree, pid: int, seconds: float, path: str) -> None:
    kernel.run(pid, seconds)
    tree.use(path, seconds)


def test_what_a_group_counted_beyond_its_processes_came_and_went_in_it(kernel: ScriptedKernel, tree: GroupTree) -> None:
    tree.use(DOCKER, 50.0)
    kernel.start(7, cgroup=f"0::{DOCKER}")
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    counted(kernel, tree, 7, 0.5, DOCKER)
    tree.use(DOCKER, 0.3)
    count = census.sample()
    assert used(count) == {7: 0.5}
    assert [(each.place.container, round(each.cpu_s, 6)) for each in count.exited] == [(ID, 0.3)]


def test_groups_and_parents_do_not_count_the_same_time(kernel: ScriptedKernel, tree: GroupTree) -> None:
    tree.use(DOCKER, 1.0)
    kernel.start(7, cgroup=f"0::{DOCKER}", command="make")
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    for pid in range(100, 120):
        kernel.start(pid, parent=7, cgroup=f"0::{DOCKER}")
        counted(kernel, tree, pid, 0.05, DOCKER)
        kernel.end(pid)
    counted(kernel, tree, 7, 0.1, DOCKER)
    count = census.sample()
    assert sum(used(count).values()) + sum(each.cpu_s for each in count.exited) == pytest.approx(1.1)


def test_a_group_read_late_or_early_invents_nothing(kernel: ScriptedKernel, tree: GroupTree) -> None:
    """Group and process are never read at the same instant: what one look is short of, the next one has."""
    tree.use(DOCKER, 1.0)
    kernel.start(7, cgroup=f"0::{DOCKER}")
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    whole = 0.0
    for look in range(20):
        kernel.run(7, 1.0)
        tree.use(DOCKER, 0.99 if look % 2 else 1.01 if look else 1.0)
        count = census.sample()
        whole += sum(each.cpu_s for each in count.exited)
    assert whole <= 0.0101


def test_a_container_that_came_and_went_shows_in_the_group_around_it(kernel: ScriptedKernel, tree: GroupTree) -> None:
    tree.use("/system.slice/engine.service", 1.0)
    kernel.start(7, cgroup="0::/system.slice/engine.service")
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    tree.use(DOCKER, 0.7)
    count = census.sample()
    assert exited(count) == {"system.slice": 0.7}


def test_a_new_container_counts_from_its_first_process_on(kernel: ScriptedKernel, tree: GroupTree) -> None:
    tree.use("/system.slice/engine.service", 1.0)
    kernel.start(7, cgroup="0::/system.slice/engine.service")
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    kernel.start(8, parent=7, cgroup=f"0::{DOCKER}")
    counted(kernel, tree, 8, 0.4, DOCKER)
    tree.use(DOCKER, 0.2)
    first = census.sample()
    assert (used(first), exited(first)) == ({8: 0.4}, {"system.slice": 0.2})
    counted(kernel, tree, 8, 0.4, DOCKER)
    tree.use(DOCKER, 0.2)
    second = census.sample()
    assert used(second) == {8: 0.4}
    assert [each.place.container for each in second.exited] == [ID]


def test_a_group_that_is_removed_is_forgotten(kernel: ScriptedKernel, tree: GroupTree) -> None:
    tree.use(DOCKER, 1.0)
    kernel.start(7, cgroup=f"0::{DOCKER}")
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    kernel.end(7)
    tree.remove(DOCKER)
    for _ in range(3):
        assert used(census.sample()) == {}


def test_a_process_that_is_moved_into_a_container_is_found_there(kernel: ScriptedKernel, tree: GroupTree) -> None:
    tree.use("/system.slice/engine.service", 1.0)
    tree.use(DOCKER, 0.0)
    census = Census(kernel, ControlGroups(tree.root))
    census.sample()
    kernel.start(8, cgroup="0::/system.slice/engine.service", command="runc")
    counted(kernel, tree, 8, 0.1, "/system.slice/engine.service")
    census.sample()
    kernel.processes[8].cgroup, kernel.processes[8].command = f"0::{DOCKER}", "web"
    census.sample()
    assert (census.living[8].place.container, census.living[8].name) == (ID, "web")


# -- what is reserved --------------------------------------------------------------------------------------------------


def test_reservations_are_requests_of_kubernetes_and_quotas_of_others(tree: GroupTree) -> None:
    pod = f"/kubepods.slice/cri-containerd-{ID}.scope"
    tree.use(pod, 1.0)
    tree.use(DOCKER, 1.0)
    tree.use("/other", 1.0)
    tree.set(pod, "cpu.weight", "79")  # of 2048 shares, which is 2 cores
    tree.set(DOCKER, "cpu.max", "150000 100000")
    tree.set("/other", "cpu.max", "max 100000")
    groups = ControlGroups(tree.root)
    assert groups.reserved(pod) == pytest.approx(2.0, rel=0.02)
    assert groups.reserved(DOCKER) == 1.5
    assert groups.reserved("/other") is None
    assert groups.reserved("/") is None


def test_version_one_counts_nanoseconds_in_its_own_hierarchy(tmp_path: Path) -> None:
    place = tmp_path / "cpu,cpuacct" / "docker" / ID
    place.mkdir(parents=True)
    (place / "cpuacct.usage").write_text("2500000000\n")
    (place / "cpu.shares").write_text("1024\n")
    (place / "cpu.cfs_quota_us").write_text("50000\n")
    (place / "cpu.cfs_period_us").write_text("100000\n")
    groups = ControlGroups(tmp_path)
    path, others = groups.paths(f"4:cpu,cpuacct:/docker/{ID}\n1:name=systemd:/x\n0::/\n")
    assert (path, others) == (f"/docker/{ID}", ("/x",))
    assert groups.used_s(path) == 2.5
    assert groups.reserved(path) == 0.5
