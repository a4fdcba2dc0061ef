"""Rules about where tasks may go: the engine's answer is that of the naive filters, whatever has happened before."""

import random
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.engine.naive_rules import There, feasible
from tests.engine.random_rules import some_needs, some_node

from wattloom.cluster.reasons import Reason
from wattloom.history.explanation import explain
from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.policies.fifo import Fifo
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.pack import Pack
from wattloom.policies.protocol import Policy
from wattloom.policies.random_choice import RandomChoice
from wattloom.policies.round_robin import RoundRobin
from wattloom.policies.spread import Spread
from wattloom.policies.view import Ask
from wattloom.policies.weighted import Weighted
from wattloom.scheduling import events as ev
from wattloom.scheduling.state import Stage
from wattloom.testing import builders
from wattloom.testing.harness import Harness
from wattloom.workload.requirements import Requirements
from wattloom.workload.shape import Shape

NOT_SHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A seed does not become simpler by being smaller."""
POLICIES: tuple[Callable[[], Policy], ...] = (
    Fifo, Pack, MarginalEnergy, RoundRobin, RandomChoice, Weighted, LeastJoules, ExecCapacity, Spread,
)  # fmt: skip
BY_CHOICE = (Reason.WAITING_IS_CHEAPER, Reason.WAITING_IS_SOONER)
STEPS = 25
NO_TASKS_SHAPE = 1_000_000
"""Shapes that are only asked for have such numbers: the engine does not know them."""


class World:
    """An engine, and the same cluster as plain lists."""

    def __init__(self, seed: int, new_policy: Callable[[], Policy]) -> None:
        self.draw = random.Random(seed)
        self.probes = 0
        self.h = Harness(new_policy=new_policy)
        self.h.machine(builders.LINEAR)
        self.h.define(builders.function("f", seconds={"linear": 10.0}))
        for number in range(self.draw.randint(1, 6)):
            self.join(f"n{number}")

    def nodes(self) -> list[str]:
        return list(self.h.engine.ledger.nodes)

    def there(self, without: str = "") -> list[There]:
        tasks = self.h.engine.ledger.tasks.values()
        return [There(r.shape.requirements, r.node, r.holding.leaving) for r in tasks if r.node and r.name != without]

    def naive(self, needs: Requirements, without: str = "") -> set[str]:
        return feasible(needs, list(self.h.engine.ledger.nodes.values()), self.there(without))

    def answer(self, needs: Requirements) -> set[str]:
        """The nodes that the engine's view offers."""
        ledger = self.h.engine.ledger
        ledger.mind_the_rules()
        self.probes += 1
        shape = Shape(NO_TASKS_SHAPE + self.probes, ledger.functions["f"], needs, 0.5, False)
        return {name for name, node in ledger.index.nodes.items() if ledger.view.takes(shape, node)}

    # -- what can happen -----------------------------------------------------------------------------------------------

    def join(self, name: str) -> None:
        self.h.tell(ev.NodeJoined(self.h.time, some_node(self.draw, name)))

    def step(self) -> None:
        what = self.draw.choice(
            (self.submit, self.submit, self.submit, self.find, self.find, self.leave, self.finish, self.finish,
             self.come_or_go, self.change)
        )  # fmt: skip
        self.h.time += 1.0
        what()

    def submit(self) -> None:
        name = f"t{self.h.engine.ledger.arrivals}"
        needs = some_needs(self.draw)
        for number in range(self.draw.choice((1, 1, 3))):
            self.h.tell(ev.TaskSubmitted(self.h.time, builders.task(f"{name}-{number}", "f", needs, idempotent=True)))

    def find(self) -> None:
        if self.nodes():
            name = f"found-{self.h.engine.ledger.arrivals}"
            task = builders.task(name, "f", some_needs(self.draw), idempotent=True)
            self.h.tell(ev.TaskFound(self.h.time, task, self.draw.choice(self.nodes())))

    def on_nodes(self) -> list[str]:
        return [name for name, r in self.h.engine.ledger.tasks.items() if r.stage in (Stage.PLACED, Stage.RUNNING)]

    def leave(self) -> None:
        staying = [name for name in self.on_nodes() if not self.h.engine.ledger.tasks[name].holding.leaving]
        if staying:
            self.h.tell(ev.TaskLeaving(self.h.time, self.draw.choice(staying)))

    def finish(self) -> None:
        if self.on_nodes():
            self.h.finish(self.draw.choice(self.on_nodes()))

    def come_or_go(self) -> None:
        name = f"n{self.draw.randrange(8)}"
        if name in self.nodes():
            self.h.tell(ev.NodeLost(self.h.time, name))
        else:
            self.join(name)

    def change(self) -> None:
        if self.nodes():
            node = some_node(self.draw, self.draw.choice(self.nodes()))
            self.h.tell(ev.NodeChanged(self.h.time, node))


@pytest.mark.parametrize("new_policy", POLICIES)
@settings(max_examples=8, deadline=None, phases=NOT_SHRUNK)
@given(seed=st.integers(0, 2**32))
def test_tasks_go_where_kubernetes_filters_let_them_and_wait_only_if_that_is_nowhere(
    new_policy: Callable[[], Policy], seed: int
) -> None:
    world = World(seed, new_policy)
    ledger = world.h.engine.ledger
    for _ in range(STEPS):
        world.step()
        for _ in range(3):
            needs = some_needs(world.draw)
            assert world.answer(needs) == world.naive(needs), needs
        for record in ledger.tasks.values():
            lane = world.h.engine.queue.lanes.get(record.shape.index)
            if record.stage == Stage.QUEUED and lane is not None and lane.blocked_by not in BY_CHOICE:
                assert not world.naive(record.shape.requirements), f"{record.name} could go somewhere"
    world.h.replay()


@settings(max_examples=30, deadline=None, phases=NOT_SHRUNK)
@given(seed=st.integers(0, 2**32))
def test_each_task_was_allowed_on_the_node_it_was_placed_on(seed: int) -> None:
    world = World(seed, Pack)
    for number in range(20):
        needs = some_needs(world.draw)
        may = world.naive(needs)
        world.h.tell(ev.TaskSubmitted(0.0, builders.task(f"t{number}", "f", needs)))
        where = world.h.where(f"t{number}")
        assert where in may if may else where is None


@settings(max_examples=30, deadline=None, phases=NOT_SHRUNK)
@given(seed=st.integers(0, 2**32))
def test_explanations_count_every_node_once_and_those_without_reason_are_the_allowed(seed: int) -> None:
    world = World(seed, Fifo)
    for _ in range(STEPS):
        world.step()
    needs = some_needs(world.draw)
    ledger, engine = world.h.engine.ledger, world.h.engine
    may = world.naive(needs)
    task = builders.task("probe", "f", needs)
    ledger.index.kinds_changed()
    asked = explain(Ask(task, ledger.shape_of(task), 0.0, 0), ledger.view, engine.policy)
    assert sum(candidate.nodes for candidate in asked.candidates) == len(ledger.nodes)
    assert sum(candidate.nodes for candidate in asked.candidates if candidate.forecast is not None) == len(may)
    assert asked.node in may if may else asked.node is None
