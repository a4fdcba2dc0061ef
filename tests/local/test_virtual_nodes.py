"""Virtual nodes: one machine shown as several, so that every policy can be tried for real."""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.beds.parity import Timed, timed

from wattloom import Executor, InputError, VirtualNode
from wattloom.history.log import Log
from wattloom.local.nodes import by_physical_core, nodes_from, virtual_nodes
from wattloom.local.options import Options
from wattloom.machines.profile import MachineProfile
from wattloom.machines.this_machine import this_machine
from wattloom.policies.listing import policies
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Place, Sleep, Wake
from wattloom.units import GIB

pytestmark = pytest.mark.usefixtures("beds_are_found")

CORES = len(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(CORES < 2, reason="two nodes need two cores")


def machine(name: str, speed: float = 1.0, sleep_w: float | None = None, wake_s: float = 0.0) -> MachineProfile:
    return MachineProfile(
        name, "x86_64", 1, 1, GIB, ((0.0, 10.0), (1.0, 30.0)), speed=speed, sleep_w=sleep_w, wake_s=wake_s
    )


def pair(**second: float) -> list[VirtualNode]:
    return [VirtualNode("first", machine("one"), 1.0), VirtualNode("second", machine("two", **second), 1.0)]


def where() -> set[int]:
    time.sleep(0.05)
    return os.sched_getaffinity(0)


def spin(seconds: float) -> float:
    """So much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return seconds


def timed_spin() -> Timed:
    return timed(lambda: spin(0.08))


def nodes_of(journal: Path) -> dict[str, str]:
    return {record.task: record.node for record in Log(journal).records() if isinstance(record, Place)}


@two_cores
@pytest.mark.parametrize("policy", [policy.name for policy in policies()])
def test_every_policy_runs_for_real(policy: str, tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    with Executor(nodes=pair(speed=0.5), policy=policy, journal=journal) as executor:
        assert list(executor.map(spin, [0.01] * 6)) == [0.01] * 6
    assert set(nodes_of(journal).values()) == {"first", "second"}


@two_cores
def test_workers_run_on_the_cores_of_their_node(tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    with Executor(nodes=pair(), policy="round-robin", journal=journal) as executor:
        futures = [executor.submit(where) for _ in range(4)]
        cores = {future.task_id: frozenset(future.result()) for future in futures}
    found: dict[str, set[frozenset[int]]] = defaultdict(set)
    for task, node in nodes_of(journal).items():
        found[node].add(cores[task])
    (first,), (second,) = found["first"], found["second"]
    assert not first & second
    assert len(first) == len(second) == CORES // 2


@two_cores
def test_a_node_of_half_the_speed_takes_twice_as_long(tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    times: dict[str, Timed] = {}
    with Executor(nodes=pair(speed=0.5), policy="round-robin", journal=journal) as executor:
        for _ in range(3):  # in pairs, so that each node has one at a time
            for future in [executor.submit(timed_spin), executor.submit(timed_spin)]:
                times[future.task_id] = future.result()
    slower: dict[str, list[float]] = defaultdict(list)
    places = nodes_of(journal)
    for event in Log(journal).events():
        if isinstance(event, ev.TaskFinished):
            wall, cpu = times[event.task]
            lost = wall - cpu  # while others had the core
            slower[places[event.task]].append(((event.seconds or 0.0) - lost) / cpu)
    assert min(slower["first"]) == pytest.approx(1.0, rel=0.15)
    assert min(slower["second"]) == pytest.approx(2.0, rel=0.15)


@two_cores
def test_tasks_and_idle_and_unattributed_are_the_meter_of_each_node(tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    with Executor(nodes=pair(speed=0.5), policy="round-robin", journal=journal) as executor:
        futures = [executor.submit(spin, 0.02 * (1 + n % 3)) for n in range(14)]
        told = {future.task_id: future.energy for future in futures}
    node_of = nodes_of(journal)
    meter: dict[str, float] = defaultdict(float)
    parts: dict[str, float] = defaultdict(float)
    tasks: dict[str, float] = {}
    for event in Log(journal).events():
        if isinstance(event, ev.UsageArrived):
            meter[event.node] += event.meter_j
            parts[event.node] += event.idle_j + event.unattributed_j + event.running_j
            assert event.provenance == "modelled"
            for task, (joules, _) in event.tasks.items():
                assert node_of[task] == event.node
                tasks[task] = joules
                parts[event.node] += joules
    assert meter["first"] > 0.0 < meter["second"]
    assert parts == pytest.approx(meter)
    assert tasks.keys() == told.keys()
    for task, energy in told.items():
        assert getattr(energy, "joules", None) == pytest.approx(tasks[task])


@two_cores
def test_a_call_costs_its_seconds_on_the_nodes_curve(tmp_path: Path) -> None:
    with Executor(nodes=pair(), policy="fifo", journal=tmp_path / "work.journal") as executor:
        executor.submit(spin, 0.01).result()
        began = time.monotonic()
        energy = executor.submit(spin, 0.2).energy
        took = time.monotonic() - began
    assert getattr(energy, "provenance", None) == "modelled"
    assert 0.2 * 20.0 * 0.99 <= getattr(energy, "joules", 0.0) <= took * 20.0  # 30 W with a busy core, less 10 W idle


@two_cores
def test_idle_nodes_sleep_and_wake_where_the_policy_wants_it(tmp_path: Path) -> None:
    journal = tmp_path / "work.journal"
    sleepy = [VirtualNode(name, machine(name, sleep_w=1.0, wake_s=0.1), 1.0) for name in ("first", "second")]
    with Executor(nodes=sleepy, policy="least-joules", journal=journal) as executor:
        executor.submit(spin, 0.02).result()
        time.sleep(1.5)
        assert list(executor.map(spin, [0.02] * 4)) == [0.02] * 4
    kinds = [type(record) for record in Log(journal).records()]
    assert Sleep in kinds
    assert Wake in kinds
    assert ev.NodeAwake in kinds
    asleep = [e.idle_j / e.seconds for e in Log(journal).events() if isinstance(e, ev.UsageArrived)]
    assert min(asleep) < 9.0  # below the 10 W of a node that is awake


def test_more_nodes_than_cores_are_refused(tmp_path: Path) -> None:
    many = [VirtualNode(f"n{n}", machine("one")) for n in range(CORES + 1)]
    with pytest.raises(InputError, match=rf"there are {CORES + 1}, and this machine has {CORES} cores"):
        Executor(nodes=many, journal=tmp_path / "work.journal")


def test_a_machine_that_is_not_in_the_catalogue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nodes\.n1\.machine.*abacus is not in the catalogue"):
        Executor(nodes=[VirtualNode("n1", "abacus")], journal=tmp_path / "work.journal")


@two_cores
def test_two_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two have the same name"):
        Executor(nodes=[VirtualNode("n1", machine("one"))] * 2, journal=tmp_path / "work.journal")


def test_a_node_wants_no_more_cores_than_it_is_given() -> None:
    with pytest.raises(InputError, match=rf"nodes\.n1\.cpu.*at most {CORES}"):
        virtual_nodes([VirtualNode("n1", machine("one"), CORES + 1.0)], this_machine())


def test_nodes_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes.toml"
    file.write_text(
        '[machines.toy]\narch = "aarch64"\ncores = 1\ncores_watts = [[0, 1.0], [1, 3.0]]\nspeed = 0.4\n'
        '[[nodes]]\nname = "big"\nmachine = "epyc-7742-1s"\ncpu = 1\n[[nodes]]\nname = "small"\nmachine = "toy"\n'
    )
    big, small = nodes_from(file)
    assert (big.name, big.machine, big.cpu) == ("big", "epyc-7742-1s", 1.0)
    assert isinstance(small.machine, MachineProfile)
    assert (small.machine.speed, small.machine.watts[-1]) == (0.4, (1.0, 3.0))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[nodes]]\nname = 'a'\n", "machine"),
        ("[[nodes]]\nname = 'a'\nmachine = 'b'\ncolour = 'red'\n", "colour"),
        ("nodes = [", "nodes.toml"),
        ("nodes = []\n[machines.x]\narch = 'x86_64'\ncores = 1\nspeed = -1.0\n", r"machines\.x\.speed"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "nodes.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        nodes_from(file)


def test_threads_of_one_core_go_to_the_same_node(tmp_path: Path) -> None:
    for cpu, core in enumerate([0, 1, 0, 1]):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "core_id").write_text(f"{core}\n")
        (folder / "physical_package_id").write_text("0\n")
    assert by_physical_core({0, 1, 2, 3}, tmp_path) == [0, 2, 1, 3]
    assert by_physical_core({3, 1, 2}, tmp_path / "nothing-here") == [1, 2, 3]


def hold(seconds: float) -> None:
    time.sleep(seconds)


def beside(seconds: float) -> None:
    time.sleep(seconds)


def third(seconds: float) -> None:
    time.sleep(seconds)


@two_cores
def test_what_was_placed_and_is_not_measured_yet_changes_a_placement(tmp_path: Path) -> None:
    """A reading that covers the first call: 20 W there, 10 W on the other node. The second goes to that one and is
    expected to draw 12 W there, so the third goes to the first, though the other's meter may not have seen anything."""
    journal = tmp_path / "work.journal"
    nodes = [VirtualNode("first", machine("one"), 1.0), VirtualNode("second", machine("one"), 1.0)]
    with Executor(nodes=nodes, policy="exec:interval_s=1", journal=journal) as executor:
        calls = [executor.submit_with(Options(cpu=0.5), hold, (60.0,))]
        wait_until(lambda: any(calls[0].task_id in reading.tasks for reading in readings_of(journal)))
        calls += [executor.submit_with(Options(cpu=cpu), fn, (60.0,)) for cpu, fn in ((0.6, beside), (0.25, third))]
        wait_until(lambda: len(nodes_of(journal)) == 3)
        executor.kill_workers()
    assert [nodes_of(journal)[call.task_id] for call in calls] == ["first", "second", "first"]
    covering = [reading for reading in readings_of(journal) if calls[0].task_id in reading.tasks]
    assert all(reading.node == "first" for reading in covering)
    assert covering[0].tasks[calls[0].task_id] == pytest.approx(10.0, rel=0.01)


def readings_of(journal: Path) -> list[ev.ReadingArrived]:
    return [event for event in Log(journal).events() if isinstance(event, ev.ReadingArrived)]


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
