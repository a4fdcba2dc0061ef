"""`wattloom plan keep | apply | drive`: what is written, printed and refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Wattloom

from wattloom.planning.plan import Assignment, Demand, Plan, Server
from wattloom.planning.plan_file import encode_plan

ROOT = Path(__file__).parents[2]
QUICK, SLOW = "tests.beds.burning.quick", "tests.beds.burning.slow"
ONE_SERVER = ["--server", "arm"] if len(os.sched_getaffinity(0)) < 2 else []
"""Each server of a plan needs a core of this machine."""
PLAN = Plan(
    policy="energy-aware",
    goal="energy",
    objective=10.0,
    assignments=(Assignment(QUICK, "arm", 6.0, 1, 1.2, 100.0), Assignment(SLOW, "x86", 2.0, 1, 1.6, 25.0)),
    servers=(
        Server(name="x86", machine="big", cores=1, idle_w=20.0, arch="x86_64"),
        Server(name="arm", machine="small", cores=1, idle_w=5.0, arch="aarch64"),
    ),
    demand=(Demand(function=QUICK, rate=6.0), Demand(function=SLOW, rate=2.0)),
)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "plan.json"
    path.write_bytes(encode_plan(PLAN))
    return str(path)


def test_a_plan_that_was_kept_is_a_policys_by_its_digest(wattloom: Wattloom, plan: str) -> None:
    digest = json.loads(wattloom("plan", "keep", plan, "--json").stdout)["digest"]
    assert digest == PLAN.digest
    assert wattloom("simulate", "hsc-cpu", "--policy", f"planned:plan={digest}").exit_code == 0


@pytest.mark.parametrize("arrivals", ["poisson", "even"])
def test_a_plan_is_a_scenario_that_every_policy_runs(
    wattloom: Wattloom, plan: str, tmp_path: Path, arrivals: str
) -> None:
    path = str(tmp_path / "planned.toml")
    wattloom("plan", "apply", plan, "--scenario", path, "--seconds", "20", "--arrivals", arrivals)
    log = str(tmp_path / "run.log")
    ran = json.loads(wattloom("simulate", path, "--policy", "planned", "--log", log, "--json").stdout)
    assert ran["tasks"]["finished"] == ran["tasks"]["submitted"] > 100
    why = wattloom("why", "t5", "--log", log).stdout
    assert f"Plan {PLAN.digest[:12]} says" in why
    assert "followed" in why
    assert wattloom("compare", path, "--policies", "planned,least-joules,spread").exit_code == 0


def test_here_the_nodes_are_said_and_written(wattloom: Wattloom, plan: str, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.toml"
    arguments = ["plan", "apply", plan, "--here", "--nodes", str(nodes), *ONE_SERVER]
    told = json.loads(wattloom(*arguments, "--json").stdout)
    assert told["assignments"][0]["node"] == "arm"
    assert "[[nodes]]" in nodes.read_text()
    assert f"planned:plan={told['digest']}" in wattloom(*arguments).stdout


def test_kubernetes_manifests_are_written(wattloom: Wattloom, plan: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    told = json.loads(
        wattloom("plan", "apply", plan, "--kubernetes", str(tmp_path / "k"), "--image", "i", "--json").stdout
    )
    assert told["replicas"] == 2
    assert (tmp_path / "k" / "plan.yaml").read_text().count("kind: Deployment") == 2


def test_drive_on_the_simulator_prints_asked_and_reached_beside_the_plan(wattloom: Wattloom, plan: str) -> None:
    arguments = ["plan", "drive", plan, "--simulate", "--seconds", "20", "--seed", "4", *ONE_SERVER]
    told = json.loads(wattloom(*arguments, "--json").stdout)
    assert told["backend"] == "simulation"
    assert told["functions"][0]["servers"].keys() == {"arm"}
    shown = wattloom(*arguments).stdout
    for words in ("planned/s", "asked/s", "reached/s", "p99 ms", "plan E", "plan J", "on the simulator"):
        assert words in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("apply", "PLAN"), "Say where"),
        (("apply", "PLAN", "--here", "--scenario", "s.toml"), "Say where"),
        (("apply", "PLAN", "--kubernetes", "k"), "--image"),
        (("apply", "nowhere.json", "--here"), "cannot be read"),
        (("apply", "PLAN", "--scenario", "no/such/folder/s.toml"), "there is no folder"),
        (("apply", "PLAN", "--here", "--server", "elsewhere"), "is not in the plan"),
        (("drive", "PLAN", "--simulate", "--call", "f=math:sqrt"), "--call"),
        (("drive", "PLAN", "--call", "f=math:sqrt"), "is not in the plan"),
        (("drive", "PLAN", "--seconds", "nan"), "finite"),
        (("drive", "PLAN", "--scale", "0"), "scale"),
        (("keep", "nowhere.json"), "cannot be read"),
    ],
)
def test_wrong_input_is_said_and_nothing_is_written(
    wattloom: Wattloom, plan: str, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    monkey = [plan if each == "PLAN" else each for each in arguments]
    before = sorted(tmp_path.rglob("*"))
    result = wattloom("plan", *monkey)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert sorted(tmp_path.rglob("*")) == before


def test_ctrl_c_ends_with_the_report_so_far(plan: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wattloom.cli.main", "plan", "drive", plan, "--seconds", "300", "--json"]
    command += ["--journal", str(tmp_path / "drive.journal"), *ONE_SERVER]
    where = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=where, cwd=tmp_path) as running:
        _wait_for_calls(tmp_path / "drive.journal")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    told = json.loads(out)
    assert told["interrupted"], err
    assert 0.0 < told["seconds"] < 300.0
    assert told["functions"][0]["finished"] > 0


def _wait_for_calls(journal: Path) -> None:
    """Until calls beyond those that warm the workers up have ended."""
    from wattloom.errors import WattloomError
    from wattloom.history.queries import tasks

    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        try:
            if sum(each.state == "finished" for each in tasks(journal=journal)) > 12:
                return
        except (WattloomError, OSError):
            pass
        time.sleep(0.2)
    raise AssertionError("no calls were made within a minute")
