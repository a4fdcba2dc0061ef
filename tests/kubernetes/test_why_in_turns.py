"""Why is worked out from the log within the scheduler's own loop: in turns, so that deciding goes on."""

import asyncio
import time
from pathlib import Path

import pytest

from wattloom.history.log import VERSION, Header, LogWriter
from wattloom.history.pod_names import finding
from wattloom.history.steps import Steps, at_once
from wattloom.history.why import Why, answering
from wattloom.kubernetes.scheduler.answering import TURN_S, in_turns
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.testing.builders import function, machine, node
from wattloom.workload.task import Task

BLOCKED_S = 0.05
PODS = 1500


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_after_a_turn_others_have_theirs() -> None:
    clock = Clock()
    done: list[str] = []

    def steps() -> Steps[str]:
        for _ in range(12):
            clock.now += TURN_S / 4
            done.append("step")
            yield
        return "known"

    async def other() -> None:
        while True:
            done.append("other")
            await asyncio.sleep(0)

    async def both() -> str:
        task = asyncio.create_task(other())
        try:
            return await in_turns(steps(), clock)
        finally:
            task.cancel()

    assert asyncio.run(both()) == "known"
    runs = "".join("s" if each == "step" else "o" for each in done)
    assert max(map(len, runs.replace("o", " ").split())) <= 5
    assert runs.count("s") == 12


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a scheduler with some thousand events."""
    path = tmp_path_factory.mktemp("log") / "decisions.log"
    engine = Engine(load_policy("least-joules"))
    with path.open("wb") as file:
        writer = LogWriter(file, Header(VERSION, "least-joules", "kubernetes"))
        for event in happened():
            writer.write(event, engine.handle(event))
    return path


def happened() -> list[ev.AnyEvent]:
    events: list[ev.AnyEvent] = [ev.MachineDefined(0.0, machine()), ev.FunctionDefined(0.0, function("f"))]
    events += [ev.NodeJoined(0.0, node(f"n{n}")) for n in range(50)]
    for n in range(PODS):
        events.append(ev.TaskSubmitted(float(n), Task(f"default/pod-{n}#u", "f")))
        events.append(ev.TaskFinished(n + 0.5, f"default/pod-{n}#u", 1, 3.0))
    return events


def explained(log: Path, pod: str) -> Steps[Why]:
    path, task = yield from finding(log, pod)
    return (yield from answering(path, task, load_policy("least-joules")))


def test_the_loop_is_never_held_for_long_and_the_answer_is_the_same(log: Path) -> None:
    """In seconds of this thread's own: what else the machine does is not held against it."""
    gaps: list[float] = []

    async def other() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            gaps.append(now - before)
            before = now

    async def both() -> Why:
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        try:
            return await in_turns(explained(log, f"default/pod-{PODS - 1}"))
        finally:
            task.cancel()

    found = asyncio.run(both())
    assert found == at_once(explained(log, f"default/pod-{PODS - 1}"))
    assert found.same_decisions
    assert [each.task for each in found.explanations] == [f"default/pod-{PODS - 1}#u"]
    assert max(gaps) < BLOCKED_S
    assert sum(gap > TURN_S / 2 for gap in gaps) > 3, "it took several turns, or nothing was tried"


def test_what_is_abandoned_is_closed() -> None:
    closed: list[bool] = []

    def steps() -> Steps[None]:
        try:
            while True:
                yield
        finally:
            closed.append(True)

    async def given_up() -> None:
        async with asyncio.timeout(0.05):
            await in_turns(steps())

    with pytest.raises(TimeoutError):
        asyncio.run(given_up())
    assert closed == [True]
