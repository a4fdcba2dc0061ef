"""Somebody's + idle + ours + nobody's = meter, to the last bit, whoever comes and goes, whatever the meter does."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.metering.scripted import Scripted
from tests.metering.trees import machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.attribution.idle_policy import POLICIES, IdlePolicy
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.cpu_weights import ByCpuTime
from wattloom.monitoring.entity_counters import KEEP_S, MOST_ENDED
from wattloom.monitoring.process import Process
from wattloom.monitoring.snapshot import Entity, Parts, Snapshot
from wattloom.monitoring.split import Who

OWN = 99
PLACES = (
    Place(),
    Place("/system.slice/ssh.service", unit="ssh.service"),
    Place("/docker/a", "a" * 64, "docker"),
    Place("/kubepods/b", "b" * 64, "containerd", "pod-1"),
    Place("/kubepods/c", "c" * 64, "containerd", "pod-1"),
    Place("/machine.slice/vm", vm="guest"),
    Place("/kubepods/d", "d" * 64, "cri-o", "pod-2", "nested"),
)
pids = st.integers(1, 12)
places = st.sampled_from(PLACES)
seconds = st.floats(0, 3)


def adds_up(parts: Parts) -> bool:
    return parts.meter_j == parts.entities_j + parts.idle_j + parts.overhead_j + parts.unattributed_j


def joules(entities: tuple[Entity, ...]) -> float:
    return sum(entity.joules for entity in entities)


class Uneven(ByCpuTime):
    """CPU seconds of every process are of another weight."""

    counted = True

    def factor(self, who: Who) -> float:
        return 0.2 + who.pid % 5 if isinstance(who, Process) else 1.0


class Life(RuleBasedStateMachine):
    """Births, deaths, numbers used again, gaps, breaks, naps, clocks that jump."""

    @initialize(policy=st.sampled_from(POLICIES), known=st.booleans(), even=st.booleans())
    def begin(self, policy: IdlePolicy, known: bool, even: bool) -> None:
        self.census, self.meter, self.now, self.asleep = ScriptedCensus(), Scripted(), 0.0, 0.0
        self.meter.model_error = 0.3
        self.census.cores = {PLACES[2]: 1.0, PLACES[3]: 0.5}
        profile = machine("wall" if known else "package", provenance="measured")
        cpu_weights = ByCpuTime() if even else Uneven()
        self.accountant = Accountant(
            self.census, self.meter, profile, policy=policy, cpu_weights=cpu_weights, own_pid=OWN
        )
        self.accountant._counters._keep_s = 5.0
        self.census.start(OWN)
        self.shown: Snapshot = self.accountant.sample(self.now)
        self.before: dict[str, float] = {}
        self.elapsed = 0.0

    @rule(pid=pids, place=places)
    def born(self, pid: int, place: Place) -> None:
        self.census.start(pid, place)

    @rule(pid=pids)
    def died(self, pid: int) -> None:
        self.census.end(pid)

    @rule(pid=pids, place=places, ran=st.floats(0.1, 1), later=st.floats(0.1, 10))
    def lived_and_died(self, pid: int, place: Place, ran: float, later: float) -> None:
        """A whole life, seen and paid for."""
        self.census.start(pid, place)
        self.census.run(pid, ran)
        self.meter.joules += 200.0
        self.looks(1.0)
        self.census.end(pid)
        self.looks(later)

    @rule(pid=pids, ran=seconds)
    def ran(self, pid: int, ran: float) -> None:
        if pid in self.census.living:
            self.census.run(pid, ran)

    @rule(ran=st.floats(0, 0.1))
    def watched(self, ran: float) -> None:
        self.census.run(OWN, ran)

    @rule(place=places, ran=seconds, parent=st.sampled_from(["", "make"]))
    def came_and_went(self, place: Place, ran: float, parent: str) -> None:
        self.census.came_and_went(place, ran, parent)

    @rule(ran=seconds)
    def nobody_ran(self, ran: float) -> None:
        self.census.busy_s += ran

    @rule(counted=st.floats(0, 200))
    def counts(self, counted: float) -> None:
        self.meter.joules += counted

    @rule(problem=st.sampled_from(["", "", "unplugged"]))
    def gap(self, problem: str) -> None:
        self.meter.problem = problem

    @rule()
    def breaks_off(self) -> None:
        self.meter.epoch += 1
        self.meter.joules = 0.0

    @rule()
    def falls(self) -> None:
        self.meter.joules /= 2.0

    @rule(slept=st.floats(1, 1e5))
    def sleeps(self, slept: float) -> None:
        self.asleep += slept

    @rule(later=st.floats(0.01, 20))
    def look_later(self, later: float) -> None:
        self.looks(later)

    def looks(self, later: float) -> None:
        self.now += later
        self.shown = self.accountant.sample(self.now, self.asleep)

    @rule(back=st.floats(0.01, 5))
    def looks_with_a_clock_that_went_back(self, back: float) -> None:
        self.shown = self.accountant.sample(self.now - back, self.asleep)

    @invariant()
    def all_adds_up(self) -> None:
        if not hasattr(self, "shown"):
            return
        shown = self.shown
        assert adds_up(shown.last)
        assert adds_up(shown.totals)
        assert joules(shown.processes) + shown.gone["process"] == shown.totals.entities_j
        outside = tuple(vm for vm in shown.vms if not vm.container)
        whole = joules(shown.containers) + joules(shown.units) + joules(outside)
        assert whole + sum(shown.gone[kind] for kind in ("container", "unit", "vm")) == shown.totals.entities_j
        assert all(getattr(shown.totals, field) >= 0.0 for field in Parts.__struct_fields__)

    @invariant()
    def no_count_falls(self) -> None:
        if not hasattr(self, "shown"):
            return
        shown = self.shown
        counts = {field: getattr(shown.totals, field) for field in Parts.__struct_fields__}
        counts |= {f"gone {kind}": count for kind, count in shown.gone.items()}
        for kind in ("process", "container", "pod", "vm", "unit"):
            entities = shown.of(kind)
            counts[kind] = joules(entities) + shown.gone[kind]
            counts |= {f"{kind} {entity.key}": entity.joules for entity in entities}
        for name, count in counts.items():
            # Machines inside containers are counted there when they are gone: their sum alone may fall.
            assert name == "vm" or count >= self.before.get(name, 0.0), name
        self.before = counts


Life.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLife: Any = Life.TestCase


@pytest.mark.parametrize("policy", POLICIES)
def test_three_who_ran_pay_in_proportion_and_the_rest_is_idle(policy: IdlePolicy) -> None:
    census, meter = ScriptedCensus(), Scripted()
    accountant = Accountant(census, meter, machine(provenance="measured"), policy=policy, own_pid=OWN)
    for pid, place in ((1, PLACES[2]), (2, PLACES[3]), (OWN, PLACES[0])):
        census.start(pid, place)
    census.cores = {PLACES[2]: 1.5}
    accountant.sample(0.0)
    census.run(1, 0.5)
    census.run(2, 0.25)
    census.run(OWN, 0.25)
    meter.joules = 30.0  # 10 W idle, and 20 J for a CPU second
    shown = accountant.sample(1.0)
    active = {entity.key[:1]: entity.active_j for entity in shown.containers}
    assert active == {"a": 10.0, "b": 5.0}
    assert adds_up(shown.last)
    expected = {"node": (10.0, 5.0, 0.0), "pro-rata": (0.0, 0.0, 15.0), "reserved": (2.5, 1.25, 11.25)}
    found = (shown.last.idle_j, shown.last.overhead_j, shown.last.shared_j)
    assert found == pytest.approx(expected[policy], abs=1e-6)


def test_who_is_heavier_pays_more_and_together_they_pay_the_same() -> None:
    census, meter = ScriptedCensus(), Scripted()
    accountant = Accountant(census, meter, machine(provenance="measured"), cpu_weights=Uneven(), own_pid=OWN)
    census.start(1)  # 1.2 times a CPU second
    census.start(2)  # 2.2 times
    accountant.sample(0.0)
    census.run(1, 0.5)
    census.run(2, 0.5)
    meter.joules = 44.0
    shown = accountant.sample(1.0)
    joules = {entity.name: entity.active_j for entity in shown.processes}
    assert joules == {"p1": pytest.approx(12.0), "p2": pytest.approx(22.0)}


def test_the_ended_are_kept_for_a_while_and_then_only_in_the_sum_of_their_kind() -> None:
    census, meter = ScriptedCensus(), Scripted()
    accountant = Accountant(census, meter, machine(provenance="measured"), own_pid=OWN)
    census.start(1, PLACES[3])
    accountant.sample(0.0)
    census.run(1, 1.0)
    meter.joules = 30.0
    accountant.sample(1.0)
    census.end(1)
    shown = accountant.sample(KEEP_S)
    assert [(each.ended, each.active_j) for each in shown.containers] == [(True, 20.0)]
    shown = accountant.sample(KEEP_S + 2.0)
    assert (shown.processes, shown.containers, shown.pods) == ((), (), ())
    assert (shown.gone["process"], shown.gone["container"], shown.gone["pod"]) == (20.0, 20.0, 20.0)


def test_ten_thousand_that_ended_do_not_stay_in_memory() -> None:
    census, meter = ScriptedCensus(), Scripted()
    accountant = Accountant(census, meter, machine(provenance="measured"), own_pid=OWN)
    accountant.sample(0.0)
    for look in range(1, 11):
        for pid in range(1000 * look, 1000 * (look + 1)):
            census.start(pid)
            census.run(pid, 0.0001)
        meter.joules += 100.0
        accountant.sample(float(look))
        for pid in range(1000 * look, 1000 * (look + 1)):
            census.end(pid)
    shown = accountant.sample(12.0)
    assert len(shown.processes) <= MOST_ENDED
    assert joules(shown.processes) + shown.gone["process"] == shown.totals.entities_j
