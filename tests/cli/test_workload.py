"""`wattloom workload`: the list, the runs, and what is said when something cannot run or is wrong."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Wattloom

import wattloom as wattloom_api
from wattloom import suite
from wattloom.errors import InputError
from wattloom.suite import needs
from wattloom.suite.families import zip as zips
from wattloom.suite.families.chance import WrongResult
from wattloom.suite.running import CallFailed


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_the_list_says_what_each_needs_and_whether_it_runs(wattloom: Wattloom) -> None:
    rows = json.loads(wattloom("workload", "list", "--json").stdout)
    assert [row["name"] for row in rows] == list(suite.NAMES)
    zipped = next(row for row in rows if row["name"] == "zip-python")
    assert zipped["can_run"] is True
    assert zipped["missing"] == []
    shown = wattloom("workload", "list", "web").stdout
    assert "html-java" in shown
    assert "el-passo" not in shown


def test_what_is_missing_is_in_the_list(wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    rows = json.loads(wattloom("workload", "list", "pagerank", "--json").stdout)
    assert rows[0]["can_run"] is False
    assert rows[0]["missing"][0]["brings"] == "pip install 'igraph>=0.11'"
    done = wattloom("workload", "run", "pagerank-python")
    assert done.exit_code == 2
    assert "igraph" in done.stderr


def test_a_run_is_checked_and_says_what_a_call_costs(wattloom: Wattloom) -> None:
    done = wattloom("workload", "run", "matrix-native-python", "--calls", "3", "--seed", "5", "--json")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert (row["name"], row["calls"], row["seed"], row["problem"]) == ("matrix-native-python", 3, 5, "")
    assert 0.0 < row["mean_s"] < row["first_s"]
    assert row["per_s"] == pytest.approx(1.0 / row["mean_s"])
    assert row["mean_j"] > 0.0
    assert row["provenance"]


def test_python_has_the_same_figures_and_raises_where_the_command_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = wattloom_api.run_workload("zip-python", calls=2)
    assert (row.name, row.calls, row.problem) == ("zip-python", 2, "")
    assert wattloom_api.workloads("zip-python")[0].can_run

    def check(given: object, result: object) -> None:
        raise WrongResult("a file is not what it was")

    monkeypatch.setattr(zips, "check", check)
    with pytest.raises(InputError, match="calls: must be from 1"):
        wattloom_api.run_workload("zip-python", calls=0)
    with pytest.raises(InputError, match="seed: must be from 0"):
        wattloom_api.run_workload("zip-python", seed=-1)
    with pytest.raises(WrongResult, match="zip-python: a file is not what it was"):
        wattloom_api.run_workload("zip-python", calls=1)


def test_a_wrong_result_is_an_error(wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(given: object, result: object) -> None:
        raise WrongResult("a file is not what it was")

    monkeypatch.setattr(zips, "check", check)
    done = wattloom("workload", "run", "zip-python", "--calls", "2")
    assert done.exit_code == 1
    assert "error: zip-python: a file is not what it was" in done.stderr
    assert "wrong" in done.stdout


def test_a_call_that_fails_is_an_error_and_not_a_wrong_result(
    wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zips, "event", lambda seed: {"no files": []})
    done = wattloom("workload", "run", "zip-python", "--seed", "77")
    assert done.exit_code == 1
    assert "error: zip-python: 'files'" in done.stderr
    assert "failed" in done.stdout
    with pytest.raises(CallFailed, match="zip-python: 'files'"):
        wattloom_api.run_workload("zip-python", seed=77)


def test_a_name_that_is_none_is_said(wattloom: Wattloom) -> None:
    done = wattloom("workload", "run", "zip-pyton")
    assert done.exit_code == 2
    assert "did you mean zip-python" in done.stderr
