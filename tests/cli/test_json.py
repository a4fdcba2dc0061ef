"""Every command's --json parses, has the promised fields, and is all there is on stdout."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.cli.conftest import Wattloom

FIGURES = {"policy", "makespan_s", "energy_wh", "tasks", "wait_s", "slowdown", "utilisation", "digest"}
PARTS = ("active", "idle", "sleep", "wake", "scheduler")


def parsed(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def check_figures(found: dict[str, Any]) -> None:
    assert found.keys() >= FIGURES
    assert found["energy_wh"]["total"] == pytest.approx(sum(found["energy_wh"][part] for part in PARTS))
    assert found["tasks"].keys() == {"submitted", "finished", "failed", "waiting"}
    assert found["wait_s"].keys() == found["slowdown"].keys() == {"p50", "p95", "p99"}


def test_simulate_prints_one_object_with_all_figures(scenario: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("simulate", scenario, "--policy", "pack", "--seed", 3, "--json"))
    check_figures(found)
    assert (found["scenario"], found["policy"], found["seed"]) == ("tiny", "pack", 3)
    assert found["tasks"]["finished"] == 60


def test_a_result_is_named_as_the_user_wrote_its_policy(scenario: Path, wattloom: Wattloom) -> None:
    spec = "marginal-energy:guarantee=0.8"
    assert parsed(wattloom("simulate", scenario, "--policy", spec, "--json"))["policy"] == spec


def test_compare_prints_results_in_the_order_asked_for(scenario: Path, wattloom: Wattloom) -> None:
    wanted = "spread,marginal-energy:tdp=false,guarantee=0.8,fifo"
    found = parsed(wattloom("compare", scenario, "--policies", wanted, "--seeds", 2, "--json"))
    policies = [result["policy"] for result in found["rows"]]
    assert policies == ["spread", "marginal-energy:tdp=false,guarantee=0.8", "fifo"]
    assert found["seeds"] == [0, 1]
    assert found["results"] == found["rows"], "its former name, for one release"
    for result in found["rows"]:
        check_figures(result)
        assert [run["seed"] for run in result["runs"]] == [0, 1]


def test_savings_are_true_reductions_of_the_best_against_each_other_policy(scenario: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("compare", scenario, "--policies", "spread,fifo,pack", "--json"))
    energy = {result["policy"]: result["energy_wh"]["total"] for result in found["rows"]}
    best = min(energy, key=lambda policy: energy[policy])
    assert found["saving"]["best"] == best
    for policy, saving in found["saving"]["against"].items():
        assert saving == pytest.approx((energy[policy] - energy[best]) / energy[policy])


def test_compare_without_policies_takes_all_built_in_ones_that_need_no_plan(scenario: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("compare", scenario, "--json"))
    listed = [each for each in parsed(wattloom("policies", "--json")) if each["name"] != "planned"]
    told = [result["policy"] for result in found["rows"]]
    assert told[::2] == [policy["name"] for policy in listed]
    assert {spec.partition(":")[2] for spec in told[1::2]} == {"sleep=true", "sleep=false"}
    assert len(parsed(wattloom("compare", scenario, "--no-sleep", "--json"))["rows"]) == len(listed)


def test_replay_says_what_it_cost_and_would_have_cost(log: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("replay", log, "--policy", "fifo", "--json"))
    check_figures(found["recorded"])
    check_figures(found["counterfactual"])
    assert (found["recorded"]["policy"], found["counterfactual"]["policy"]) == ("pack", "fifo")
    assert found["same_decisions"] is True
    assert found["assumptions"]


def test_replay_without_a_policy_has_no_counterfactual(log: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("replay", log, "--json"))
    assert found["counterfactual"] is None
    assert found["saving"] is None


def test_why_lays_open_every_class_of_candidates(log: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("why", "t1", "--log", log, "--json"))
    decision = found["decisions"][-1]
    assert (decision["task"], decision["policy"]) == ("t1", "pack")
    assert {candidate["machine"] for candidate in decision["candidates"]} == {"big", "small"}
    assert [c["first"] for c in decision["candidates"] if c["reason"] == "taken"] == [decision["node"]]


def test_why_says_what_was_recorded_and_whether_it_holds(log: Path, wattloom: Wattloom) -> None:
    found = parsed(wattloom("why", "t1", "--log", log, "--json"))
    assert list(found) == ["task", "same_decisions", "decisions", "recorded", "waiting"]
    assert (found["task"], found["same_decisions"], found["waiting"]) == ("t1", True, None)
    placed = found["recorded"][-1]
    assert (placed["instruction"], placed["node"]) == ("place", found["decisions"][-1]["node"])
    assert placed["time"] == found["decisions"][-1]["time"]


def test_why_under_another_policy_than_recorded_has_no_decisions(log: Path, wattloom: Wattloom) -> None:
    log.write_bytes(log.read_bytes().replace(b'"policy":"pack"', b'"policy":"random"', 1))
    found = parsed(wattloom("why", "t50", "--log", log, "--json"))
    assert (found["same_decisions"], found["decisions"]) == (False, [])
    assert found["recorded"][-1]["instruction"] == "place"


@pytest.mark.parametrize("command", ["policies", "scenarios", "machines"])
def test_lists_are_lists_of_named_objects(command: str, wattloom: Wattloom) -> None:
    found = parsed(wattloom(command, "--json"))
    assert found
    assert all(entry["name"] for entry in found)


def test_the_schema_is_json(wattloom: Wattloom) -> None:
    assert "$defs" in parsed(wattloom("scenarios", "schema"))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(scenario: Path, wattloom: Wattloom) -> None:
    words = ("compare", scenario, "--policies", "pack,fifo", "--json")
    assert wattloom(*words).stdout == wattloom(*words).stdout
    first, second = (wattloom("simulate", scenario, "--seed", seed, "--json").stdout for seed in (0, 1))
    assert first != second
