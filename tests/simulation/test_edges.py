"""Runs at the edges: caps met by sleep, wake-ups under a cap, machines a function may not use, files that lie."""

from pathlib import Path

import pytest

import wattloom
from wattloom.errors import PolicyError, ScenarioError
from wattloom.policies.loading import load_policy
from wattloom.simulation.result import Quantiles

MACHINE = """
[machines.m]
arch = "x86_64"
cores = 4
memory_gib = 8
cores_watts = [[0, 100], [4, 200]]
sleep_w = 5
wake_s = 2
wake_j = 100
"""


def scenario(folder: Path, text: str) -> str:
    path = folder / "edge.toml"
    path.write_text('name = "edge"\n' + text)
    return str(path)


def test_a_task_that_needs_watts_gets_them_when_an_idle_node_falls_asleep(tmp_path: Path) -> None:
    text = f"""
power_cap_w = 250
{MACHINE}
[[nodes]]
machine = "m"
count = 2
[functions.f]
cpu = 3
work_s = 10
[[arrivals]]
kind = "at-once"
count = 1
functions = {{ f = 1 }}
"""
    result = wattloom.simulate(scenario(tmp_path, text), "least-joules")
    assert (result.tasks.finished, result.tasks.waiting) == (1, 0)


def test_a_wake_up_stays_under_the_clusters_cap(tmp_path: Path) -> None:
    hungry = MACHINE.replace("wake_j = 100", "wake_j = 2000")
    text = f"""
power_cap_w = 400
{hungry}
[[nodes]]
machine = "m"
asleep = true
[functions.f]
work_s = 10
[[arrivals]]
kind = "at-once"
count = 1
functions = {{ f = 1 }}
"""
    result = wattloom.simulate(scenario(tmp_path, text), "fifo")
    assert (result.tasks.finished, result.tasks.waiting) == (0, 1)
    assert all(watts <= 400 for _, watts in result.power)


def test_slowdown_is_over_the_fastest_machine_the_function_may_use(tmp_path: Path) -> None:
    text = f"""
{MACHINE}
[machines.arm]
arch = "aarch64"
cores = 4
memory_gib = 8
cores_watts = [[0, 10], [4, 20]]
speed = 0.25
[[nodes]]
machine = "m"
[[nodes]]
machine = "arm"
[functions.f]
arch = ["aarch64"]
work_s = 10
[[arrivals]]
kind = "at-once"
count = 1
functions = {{ f = 1 }}
"""
    assert wattloom.simulate(scenario(tmp_path, text), "fifo").slowdown.p50 == 1.0


WRONG = [
    ("nodes = [{ machine = 'm', cpu = 2e6 }]", "nodes[0].cpu"),
    ("nodes = [{ machine = 'm', devices = { gpu = 100000000 } }]", "nodes[0].devices.gpu"),
    ("nodes = [{ machine = 'm' }]\nfunctions.f = { work_s = 1, priority = 99999999999 }", "functions.f: priority"),
]


@pytest.mark.parametrize(("text", "field"), WRONG, ids=[field for _, field in WRONG])
def test_a_wrong_figure_is_named_where_it_stands(text: str, field: str, tmp_path: Path) -> None:
    usual = "" if "functions.f" in text else "functions.f = { work_s = 1 }\n"
    rest = "arrivals = [{ kind = 'at-once', count = 1, functions = { f = 1 } }]\n"
    with pytest.raises(ScenarioError) as caught:
        wattloom.simulate(scenario(tmp_path, f"{text}\n{usual}{rest}{MACHINE}"), "fifo")
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("[[0, 100], [4, 200]]", "[[0, 100], [4, 50]]", "draw less than an idle one"),
        ("sleep_w = 5", "sleep_w = 150", "draw more than an idle one"),
    ],
)
def test_a_machine_that_defies_physics_is_refused(old: str, new: str, what: str, tmp_path: Path) -> None:
    text = "nodes = [{ machine = 'm' }]\nfunctions.f = { work_s = 1 }\n"
    text += "arrivals = [{ kind = 'at-once', count = 1, functions = { f = 1 } }]\n" + MACHINE.replace(old, new)
    with pytest.raises(ScenarioError, match=what):
        wattloom.simulate(scenario(tmp_path, text), "fifo")


def test_a_trace_row_with_more_cells_than_columns_is_refused_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("time_s,function\n1,f\n2,f,3\n")
    text = "nodes = [{ machine = 'm' }]\nfunctions.f = { work_s = 1 }\n"
    text += "arrivals = [{ kind = 'trace', file = 'trace.csv' }]\n" + MACHINE
    with pytest.raises(ScenarioError, match=r"trace\.csv:3"):
        wattloom.simulate(scenario(tmp_path, text), "fifo")


def test_a_quantile_is_the_nearest_rank() -> None:
    assert Quantiles.of([1.0, 3.0]).p50 == 1.0
    hundred = Quantiles.of([float(n) for n in range(1, 101)])
    assert (hundred.p50, hundred.p95, hundred.p99) == (50.0, 95.0, 99.0)


@pytest.mark.parametrize("guarantee", ["-1", "5"])
def test_a_guarantee_is_a_share(guarantee: str) -> None:
    with pytest.raises(PolicyError, match="guarantee"):
        load_policy(f"marginal-energy:guarantee={guarantee}")
