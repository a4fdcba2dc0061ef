"""One price: the same CPU second costs the same, whoever keeps the account of it.

A made machine of two cores goes through the same minutes three times: once with the executor's account, once with the
exporter's and once with that of `measure`. One process works for us, others work beside it, and the meter counts.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.metering.scripted import Scripted
from tests.metering.trees import ProcTree, machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.attribution.account import Account
from wattloom.energy.forecast import Provenance
from wattloom.energy.measured import Energy
from wattloom.machines.profile import MachineProfile
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.measurement import BlockAccount

IDLE_W, CORE_W, OURS, OTHERS = 10.0, 15.0, 1.6, 0.8
"""Ours draws twice what the others do."""
WORKER, OWN_PID = 1, 99


class Second(msgspec.Struct, frozen=True):
    """CPU seconds of our process and of everybody else, and what the meter counted."""

    ours_s: float
    others_s: float
    joules: float


def trace(seconds: int = 120, seed: int = 1) -> list[Second]:
    """The machine idles now and then, and works in mixes that change. CPU time comes in ticks."""
    chance, found = Random(seed), []
    for number in range(seconds):
        ours, others = (0.0, 0.0) if number % 7 == 3 else (chance.randint(0, 50) / 50, chance.randint(0, 50) / 50)
        watts = IDLE_W + CORE_W * (OURS * ours + OTHERS * others)
        found.append(Second(ours, others, watts * chance.gauss(1.0, 0.01)))
    return found


def scripted(provenance: Provenance) -> Scripted:
    meter = Scripted()
    meter.quantity, meter.provenance, meter.model_error = "package", provenance, 0.4
    meter.resolution_j = 0.01  # one that is surer than any is makes much of the last bit of a busy time
    return meter


def by_executor(told: list[Second], meter: Scripted, profile: MachineProfile, folder: Path) -> Iterator[float]:
    """Joules of our process, second by second."""
    proc = ProcTree(folder)
    account, used = Account(meter, profile, proc=folder), 0.0
    proc.process(WORKER, 0.0)
    account.worker_started(WORKER)
    account.sample(0.0)
    account.running(WORKER, "task", "f")
    for number, second in enumerate(told):
        before, used = account.held_j(WORKER), used + second.ours_s
        meter.joules += second.joules
        proc.work(second.ours_s + second.others_s)
        proc.process(WORKER, used)
        account.sample(number + 1.0)
        yield account.held_j(WORKER) - before


def by_exporter(
    told: list[Second], meter: Scripted, profile: MachineProfile, neighbour: int | None = None
) -> Iterator[float]:
    """`neighbour`: the others are one process with this PID; else nobody sees them, as the executor does not."""
    census = ScriptedCensus()
    for pid in (WORKER, neighbour or WORKER):
        census.start(pid)
    accountant, before = Accountant(census, meter, profile, own_pid=OWN_PID), 0.0
    accountant.sample(0.0)
    for number, second in enumerate(told):
        meter.joules += second.joules
        census.run(WORKER, second.ours_s)
        census.busy_s += 0.0 if neighbour else second.others_s
        if neighbour:
            census.run(neighbour, second.others_s)
        shown = accountant.sample(number + 1.0)
        joules = sum(each.active_j for each in shown.processes if each.pid == WORKER)
        yield joules - before
        before = joules


def by_measure(told: list[Second], meter: Scripted, profile: MachineProfile, folder: Path) -> float:
    """All of it, as one block."""
    proc = ProcTree(folder)
    account, used = BlockAccount(meter, profile, proc=folder), 0.0
    account.begin(0.0, 0.0)
    for number, second in enumerate(told):
        meter.joules += second.joules
        proc.work(second.ours_s + second.others_s)
        used += second.ours_s
        account.sample(number + 1.0, used)
    energy = account.end(float(len(told)), used).energy
    assert isinstance(energy, Energy)
    return energy.joules


CURVES = {
    "a curve of the plug": machine("wall"),
    "a curve of other machines": machine("package"),
    "measured here": machine("package", provenance="measured"),
    "no curve": machine(watts=()),
}


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("provenance", ["measured", "modelled", "estimated"])
def test_executor_exporter_and_measure_charge_the_same_for_a_cpu_second(
    provenance: Provenance, curve: str, tmp_path: Path
) -> None:
    told, profile = trace(), CURVES[curve]
    executor = list(by_executor(told, scripted(provenance), profile, tmp_path / "executor"))
    exporter = list(by_exporter(told, scripted(provenance), profile))
    prices = [
        (a / each.ours_s, b / each.ours_s) for a, b, each in zip(executor, exporter, told, strict=True) if each.ours_s
    ]
    assert [b for _, b in prices] == pytest.approx([a for a, _ in prices], rel=1e-4, abs=1e-3)
    measured = by_measure(told, scripted(provenance), profile, tmp_path / "measure")
    assert measured == pytest.approx(sum(executor), rel=1e-6)


def test_where_the_meter_measures_the_price_comes_near_the_truth(tmp_path: Path) -> None:
    """Ours draws more than its neighbours, and everybody says so, whether the neighbours are seen or not."""
    told, profile = trace(400), CURVES["a curve of the plug"]
    executor = list(by_executor(told, scripted("measured"), profile, tmp_path / "executor"))[200:]
    exporter = list(by_exporter(told, scripted("measured"), profile))[200:]
    seen = list(by_exporter(told, scripted("measured"), profile, neighbour=2))[200:]
    truth = sum([CORE_W * OURS * each.ours_s for each in told][200:])
    assert [sum(executor), sum(exporter), sum(seen)] == pytest.approx([truth] * 3, rel=0.03)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0.0, 300.0)), min_size=1, max_size=12),
    st.sampled_from(["measured", "estimated"]),
    st.sampled_from(sorted(CURVES)),
)
@example([(0, 30, 1.0), (0, 29, 1.0), (1, 27, 2.0)], "estimated", "a curve of other machines")
def test_whatever_the_meter_says_all_three_charge_the_same_and_never_more_than_it_counted(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[tuple[int, int, float]],
    provenance: Provenance,
    curve: str,
) -> None:
    told, folder = [Second(a / 50, b / 50, joules) for a, b, joules in parts], tmp_path_factory.mktemp("machine")
    executor = sum(by_executor(told, scripted(provenance), CURVES[curve], folder / "executor"))
    exporter = sum(by_exporter(told, scripted(provenance), CURVES[curve]))
    measured = by_measure(told, scripted(provenance), CURVES[curve], folder / "measure")
    assert exporter == pytest.approx(executor, rel=1e-4, abs=1e-3)
    assert measured == pytest.approx(executor, rel=1e-4, abs=1e-3)
    assert max(executor, exporter, measured) <= sum(each.joules for each in told) + 1e-6
