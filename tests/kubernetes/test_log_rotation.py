"""A scheduler's log that is full gives way to a new one: nothing is decided otherwise, and all can be explained."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.beds.kubernetes import Api, ControlPlane, eventually
from tests.beds.kubernetes.fleet import add_namespace
from tests.kubernetes.running import Running, all_bound, nodes, nodes_of, pods, scheduling

from wattloom.cli.main import cli
from wattloom.cluster.node import Node
from wattloom.driving.snapshot import snapshot
from wattloom.errors import InputError, PolicyError
from wattloom.history.log import Log
from wattloom.history.replayer import Fold
from wattloom.kubernetes.options import usable_policy
from wattloom.kubernetes.scheduler import status_reporter
from wattloom.kubernetes.scheduler.decision_log import DecisionLog
from wattloom.kubernetes.scheduler.log_rotation import Memory, rotate
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.machines.profile import MachineProfile
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.scheduling.state import Stage
from wattloom.workload.function import Function
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

POLICY = "least-joules"
_numbers = count(1)


class Bench:
    """An engine with a log, without a cluster."""

    def __init__(self, folder: Path) -> None:
        self.time = 100.0
        self._runner = asyncio.Runner()
        self.log = DecisionLog(folder / "decisions.log", POLICY, "here")
        self.given: list[AnyInstruction] = []
        self.driver = TimedDriver(
            usable_policy(POLICY), self.given.append, log=self.log.writer, clock=lambda: self.time
        )
        machine = MachineProfile(name="m", arch="amd64", cores=4, threads=4, memory=1 << 34, watts=((0, 50), (4, 90)))
        self.tell(ev.MachineDefined(self.driver.now, machine))
        for name in ("a", "b"):
            self.tell(ev.NodeJoined(self.driver.now, Node(name, "m", 4.0, 1 << 34, resources={"pods": 10})))

    def tell(self, event: ev.AnyEvent) -> None:
        async def told() -> bool:
            return self.driver.tell(event)

        assert self._runner.run(told()), event

    def submit(self, name: str, cpu: float = 1.0) -> str:
        """The node that it is given; empty: none."""
        if "f" not in self.driver.engine.ledger.functions:
            self.tell(ev.FunctionDefined(self.driver.now, Function("f")))
        needs = Requirements(cpu=cpu, resources=(("pods", 1),))
        self.tell(ev.TaskSubmitted(self.driver.now, Task(id=name, function="f", requirements=needs)))
        return self.node_of(name)

    def node_of(self, name: str) -> str:
        return self.driver.engine.ledger.tasks[name].node

    def rotate(self) -> None:
        async def rotated() -> None:
            rotate(self.log, self.driver, usable_policy(POLICY))

        self._runner.run(rotated())

    def close(self) -> None:
        self.driver.stop()
        self.log.close()
        self._runner.close()

    def folded(self) -> Fold:
        """The log told to a fresh engine."""
        self.log.flush()
        fold = Fold(Log(self.log.path), usable_policy(POLICY))
        for _ in fold.records():
            pass
        return fold


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def test_the_engine_knows_after_it_what_it_knew_before(bench: Bench) -> None:
    for number in range(5):
        assert bench.submit(f"n/t{number}#1")
    bench.tell(ev.TaskStarted(bench.driver.now, "n/t0#1", 1))
    bench.tell(ev.TaskStarted(bench.driver.now, "n/t1#1", 1))
    bench.tell(ev.TaskLeaving(bench.driver.now, "n/t1#1"))
    bench.tell(ev.InstructionFailed(bench.driver.now, "place", "n/t2#1", 1, message="refused"))
    assert not bench.submit("n/big#1", cpu=4.0)
    before = snapshot(bench.driver.engine, bench.driver.now, since_submitted=True)
    bench.time += 50.0
    bench.rotate()
    after = snapshot(bench.driver.engine, bench.driver.now, since_submitted=True)
    assert bench.driver.refused == 0
    told = {event.task.id: event for event in before if isinstance(event, ev.TaskFound)}
    assert {event.task.id: event for event in after if isinstance(event, ev.TaskFound)}.items() >= told.items()
    waiting = [event for event in after if isinstance(event, ev.TaskSubmitted)]
    assert [event.task.id for event in waiting] == ["n/big#1"]
    assert waiting[0].time < 1.0, "it has waited since it was submitted"


def test_bindings_under_way_go_on_as_if_nothing_had_been(bench: Bench) -> None:
    for name in ("n/comes#1", "n/fails#1", "n/ends#1"):
        bench.submit(name)
    bench.tell(ev.TaskStarted(bench.driver.now, "n/ends#1", 1))
    bench.rotate()
    bench.tell(ev.TaskStarted(bench.driver.now, "n/comes#1", 1))
    bench.tell(ev.InstructionFailed(bench.driver.now, "place", "n/fails#1", 1, message="refused"))
    bench.tell(ev.TaskFinished(bench.driver.now, "n/ends#1", 1, 3.0))
    records = bench.driver.engine.ledger.tasks
    assert {name: records[name].stage for name in records} == {
        "n/comes#1": Stage.RUNNING,
        "n/fails#1": Stage.BACKING_OFF,
    }
    bench.time += 10.0
    bench.tell(ev.Tick(bench.driver.now))
    placed = bench.given[-1]
    assert isinstance(placed, Place)
    assert (placed.task, placed.attempt) == ("n/fails#1", 2)


def test_a_new_log_leads_to_the_decisions_in_it_without_the_old_one(bench: Bench) -> None:
    for number in range(12):
        bench.submit(f"n/t{number}#1")
    bench.rotate()
    for number in range(4):
        bench.tell(ev.TaskStarted(bench.driver.now, f"n/t{number}#1", 1))
        bench.tell(ev.TaskFinished(bench.driver.now, f"n/t{number}#1", 1, 5.0))
    assert bench.submit("n/new#1", cpu=0.5) or True
    assert bench.folded().same
    (bench.log.path.with_name("decisions.log.1")).unlink()
    fold = bench.folded()
    assert fold.same
    assert {name: each.node for name, each in fold.engine.ledger.tasks.items()} == {
        name: each.node for name, each in bench.driver.engine.ledger.tasks.items()
    }


def test_what_was_learned_of_run_times_is_kept(bench: Bench) -> None:
    for number in range(4):
        node = bench.submit(f"n/t{number}#1")
        bench.tell(ev.TaskStarted(bench.driver.now, f"n/t{number}#1", 1))
        bench.tell(ev.TaskFinished(bench.driver.now, f"n/t{number}#1", 1, 7.0))
    assert node
    bench.rotate()
    bench.submit("n/next#1")
    estimate = bench.driver.engine.ledger.tasks["n/next#1"].holding.estimate
    assert estimate is not None
    assert estimate.seconds == pytest.approx(7.0)


def test_a_log_is_full_by_what_came_after_its_beginning(bench: Bench) -> None:
    """With a limit below what a log must begin with it would give way every second."""
    assert not bench.log.is_full
    bench.log._most = 10
    assert bench.log.is_full
    bench.rotate()
    assert not bench.log.is_full
    for number in range(30):
        bench.submit(f"n/t{number}#1", cpu=0.1)
    assert bench.log.is_full


@pytest.mark.parametrize("killed", ["while the new one is written", "between the two names"])
def test_killed_in_the_middle_everything_can_be_read_and_the_next_life_begins(
    killed: str, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.submit("n/one#1")
    bench.log.flush()
    replace = Path.replace
    names = iter(["decisions.log.1"] if killed.startswith("between") else [])

    def dies(self: Path, target: Path) -> Path:
        if target.name != next(names, ""):
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        bench.rotate()
    monkeypatch.setattr(Path, "replace", replace)
    there = {path.name for path in tmp_path.iterdir()}
    assert ("decisions.log" in there) is killed.startswith("while")
    assert explained("n/one", bench.log.path)["decisions"][0]["node"] == bench.node_of("n/one#1")
    bench.log.close()
    again = DecisionLog(bench.log.path, POLICY, "here")
    again.close()
    assert Log(again.path).header.policy == POLICY
    assert {path.name for path in tmp_path.iterdir()} == {"decisions.log", "decisions.log.1", "decisions.log.lock"}
    assert explained("n/one", bench.log.path)["same_decisions"]


def test_a_log_that_cannot_be_begun_leaves_the_old_one_going(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (bench.log.path.with_name("decisions.log.new")).mkdir()
    bench.rotate()
    bench.submit("n/one#1")
    assert "cannot be written" in caplog.text
    assert bench.folded().same
    assert explained("n/one", bench.log.path)["decisions"]


def test_a_start_that_came_to_nothing_pushes_no_log_out(bench: Bench) -> None:
    """Neither the first start without a cluster nor any after it."""
    bench.submit("n/one#1")
    bench.log.close()
    for _ in range(3):
        DecisionLog(bench.log.path, POLICY, "here").close()
    assert explained("n/one", bench.log.path.with_name("decisions.log.1"))["decisions"]


def test_a_log_that_is_being_written_is_refused_and_stays_where_it_is(bench: Bench, tmp_path: Path) -> None:
    """Before and after it gave way to a new one, and by whichever name."""
    link = tmp_path / "link.log"
    link.symlink_to(bench.log.path)
    bench.submit("n/one#1")
    for turn in range(2):
        for path in (bench.log.path, tmp_path, link):
            with pytest.raises(InputError, match=rf"is in use by process {os.getpid()}"):
                DecisionLog(path, POLICY, "here")
        bench.submit(f"n/more-{turn}#1")
        bench.log.flush()
        assert explained(f"n/more-{turn}", bench.log.path)["decisions"], "it can be read meanwhile"
        assert CliRunner().invoke(cli, ["replay", str(bench.log.path)]).exit_code == 0
        bench.rotate()
    assert explained("n/more-1", bench.log.path)["decisions"]
    bench.log.close()
    DecisionLog(bench.log.path, POLICY, "here").close()


def test_a_scheduler_that_was_killed_leaves_its_log_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "decisions.log"
    words = (
        "import sys, time, pathlib\n"
        "from wattloom.kubernetes.scheduler.decision_log import DecisionLog\n"
        "log = DecisionLog(pathlib.Path(sys.argv[1]), 'fifo', 'here')\n"
        "print('written', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", words, str(path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == "written\n"
            with pytest.raises(InputError, match=rf"decisions\.log: is in use by process {other.pid};"):
                DecisionLog(path, POLICY, "here")
        finally:
            other.kill()
    DecisionLog(path, POLICY, "here").close()


@pytest.mark.parametrize("where", ["missing/decisions.log", "file/decisions.log"])
def test_a_log_that_cannot_be_written_is_said_with_the_cause(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written: (No such file|Not a directory)"):
        DecisionLog(tmp_path / where, POLICY, "here")


def test_another_file_of_one_line_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a log")
    DecisionLog(path, POLICY, "here").close()
    assert (tmp_path / "notes.txt.1").read_text() == "not a log"


@pytest.mark.parametrize("with_log", [True, False])
def test_a_policy_that_is_gone_meanwhile_leaves_the_old_engine_going(
    with_log: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(status_reporter, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(status_reporter, "Memory", lambda driver: Memory(driver, most=0))
    bench.log._most = 10
    asked = 0
    bench.submit("n/one#1")
    engine = bench.driver.engine

    def gone() -> Policy:
        nonlocal asked
        asked += 1
        raise PolicyError("policy", "mine.py is gone")

    async def looked_after() -> None:
        if with_log:
            work = asyncio.create_task(status_reporter.look_after_log(bench.log, bench.driver, gone))
        else:
            work = asyncio.create_task(status_reporter.look_after_memory(bench.driver, gone))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not work.done()
        work.cancel()

    bench._runner.run(looked_after())
    assert asked == 1, "it is not loaded again at every look"
    assert "mine.py is gone" in caplog.text
    assert bench.driver.engine is engine
    bench.submit("n/two#1")
    assert bench.folded().same


def test_without_a_log_what_is_remembered_of_ended_pods_stays_in_bounds(bench: Bench) -> None:
    """Each has a function of its own, as pods of single jobs have."""
    memory = Memory(bench.driver, most=100)
    needs = Requirements(cpu=0.5, resources=(("pods", 1),))
    most = anew = 0

    async def begun_anew() -> None:
        memory.begin_anew(usable_policy(POLICY))

    bench.submit("n/stays#1")
    where = bench.node_of("n/stays#1")
    for number in range(500):
        name, function = f"n/job-{number}#1", f"n/job-{number}"
        bench.tell(ev.FunctionDefined(bench.driver.now, Function(function)))
        bench.tell(ev.TaskSubmitted(bench.driver.now, Task(id=name, function=function, requirements=needs)))
        bench.tell(ev.TaskStarted(bench.driver.now, name, 1))
        bench.tell(ev.TaskFinished(bench.driver.now, name, 1, 1.0))
        ledger = bench.driver.engine.ledger
        most = max(most, len(ledger.functions) + len(ledger.ended))
        if memory.is_full:
            anew += 1
            bench._runner.run(begun_anew())
    assert most <= 102
    assert anew == 10
    assert bench.node_of("n/stays#1") == where
    assert bench.driver.refused == 0


def test_memory_is_full_by_what_came_after_its_beginning(bench: Bench) -> None:
    memory = Memory(bench.driver, most=0)
    bench.submit("n/one#1")
    assert memory.is_full
    memory.postpone()
    assert not memory.is_full


def explained(pod: str, log: Path) -> dict[str, list[dict[str, str]]]:
    result = CliRunner().invoke(cli, ["why", pod, "--log", str(log), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, list[dict[str, str]]] = json.loads(result.output)
    return found


# -- on a real API server ----------------------------------------------------------------------------------------------


def rotate_now(running: Running) -> None:
    scheduler = running.scheduler
    log = scheduler.log
    assert log is not None
    running.call(lambda: rotate(log, scheduler.driver, usable_policy(POLICY)))


def test_in_a_burst_no_binding_is_lost_and_why_finds_each_pod_in_one_of_the_two(
    plane: ControlPlane, api: Api, tmp_path: Path
) -> None:
    space = add_namespace(api, f"rotation-{next(_numbers)}")
    nodes(api, *(f"n{number}" for number in range(8)), cpu="8")
    with scheduling(plane, log=tmp_path / "decisions.log") as running:
        for turn in range(5):
            pods(api, space, *(f"p{turn}-{number}" for number in range(30)), cpu="100m")
            rotate_now(running)
        pods(api, space, "first", cpu="100m")
        where = all_bound(api, space)
        pods(api, space, "big", cpu="64")
        eventually(lambda: running.scheduler.conditions.written == 1)
        rotate_now(running)
        pods(api, space, "last", cpu="100m")
        where["last"] = eventually(lambda: nodes_of(api, space)["last"])
    log = tmp_path / "decisions.log"
    assert {path.name for path in tmp_path.iterdir()} == {"decisions.log", "decisions.log.1", "decisions.log.lock"}
    for pod in ("first", "last"):
        found = explained(f"{space}/{pod}", log)
        assert found["same_decisions"], pod
        assert found["decisions"][-1]["node"] == where[pod]
    assert explained(f"{space}/big", log)["waiting"]


def test_the_size_that_the_command_is_given_is_kept(plane: ControlPlane, api: Api, tmp_path: Path) -> None:
    space = add_namespace(api, f"rotation-{next(_numbers)}")
    nodes(api, "n1", "n2", cpu="64")
    with scheduling(plane, log=tmp_path / "decisions.log", log_size=40_000):
        for turn in range(4):
            pods(api, space, *(f"p{turn}-{number}" for number in range(50)), cpu="10m")
            all_bound(api, space)
            eventually(lambda: (tmp_path / "decisions.log").stat().st_size > 0)
        eventually(lambda: (tmp_path / "decisions.log.1").exists(), 10)
