"""What holds of every run: the parts are the total and the area under the power trace, and nobody is lost."""

from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wattloom
from wattloom.cli.main import cli
from wattloom.cluster.node_class import NodeClass
from wattloom.machines.catalogue import MachineEntry
from wattloom.policies.exec_capacity import ExecCapacity
from wattloom.policies.fifo import Fifo
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.pack import Pack
from wattloom.policies.protocol import Policy
from wattloom.policies.spread import Spread
from wattloom.policies.view import View
from wattloom.policies.weighted import Weighted
from wattloom.report.page import page
from wattloom.simulation.build import trial_of
from wattloom.simulation.loop import Simulation
from wattloom.simulation.power_trace import MOST_STEPS, PowerTrace
from wattloom.simulation.scenario import ArrivalsEntry, FaultEntry, FunctionEntry, NodeGroup, Scenario


class SleepyPack(Pack):
    """Lets idle nodes sleep almost at once."""

    def linger(self, cls: NodeClass, view: View) -> float | None:
        return 2.0


POLICIES: list[type[Policy]] = [
    Fifo, Spread, Pack, SleepyPack, MarginalEnergy, ExecCapacity, Weighted, LeastJoules,
]  # fmt: skip


@st.composite
def machines(draw: st.DrawFn) -> MachineEntry:
    cores = draw(st.integers(1, 4))
    threads = cores * draw(st.integers(1, 2))
    steps = draw(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=4))
    idle = draw(st.floats(0.0, 50.0))
    watts = [idle + sum(steps[:n]) for n in range(len(steps) + 1)]
    sleeps = draw(st.booleans())
    return MachineEntry(
        arch="x86_64",
        cores=cores,
        threads=threads,
        memory_gib=4,
        load_watts=watts,
        smt_slowdown=draw(st.floats(1.0, threads / cores)),
        speed=draw(st.floats(0.5, 2.0)),
        sleep_w=draw(st.floats(0.0, min(5.0, idle))) if sleeps else None,
        wake_s=draw(st.sampled_from([0.0, 3.0])) if sleeps else 0.0,
        wake_j=draw(st.floats(0.0, 200.0)) if sleeps else 0.0,
    )


@st.composite
def functions(draw: st.DrawFn) -> FunctionEntry:
    return FunctionEntry(
        cpu=draw(st.sampled_from([0.0, 0.3, 1.0, 2.0, 9.0])),
        memory_mib=draw(st.sampled_from([0, 512, 3000])),
        work_s=draw(st.floats(0.5, 60.0)),
        spread=draw(st.sampled_from([0.0, 0.5])),
        cold_start_s=draw(st.sampled_from([0.0, 2.0])),
        keep_alive_s=draw(st.sampled_from([0.0, 10.0])),
        priority=draw(st.integers(-1, 1)),
        energy_weight=draw(st.floats(0.0, 1.0)),
        defer_s=draw(st.sampled_from([0.0, 30.0])),
        idempotent=draw(st.booleans()),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    kinds = draw(st.lists(machines(), min_size=1, max_size=3))
    groups = [
        NodeGroup(
            machine=f"m{number}",
            count=draw(st.integers(1, 2)),
            cpu=draw(st.sampled_from([None, 2.0, 12.0])),
            cap_w=draw(st.sampled_from([None, None, 60.0])),
            asleep=entry.sleep_w is not None and draw(st.booleans()),
        )
        for number, entry in enumerate(kinds)
    ]
    calls = {f"f{number}": entry for number, entry in enumerate(draw(st.lists(functions(), min_size=1, max_size=3)))}
    weights = dict.fromkeys(calls, 1.0)
    streams = [
        ArrivalsEntry(kind="at-once", count=draw(st.integers(1, 8)), functions=weights),
        ArrivalsEntry(kind="poisson", count=draw(st.integers(1, 12)), rate_per_s=0.2, functions=weights),
    ]
    faults = draw(
        st.lists(
            st.builds(
                FaultEntry,
                node=st.sampled_from([f"m{number}-1" for number in range(len(kinds))]),
                at_s=st.floats(0.0, 80.0),
                back_after_s=st.one_of(st.none(), st.floats(0.1, 40.0)),
            ),
            max_size=3,
        )
    )
    return Scenario(
        name="random",
        machines={f"m{number}": entry for number, entry in enumerate(kinds)},
        nodes=groups,
        functions=calls,
        arrivals=streams,
        faults=faults,
        power_cap_w=draw(st.sampled_from([None, None, 150.0])),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), st.sampled_from(POLICIES), st.integers(0, 5))
