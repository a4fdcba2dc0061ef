"""Makes a log of what no simulation tells: `python -m tests.golden.told_log LOG`.

Owns what happens in it: one of each kind that version 5 of the format has more than version 4, among tasks that come,
wait, run and end. The engine is the real one, under a policy that every later version has. (What a policy asks of
running work needs a policy that asks, which none of ours does.)
"""

import sys
from pathlib import Path

from wattloom.history.log import VERSION, Header, LogWriter
from wattloom.policies.loading import load_policy
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import ALL_MOVES
from wattloom.testing.builders import ARM, LINEAR, SLEEPER, requirements, task
from wattloom.testing.harness import Harness

POLICY = "least-joules"
TASKS = [f"t{number}" for number in range(1, 21)]


def main() -> None:
    told = happened()
    header = Header(VERSION, POLICY, "simulation", 0, "told", moves=tuple(sorted(ALL_MOVES)))
    with Path(sys.argv[1]).open("wb") as file:
        writer = LogWriter(file, header)
        for event, instructions in told.recorded:
            writer.write(event, instructions)


def happened() -> Harness:
    h = Harness(load_policy(POLICY))
    for name, machine in (("a", LINEAR), ("b", LINEAR), ("r", ARM), ("s", SLEEPER)):
        h.node(name, machine)
    h.function("f", requirements(2), seconds={each.name: 30.0 for each in (LINEAR, ARM, SLEEPER)}).function("g")
    h.tell(ev.SignalChanged(h.time, "carbon", 310.0, ((3600.0, 250.0),)))
    for number, name in enumerate(TASKS):
        h.pass_time(1.0)
        h.submit(name, "g" if number % 5 == 4 else "f", idempotent=True)
        if number == 6:
            in_between(h)
    ends(h)
    return h


def in_between(h: Harness) -> None:
    """Somebody else's task is found, grows and is gone; ours get on; nodes are as others have made them."""
    found = task("x1", "f", requirements(1))
    h.tell(ev.TaskFound(h.time, found, "b", variant="default"))
    h.tell(ev.TaskChanged(h.time, task("x1", "f", requirements(1.5))))
    h.start("t1")
    h.tell(ev.TaskProgressed(h.time, "t1", h.attempt("t1"), 0.5, "t1-half", 1 << 20))
    h.tell(ev.FrequencyChanged(h.time, "a", 0.8))
    h.tell(ev.InstanceReady(h.time, "b", "f"))
    h.tell(ev.PlanChanged(h.time, "9f86d081884c7d65"))
    h.tell(ev.ModelChanged(h.time, "60303ae22b998861"))
    h.pass_time(2.0)
    h.tell(ev.TaskRemoved(h.time, "x1", "its owner took it away"))
    h.tell(ev.InstanceGone(h.time, "b", "f"))


def ends(h: Harness) -> None:
    for _ in range(len(TASKS)):
        h.pass_time(10.0)
        for name in TASKS:
            if h.where(name) is not None and h.record(name).allocation is not None:
                h.finish(name, seconds=10.0)
    assert all(h.outcome(name) == "finished" for name in TASKS)
    h.tell(ev.FunctionsForgotten(h.time, ("g",)))


if __name__ == "__main__":
    main()
