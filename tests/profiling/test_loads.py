"""Loads are real: they run where they should, say what they did, and never outlive us."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.profiling.made import needs_stress_ng

from wattloom.errors import InputError
from wattloom.profiling.loads import Load, tool_used
from wattloom.profiling.stressors import ALL, stressors

PATIENCE_S = 30.0
CPUS = sorted(os.sched_getaffinity(0))[:2]
HOLDS_A_LOAD = """
import time
from wattloom.profiling.loads import Load
from wattloom.profiling.stressors import ALL
with Load(ALL[{name!r}], {cpus}, 60.0) as load:
    while not load.at_work: time.sleep(0.01)
    time.sleep(0.3)
    print(load.pid, flush=True)
    time.sleep(60)
"""


def group(pid: int) -> list[int]:
    """Processes of a group that live, as the kernel lists them."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if len(fields) > 2 and int(fields[2]) == pid and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def wait_for(what: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not what():
        assert time.monotonic() - begin < PATIENCE_S, "waited in vain"
        time.sleep(0.02)


@needs_stress_ng
@pytest.mark.parametrize("name", ["integer", "kmeans"])
def test_a_load_does_work_on_its_cpus_and_counts_it(name: str) -> None:
    with Load(ALL[name], CPUS, 1.0) as load:
        wait_for(lambda: load.at_work and len(group(load.pid)) > len(CPUS))
        workers = [pid for pid in group(load.pid) if pid != load.pid]
        allowed = {cpu for pid in workers for cpu in os.sched_getaffinity(pid)}
        wait_for(lambda: not load.runs)
        done = load.finish()
    assert len(workers) == len(CPUS)
    assert allowed == set(CPUS)
    assert done.problem == ""
    assert done.ops_per_s is not None
    assert done.ops_per_s > 1.0
    assert 0.05 < done.cpu_s < 10.0


def test_a_load_on_our_own_loops_needs_no_stress_ng(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert tool_used(builtin=True).startswith("Python ")
    with Load(ALL["matrix"], CPUS[:1], 0.2, builtin=True) as load:
        wait_for(lambda: not load.runs)
        assert (load.finish().ops_per_s or 0.0) > 1.0


def test_without_stress_ng_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match=r"apt install stress-ng.*dnf install stress-ng.*brew.*--builtin"):
        tool_used(builtin=False)


@needs_stress_ng
def test_a_load_that_fails_says_so() -> None:
    with Load(ALL["integer"], [99_999], 1.0) as load:
        wait_for(lambda: not load.runs)
        done = load.finish()
    assert done.ops_per_s is None
    assert "the load failed with code" in done.problem


@needs_stress_ng
@pytest.mark.parametrize("name", ["integer", "kmeans"])
def test_leaving_early_ends_all_its_processes(name: str) -> None:
    with Load(ALL[name], CPUS, 60.0) as load:
        wait_for(lambda: load.at_work and len(group(load.pid)) > len(CPUS))
        pid = load.pid
    assert group(pid) == []


@needs_stress_ng
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("name", ["integer", "kmeans"])
def test_no_load_outlives_the_one_who_started_it(name: str, number: signal.Signals) -> None:
    text = HOLDS_A_LOAD.format(name=name, cpus=CPUS)
    holder = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert holder.stdout is not None
    pid = int(holder.stdout.readline())
    assert len(group(pid)) > len(CPUS)
    holder.send_signal(number)
    holder.communicate()
    wait_for(lambda: group(pid) == [])


def test_stressors_that_are_not_known_are_named_with_those_that_are() -> None:
    assert [each.name for each in stressors("matrix, kmeans,matrix")] == ["matrix", "kmeans"]
    with pytest.raises(InputError, match="'mtrix' is not known; there is integer, matrix"):
        stressors("mtrix")
    with pytest.raises(InputError, match="'vector' is not known without stress-ng"):
        stressors("vector", builtin=True)
    with pytest.raises(InputError, match="at least one"):
        stressors(" , ")
