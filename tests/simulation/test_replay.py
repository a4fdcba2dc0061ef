"""A log read back: it cost what it cost when it ran, and what it would have cost is simulated truthfully."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.beds.recording import Backend

import wattloom
from wattloom.cluster.reasons import Reason
from wattloom.errors import LogError
from wattloom.history.log import VERSION, Header, Log, LogWriter
from wattloom.policies.fifo import Fifo
from wattloom.policies.loading import load_policy
from wattloom.policies.pack import Pack
from wattloom.policies.protocol import Refusal
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Conclude, Place, Sleep, Wait, Wake
from wattloom.simulation.build import trial_of
from wattloom.simulation.loop import Simulation
from wattloom.simulation.replay import replay
from wattloom.simulation.result import Result
from wattloom.simulation.scenario import load_scenario, parse
from wattloom.simulation.trial import Trial
from wattloom.testing import builders
from wattloom.testing.builders import ARM, CONCAVE, LINEAR, SLEEPER, requirements
from wattloom.testing.harness import Harness
from wattloom.testing.odd_policies import Scripted

EPOCH = 1_700_000_000.0

MACHINES = """
name = "test"
[machines.smt]
arch = "x86_64"
cores = 2
threads = 4
memory_gib = 8
cores_watts = [[0, 10], [2, 30], [4, 34]]
sleep_w = 1
wake_s = 5
wake_j = 100

[machines.arm]
arch = "aarch64"
cores = 2
memory_gib = 8
cores_watts = [[0, 3], [1, 5], [2, 8]]
speed = 0.4
sleep_w = 0.5
wake_s = 0
wake_j = 40

[[nodes]]
machine = "smt"
count = 2

[[nodes]]
machine = "arm"
count = 2

[functions.f]
work_s = 10
spread = 0.4
{function}

[[arrivals]]
kind = "poisson"
rate_per_s = {rate}
count = 80
functions = {{ f = 1 }}
"""

FAULTS = """
[[faults]]
node = "smt-1"
at_s = 40
back_after_s = 30