def test_parts_add_up_to_the_total_and_to_the_area_under_the_power(
    scenario: Scenario, policy: type[Policy], seed: int
) -> None:
    simulation = Simulation(trial_of(scenario, seed), policy())
    result = simulation.run()
    energy, tasks = result.energy, result.tasks
    parts = (energy.active, energy.idle, energy.sleep, energy.wake, energy.scheduler)
    assert min(parts) >= -1e-6
    assert energy.total == pytest.approx(sum(parts))
    assert sum(energy.watt_hours()[part] for part in ("active", "idle", "sleep", "wake", "scheduler")) == pytest.approx(
        energy.watt_hours()["total"]
    )
    drawn = sum(simulation.physics.power.joules)
    assert energy.total - energy.scheduler == pytest.approx(drawn, rel=1e-9, abs=1e-6)
    if result.power and result.tasks.waiting == 0:
        begins = [begin for begin, _ in result.power]
        widths = [b - a for a, b in pairwise([*begins, result.makespan_s])]
        area = sum(watts * width for (_, watts), width in zip(result.power, widths, strict=True))
        assert area == pytest.approx(drawn, rel=1e-9, abs=1e-6)
    assert tasks.submitted == tasks.finished + tasks.failed + tasks.waiting
    assert len(result.waits) <= tasks.submitted
    assert min(result.waits, default=0.0) >= 0.0
    assert 0.0 <= result.utilisation <= 1.0 + 1e-9
    assert result.slowdown.p50 >= 1.0 - 1e-9 or tasks.finished == 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios(), st.sampled_from(POLICIES))
def test_the_same_trial_gives_the_same_result(scenario: Scenario, policy: type[Policy]) -> None:
    results = [Simulation(trial_of(scenario, 3), policy()).run() for _ in range(2)]
    assert results[0] == results[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 500.0), st.floats(0.0, 1000.0)), min_size=1, max_size=40),
    st.floats(0.01, 100.0),
)
def test_a_power_trace_loses_no_joule_when_its_steps_are_joined(
    changes: list[tuple[float, float]], tail: float
) -> None:
    trace = PowerTrace()
    time, watts, joules = 0.0, 0.0, 0.0
    for gap, new in changes:
        joules += watts * gap
        time += gap
        trace.change(time, new)
        watts = new
    trace.add(time, 5.0)
    joules += watts * tail + 5.0
    series = trace.series(time + tail)
    ends = [*(begin for begin, _ in series[1:]), time + tail]
    assert sum(mean * (end - begin) for (begin, mean), end in zip(series, ends, strict=True)) == pytest.approx(joules)
    assert len(series) <= MOST_STEPS


# -- devices -----------------------------------------------------------------------------------------------------------

WITH_A_GPU = """
name = "gpus"
machines.one = { arch = "x86_64", cores = 4, memory_gib = 8, cores_watts = [[0, 20], [4, 60]] }
nodes = [{ machine = "one", name = "a", count = 2DEVICES }]
functions.f = { cpu = 1, work_s = 10NEEDS }
arrivals = [{ kind = "at-once", count = 4, functions = { f = 1 } }]
"""


def test_what_devices_draw_is_unknown_and_never_silently_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gpus.toml"
    path.write_text(
        WITH_A_GPU.replace("DEVICES", ", devices = { gpu = 2 }").replace("NEEDS", ", devices = { gpu = 1 }")
    )
    log = tmp_path / "log"
    result = wattloom.simulate(path, "fifo", log=log)
    told = "what devices draw is not counted (4 gpu): their joules are unknown and missing in every total"
    assert result.warnings == [told]
    assert result.to_json()["energy_wh"]["devices"] is None
    compared = wattloom.compare(path, "fifo,spread")
    assert compared.warnings == [told]
    assert compared.to_json()["rows"][0]["energy_wh"]["devices"] is None
    assert compared.sentence.endswith("; what devices draw is not counted.")
    assert told in page(compared, [], "")
    assert wattloom.replay(log).recorded.warnings == [told]
    assert "devices not counted" in CliRunner().invoke(cli, ["simulate", str(path), "--policy", "fifo"]).output


def test_a_cluster_without_devices_says_nothing_of_them(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text(WITH_A_GPU.replace("DEVICES", "").replace("NEEDS", ""))
    result = wattloom.simulate(path, "fifo")
    assert result.warnings == []
    assert "devices" not in result.to_json()["energy_wh"]


def test_a_policy_that_keeps_a_tdp_says_where_none_is_known(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text(WITH_A_GPU.replace("DEVICES", "").replace("NEEDS", ""))
    assert wattloom.simulate(path, "marginal-energy").warnings == ["TDP is not kept on one: no TDP is known"]
    assert wattloom.simulate(path, "marginal-energy:tdp=false").warnings == []


@pytest.mark.parametrize(("tdp_w", "told"), [(30, True), (31, False)])
def test_cores_that_an_estimate_of_the_packages_watts_leaves_empty_are_told(
    tmp_path: Path, tdp_w: int, told: bool
) -> None:
    """20% of 10 W and 72% of the 40 W above: 30.8 W."""
    path = tmp_path / "wall.toml"
    path.write_text(ON_THE_WALL.replace("TDP", str(tdp_w)))
    warnings = wattloom.simulate(path, "marginal-energy").warnings
    assert any("an estimate of the CPU packages' watts on m" in warning for warning in warnings) is told
    assert wattloom.simulate(path, "marginal-energy:tdp=false").warnings == []


ON_THE_WALL = """
name = "wall"
machines.m = { arch = "x86_64", cores = 4, cores_watts = [[0, 10], [4, 50]], tdp_w = TDP }
nodes = [{ machine = "m" }]
functions.f = { work_s = 10 }
arrivals = [{ kind = "at-once", count = 4, functions = { f = 1 } }]
"""