[[faults]]
node = "arm-2"
at_s = 60
"""


def small(more: str = "", top: str = "", function: str = "", rate: float = 0.4) -> Trial:
    text = top + MACHINES.format(function=function, rate=rate) + more
    return trial_of(parse(text, "test"), 3)


def heats() -> Trial:
    return trial_of(load_scenario("heats-bursts")[0], 1)


def never_fits() -> Trial:
    """The last task asks for more than there is; a node vanishes and comes back after all others have ended."""
    more = """
    [functions.huge]
    work_s = 1
    cpu = 64

    [[arrivals]]
    kind = "at-once"
    start_s = 200
    count = 1
    functions = { huge = 1 }

    [[faults]]
    node = "smt-1"
    at_s = 500
    back_after_s = 50
    """
    return small(more)


RUNS: dict[str, tuple[Callable[[], Trial], str]] = {
    "plain": (small, "pack"),
    "crowded": (lambda: small(rate=3.0), "spread"),
    "sleep": (lambda: small(rate=0.05), "least-joules"),
    "heats": (heats, "least-joules"),
    "faults": (lambda: small(FAULTS), "round-robin"),
    "at most once": (lambda: small(FAULTS, function="idempotent = false", rate=2.0), "random"),
    "cap": (lambda: small(top="power_cap_w = 60\n", rate=2.0), "marginal-energy"),
    "cold starts": (lambda: small(function="cold_start_s = 4\nkeep_alive_s = 20"), "pack"),
    "readings": (small, "exec"),
    "never fits": (never_fits, "least-joules"),
}


def logged(path: Path, trial: Trial, spec: str) -> Result:
    with path.open("wb") as file:
        writer = LogWriter(file, Header(VERSION, spec, "simulation", None, trial.name))
        return Simulation(trial, load_policy(spec), writer).run()


def parts(result: Result) -> dict[str, float]:
    return dict(msgspec.to_builtins(result.energy))


def area(result: Result, log: Path) -> float:
    """Joules under the power trace."""
    begins = [time for time, _ in result.power]
    ends = [*begins[1:], counted(log)]
    return sum(watts * (end - begin) for (begin, watts), end in zip(result.power, ends, strict=True))


def counted(log: Path) -> float:
    """Seconds from the first event to the last that changed what is drawn or ended a task."""
    matters = (ev.NodeJoined, ev.NodeLost, ev.NodeAwake, ev.TaskFinished, ev.TaskFailed, Place, Sleep, Wake, Conclude)
    times = [0.0]
    now: list[float] = []
    for record in Log(log).records():
        if isinstance(record, ev.Event):
            now.append(record.time)
        if isinstance(record, matters):
            times.append(now[-1] - now[0])
    return times[-1]


@pytest.mark.parametrize("name", RUNS)
def test_the_recorded_result_is_that_of_the_run(name: str, tmp_path: Path) -> None:
    make, spec = RUNS[name]
    ran = logged(tmp_path / "run.log", make(), spec)
    found = replay(tmp_path / "run.log", load_policy(spec))
    again = found.recorded
    assert found.same_decisions
    assert parts(again) == pytest.approx(parts(ran), rel=1e-9, abs=1e-9)
    assert again.waits == ran.waits
    assert (again.wait_s, again.tasks, again.digest) == (ran.wait_s, ran.tasks, ran.digest)
    assert (again.makespan_s, again.decisions, again.proposals) == (ran.makespan_s, ran.decisions, ran.proposals)
    assert msgspec.to_builtins(again.slowdown) == pytest.approx(msgspec.to_builtins(ran.slowdown), rel=1e-9)
    assert again.utilisation == pytest.approx(ran.utilisation, rel=1e-9)
    assert again.power == ran.power


@pytest.mark.parametrize("name", RUNS)
def test_the_area_under_the_recorded_trace_is_the_energy(name: str, tmp_path: Path) -> None:
    make, spec = RUNS[name]
    log = tmp_path / "run.log"
    logged(log, make(), spec)
    recorded = replay(log, load_policy(spec)).recorded
    assert area(recorded, log) == pytest.approx(recorded.energy.total - recorded.energy.scheduler, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in RUNS if name != "cold starts"])
def test_under_its_own_policy_it_would_have_been_as_it_was(name: str, tmp_path: Path) -> None:
    make, spec = RUNS[name]
    logged(tmp_path / "run.log", make(), spec)
    found = replay(tmp_path / "run.log", load_policy(spec), load_policy(spec))
    assert found.counterfactual is not None
    assert found.counterfactual.digest == found.recorded.digest
    assert found.counterfactual.tasks == found.recorded.tasks
    assert parts(found.counterfactual) == pytest.approx(parts(found.recorded), rel=1e-6, abs=1e-6)
    assert found.counterfactual.makespan_s == pytest.approx(found.recorded.makespan_s)
    assert found.counterfactual.slowdown.p95 == pytest.approx(found.recorded.slowdown.p95)
    assert found.saving == pytest.approx(0.0, abs=1e-6)


def really_ran(spec: str, log: Path) -> Path:
    """A log of real work: two calls of a second each, each of which started up for five."""
    b = Backend(load_policy(spec))
    b.node("a", LINEAR, cpu=1.0).node("b", CONCAVE, cpu=1.0)
    for task in ("t", "u"):
        b.submit(task)
        b.after(5.0).start(task)
        b.after(1.0).finish(task, 1.0)
    return b.write(log, spec)


@pytest.mark.parametrize("spec", ["fifo", "round-robin", "random", "least-joules", "spread"])
def test_what_really_ran_would_have_cost_the_same_under_its_own_policy(spec: str, log: Path) -> None:
    found = wattloom.replay(really_ran(spec, log), spec)
    assert found.reference is not None
    assert found.counterfactual is not None
    assert found.saving == 0.0
    assert (found.reference.policy, found.reference.digest) == (spec, found.counterfactual.digest)
    assert found.reference.makespan_s < found.recorded.makespan_s == 12.0


def test_what_really_ran_is_compared_simulation_with_simulation(log: Path) -> None:
    found = wattloom.replay(really_ran("fifo", log), "least-joules")
    assert found.reference is not None
    assert found.counterfactual is not None
    before, after = found.reference.energy.total, found.counterfactual.energy.total
    assert found.saving == pytest.approx((before - after) / before)
    assert found.to_json()["reference"]["policy"] == "fifo"
    assert any("times are real" in each for each in found.assumptions)


def test_the_log_of_a_simulation_is_its_own_reference(tmp_path: Path) -> None:
    make, spec = RUNS[next(iter(RUNS))]
    logged(tmp_path / "run.log", make(), spec)
    found = replay(tmp_path / "run.log", load_policy(spec), load_policy("fifo"), anew=load_policy(spec))
    assert found.reference is found.recorded
    assert "reference" not in found.to_json()


def test_what_really_ran_has_no_saving_where_its_policy_is_not_asked(log: Path) -> None:
    found = replay(really_ran("fifo", log), None, load_policy("pack"))
    assert (found.reference, found.saving) == (None, None)
    assert found.to_json()["reference"] is None


def test_energy_and_utilisation_count_as_long_as_nodes_still_change(tmp_path: Path) -> None:
    ran = logged(tmp_path / "run.log", never_fits(), "fifo")
    again = replay(tmp_path / "run.log", Fifo()).recorded
    assert ran.tasks.waiting == 1
    assert again.makespan_s < 500.0
    assert again.energy.idle > 26.0 * 500.0
    assert again.utilisation == ran.utilisation


# -- logs of other backends --------------------------------------------------------------------------------------------


def test_times_may_begin_anywhere_and_nodes_join_late(log: Path) -> None:
    b = Backend(time=EPOCH)
    b.function(seconds={"linear": 10.0}).machine(LINEAR)
    b.after(2.0)
    b.node("a")
    b.after(3.0)
    b.run("t1", 10.0)
    b.node("b")
    b.after(1.0)
    b.run("t2", 10.0)
    found = b.replayed(log, Pack())
    other = found.counterfactual
    assert other is not None
    assert found.recorded.makespan_s == pytest.approx(26.0)
    assert other.makespan_s == pytest.approx(26.0)
    assert found.recorded.energy.idle == pytest.approx(20.0 * (24.0 + 11.0))
    assert found.recorded.energy.active == pytest.approx(10.0 * 20.0)
    # In the simulation the first node is there from the first event: it says so.
    assert other.energy.idle == pytest.approx(20.0 * (26.0 + 11.0))
    assert any("1 node that joined before the first task" in note for note in found.assumptions)
    assert found.recorded.waits == [0.0, 0.0]
    assert found.recorded.power[0][0] == 0.0
    assert other.slowdown.p95 == pytest.approx(1.0)


def test_a_machine_that_comes_after_the_first_task_can_be_used(log: Path) -> None:
    b = Backend(time=EPOCH)
    b.function(seconds={"linear": 10.0})
    b.submit("t")
    b.after(5.0)
    b.node("late")
    b.start("t")
    b.after(10.0).finish("t", 10.0)
    other = b.replayed(log, Pack()).counterfactual
    assert other is not None
    assert other.tasks.finished == 1
    assert other.makespan_s == pytest.approx(15.0)


def test_a_node_that_leaves_and_comes_back_before_the_first_task_is_there_once(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.after(1.0).lose("a")
    b.after(1.0)
    b.node("a")
    b.run("t", 10.0)
    found = b.replayed(log, Fifo())
    assert found.counterfactual is not None
    assert found.counterfactual.energy.idle == pytest.approx(found.recorded.energy.idle)


def test_a_changed_node_draws_as_its_new_machine(log: Path) -> None:
    b = Backend()
    b.machine(ARM).node("a")
    b.run("t1", 10.0)
    b.change(builders.node("a", ARM))
    b.run("t2", 20.0)
    b.change(builders.node("a", ARM, cpu=2.0))
    found = b.replayed(log, Fifo())
    assert found.recorded.energy.idle == pytest.approx(20.0 * 10.0 + 5.0 * 20.0)
    assert found.recorded.energy.active == pytest.approx(10.0 * 10.0 + 2.0 * 20.0)
    assert area(found.recorded, log) == pytest.approx(340.0 + 100.0)
    assert "2 changes of nodes were not repeated" in found.assumptions


def test_a_change_before_the_first_task_is_taken_along(log: Path) -> None:
    b = Backend()
    b.machine(ARM).node("a").change(builders.node("a", ARM))
    b.run("t", 20.0)
    found = b.replayed(log, Fifo())
    assert found.counterfactual is not None
    assert parts(found.counterfactual) == pytest.approx(parts(found.recorded))
    assert not any("not repeated" in note for note in found.assumptions)


def test_a_node_changed_while_it_wakes_goes_on_waking(log: Path) -> None:
    other = builders.machine("other", sleep_w=1.0, wake_s=10.0, wake_j=300.0)
    b = Backend()
    b.machine(other).node("a", SLEEPER, asleep=True)
    b.submit("t")
    b.cancel("t")
    b.after(5.0).change(builders.node("a", other))
    b.after(5.0).awake("a")
    b.run("t2", 10.0)
    recorded = b.replayed(log).recorded
    assert recorded.energy.wake == pytest.approx(50.0 * 5.0 + 30.0 * 5.0)
    assert recorded.energy.idle == pytest.approx(200.0)
    assert area(recorded, log) == pytest.approx(400.0 + 200.0 + 100.0)


def test_a_node_that_does_not_wake_is_asleep_again(log: Path) -> None:
    b = Backend()
    b.node("z", SLEEPER, asleep=True)
    b.submit("t")
    assert Wake("z") in b.instructions()
    b.after(4.0).wake_failed("z")
    b.after(0.5).cancel("t")
    b.node("b")
    b.after(5.5)
    b.run("t2", 10.0)
    energy = b.replayed(log).recorded.energy
    assert energy.wake == pytest.approx(50.0 * 4.0)
    assert energy.sleep == pytest.approx(2.0 * 16.0)


def test_a_node_that_does_not_fall_asleep_is_awake_again(log: Path) -> None:
    b = Backend(load_policy("least-joules"))
    b.function(seconds={"sleeper": 10.0}).node("a", SLEEPER)
    b.run("t1", 10.0)
    b.pass_time(500.0 / 18.0 + 1.0)
    asleep_since = next(event.time for event, told in b.recorded if Sleep("a") in told)
    b.sleep_failed("a")
    woken = b.time
    b.after(5.0)
    b.run("t2", 10.0)
    energy = b.replayed(log).recorded.energy
    assert energy.sleep == pytest.approx(2.0 * (woken - asleep_since))
    assert energy.idle == pytest.approx(20.0 * (b.time - (woken - asleep_since)))


def test_the_draw_changes_with_the_instruction_and_not_at_the_next_event(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.run("t1", 100.0)
    recorded = b.replayed(log).recorded
    assert [watts for _, watts in recorded.power] == pytest.approx([30.0] * len(recorded.power))
    assert area(recorded, log) == pytest.approx(3000.0)


def test_the_assumption_on_the_schedulers_energy_is_named(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.run("t", 1.0)
    found = b.replayed(log)
    assert "the scheduler's own energy is counted at the default cost per proposal" in found.assumptions
    assert found.recorded.energy.scheduler == pytest.approx(30e-6 * 10.0)


@pytest.mark.parametrize("own", [("aarch64",), ()])
def test_a_tasks_own_architectures_may_be_wider_than_its_functions(own: tuple[str, ...], log: Path) -> None:
    b = Backend(Pack())
    b.define(builders.function("f", requirements(1.0, arch=("x86_64",)), seconds={"linear": 10.0}))
    b.node("z", LINEAR).node("a", ARM)
    b.submit("t0")
    b.submit("t1", needs=requirements(1.0, arch=own))
    for task in ("t0", "t1"):
        b.start(task)
    b.after(10.0)
    for task in ("t0", "t1"):
        b.finish(task, 10.0)
    other = b.replayed(log, Fifo()).counterfactual
    assert other is not None
    assert other.tasks.finished == 2


def test_architectures_nobody_asked_for_do_not_count_for_the_slowdown(log: Path) -> None:
    b = Backend()
    b.define(builders.function("f", requirements(1.0, arch=("aarch64",)), seconds={"arm": 10.0}))
    b.node("z", LINEAR).node("a", ARM)
    b.submit("t", needs=requirements(1.0, arch=("aarch64",)))
    b.start("t")
    b.after(10.0).finish("t", 10.0)
    assert b.replayed(log).recorded.slowdown.p50 == pytest.approx(1.0)


def test_what_is_left_out_of_the_simulation_is_named(log: Path) -> None:
    b = Backend()
    b.node("a").node("s", SLEEPER)
    b.submit("t", retries=1)
    b.place_failed("t")
    b.asleep("s")
    b.pass_time(5.0)
    b.start("t")
    b.after(1.0).fail("t")
    b.start("t")
    b.after(1.0).finish("t", 1.0)
    notes = b.replayed(log, Fifo()).assumptions
    assert "1 node's falling asleep by itself was not repeated" in notes
    assert "1 failure of a function's own was not repeated" in notes
    assert "1 failure of the machinery's was not repeated" in notes


def test_joules_are_missing_only_of_machines_that_are_in_use(log: Path) -> None:
    """Not of one that no node is of, nor of what a node was before its profile was given."""
    never, before, busy, idle = (builders.machine(name, watts=()) for name in ("never", "before", "busy", "idle"))
    b = Backend()
    b.machine(never).machine(before).machine(LINEAR)
    b.node("a", before).change(builders.node("a", LINEAR))
    b.run("t1", 10.0)
    assert not any("no power curve" in note for note in b.replayed(log, Fifo()).assumptions)
    b.node("b", busy, cpu=8.0).node("c", idle)
    b.submit("t2", needs=requirements(8.0))
    b.start("t2")
    b.after(10.0).finish("t2", 10.0)
    b.lose("b")
    assert "no power curve for busy, idle: their joules are missing" in b.replayed(log, Fifo()).assumptions


# -- logs that are wrong -----------------------------------------------------------------------------------------------


def written(path: Path, *records: ev.AnyEvent | AnyInstruction) -> Path:
    """A log in which a machine and a function are defined and node a has joined, up to line 4."""
    with path.open("wb") as file:
        writer = LogWriter(file, Header(VERSION, "fifo", "test"))
        for event in (
            ev.MachineDefined(0.0, LINEAR),
            ev.FunctionDefined(0.0, builders.function()),
            ev.NodeJoined(0.0, builders.node("a")),
        ):
            writer.write(event, [])
    with path.open("ab") as file:
        file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
    return path


SUBMITTED = ev.TaskSubmitted(1.0, builders.task("t"))


@pytest.mark.parametrize(
    ("records", "line", "name"),
    [
        ((SUBMITTED, Place("t", 1, "ghost", "default", 0.0)), 6, "ghost"),
        ((SUBMITTED, Place("ghost", 1, "a", "default", 0.0)), 6, "ghost"),
        ((SUBMITTED, Wait("ghost", Reason.NO_ROOM)), 6, "ghost"),
        ((SUBMITTED, Conclude("ghost", "failed", Reason.FUNCTION_FAILED)), 6, "ghost"),
        ((Wake("ghost"),), 5, "ghost"),
        ((ev.NodeLost(1.0, "ghost"),), 5, "ghost"),
        ((ev.NodeAwake(1.0, "ghost"),), 5, "ghost"),
        ((ev.NodeChanged(1.0, builders.node("ghost")),), 5, "ghost"),
        ((ev.NodeJoined(1.0, builders.node("b", ARM)),), 5, "arm"),
        ((ev.NodeJoined(1.0, builders.node("a")),), 5, "here already"),
        ((ev.TaskStarted(1.0, "ghost", 1),), 5, "ghost"),
        ((ev.TaskFinished(1.0, "ghost", 1),), 5, "ghost"),
        ((ev.TaskSubmitted(1.0, builders.task("t", "ghost")),), 5, "ghost"),
        ((ev.InstructionFailed(1.0, "wake", node="ghost"),), 5, "ghost"),
        ((SUBMITTED, ev.TaskSubmitted(0.5, builders.task("u"))), 6, "backwards"),
        # The decisions differ from here on, so the engine is no judge any more.
        ((SUBMITTED, Wait("t", Reason.NO_ROOM), ev.TaskFinished(2.0, "ghost", 1)), 7, "ghost"),
    ],
)
@pytest.mark.parametrize("command", ["replay", "why"])
def test_an_unknown_name_in_a_log_is_an_error_with_its_line(
    command: str, records: tuple[ev.AnyEvent | AnyInstruction, ...], line: int, name: str, log: Path
) -> None:
    written(log, *records)
    with pytest.raises(LogError, match=name) as caught:
        wattloom.replay(log, "pack") if command == "replay" else wattloom.why("t", log)
    assert caught.value.field == f"{log}:{line}"


def test_an_event_that_cannot_be_true_is_an_error_with_its_line(log: Path) -> None:
    written(log, SUBMITTED, ev.TaskFinished(2.0, "t", 7))
    log.write_bytes(log.read_bytes().replace(b'"fifo"', b'"pack"'))
    placed = Place("t", 1, "a", "default", 1.0)
    engine = Harness(Pack())
    for record in Log(log).events():
        if not isinstance(record, ev.TaskFinished):
            placed = next((i for i in engine.tell(record) if isinstance(i, Place)), placed)
    written(log, SUBMITTED, placed, ev.TaskFinished(2.0, "t", 7))
    log.write_bytes(log.read_bytes().replace(b'"fifo"', b'"pack"'))
    with pytest.raises(LogError, match=r"cannot be replayed: at 2\.0 s, attempt") as caught:
        wattloom.replay(log)
    assert caught.value.field == f"{log}:7"


def test_an_instruction_before_any_event_is_an_error(log: Path) -> None:
    log.write_bytes(written(log).read_bytes().splitlines(keepends=True)[0] + b'{"instruction":"conclude"}\n')
    with pytest.raises(LogError):
        wattloom.replay(log)


def test_an_empty_log_replays_to_nothing(log: Path) -> None:
    Backend().write(log)
    found = wattloom.replay(log, "pack")
    assert found.counterfactual is not None
    assert found.recorded.energy.total == found.counterfactual.energy.total == 0.0
    assert found.same_decisions
    assert found.saving is None


def test_a_log_cut_off_before_the_last_instructions_is_no_other_decision(log: Path) -> None:
    b = Backend()
    b.node("a")
    b.submit("t")
    b.write(log)
    lines = log.read_bytes().splitlines(keepends=True)
    assert b'"place"' in lines[-1]
    for end in (b"", lines[-1][:20]):
        log.write_bytes(b"".join(lines[:-1]) + end)
        assert wattloom.replay(log).same_decisions


def test_a_policy_that_decides_otherwise_now_is_no_obstacle_to_the_recorded_energy(log: Path) -> None:
    b = Backend()
    b.node("a", SLEEPER, asleep=True).node("b")
    b.submit("t")
    b.after(10.0).awake("a")
    b.start("t")
    b.after(10.0).finish("t", 10.0)
    right = b.replayed(log).recorded
    found = replay(log, Scripted(lambda ask, view: Refusal(Reason.NO_ROOM)))
    assert not found.same_decisions
    assert right.energy.wake == 500.0
    assert parts(found.recorded) | {"scheduler": 0.0} == pytest.approx(parts(right) | {"scheduler": 0.0})
    assert (found.recorded.tasks, found.recorded.waits) == (right.tasks, right.waits)
    assert any("decides otherwise than recorded" in note for note in found.assumptions)


# -- progress ----------------------------------------------------------------------------------------------------------


def test_progress_is_told_while_folding_and_while_simulating(log: Path) -> None:
    trial = trial_of(parse(MACHINES.format(function="", rate=1).replace("count = 80", "count = 1500"), "test"), 0)
    logged(log, trial, "fifo")
    told: list[tuple[int, int]] = []
    wattloom.replay(log, progress=lambda done, total: told.append((done, total)))
    assert told
    assert {total for _, total in told} == {1500}
    both: list[tuple[int, int]] = []
    wattloom.replay(log, "pack", lambda done, total: both.append((done, total)))
    assert both == sorted(both)
    assert {total for _, total in both} == {3000}
    assert both[-1][0] > 1500
    asked: list[tuple[int, int]] = []
    wattloom.why("t1", log, lambda done, total: asked.append((done, total)))
    assert asked == told
