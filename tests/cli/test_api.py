"""The Python API: the same names as the commands, and the same results."""

from pathlib import Path

import msgspec
import pytest

import wattloom
from wattloom import api
from wattloom.cli.main import COMMANDS
from wattloom.errors import InputError
from wattloom.experiments import running
from wattloom.policies.listing import separate
from wattloom.policies.loading import load_policy
from wattloom.simulation.comparison import reference_among
from wattloom.simulation.scenario import load_scenario

PUBLIC = {
    *(
        "Comparison",
        "Explanation",
        "InputError",
        "Policy",
        "Proposal",
        "RankingPolicy",
        "Refusal",
        "Replay",
        "Result",
        "Why",
    ),
    *("Scenario", "WattloomError", "__version__"),
    *("Energy", "Executor", "LeaseTerms", "TaskFuture", "Unknown", "VirtualNode", "function"),
    *("OutcomeUnknown", "TaskTimeout", "WorkerLost"),
    *("Outcome", "experiment", "experiments", "plan"),
    *("compare", "machines", "policies", "replay", "scenarios", "simulate", "why"),
    *("machine_curve", "machine_match"),
    "attribute",
    "profile_cpu",
    "profile_functions",
    "validate_attribution",
    *("plan", "run_workload", "workloads"),
    *("load", "RemoteError"),
    *("functions", "logs", "measure", "measure_command", "meters", "prune", "run", "tasks"),
}


def test_the_public_names_are_these_and_can_be_had() -> None:
    assert set(wattloom.__all__) == PUBLIC
    assert all(getattr(wattloom, name) is not None for name in wattloom.__all__)
    assert {name for name in dir(wattloom) if not name.startswith("_")} | {"__version__"} == PUBLIC


PLURALS = {"workload": "workloads", "meter": "meters", "profile": "profile_cpu", "validate": "validate_attribution"}
"""Groups of commands, and the function that one of them is."""
NO_FUNCTIONS = {"completion", "demo", "exporter", "kubernetes", "top"}
"""For a shell or a screen, or at work until they are stopped: there is no result to return."""


def test_every_command_that_computes_is_a_function_of_the_same_name() -> None:
    for command in set(COMMANDS) - NO_FUNCTIONS:
        name = PLURALS.get(command, command)
        assert callable(getattr(wattloom, name))
        assert callable(getattr(running if command == "experiment" else api, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = wattloom.simulat


def test_calling_the_package_of_policies_lists_them() -> None:
    assert wattloom.policies() == api.policies()


def test_a_scenario_may_be_a_path_or_an_object(scenario: Path) -> None:
    loaded, _ = load_scenario(str(scenario))
    assert wattloom.simulate(scenario, "pack") == wattloom.simulate(loaded, "pack")


def test_a_policy_may_be_an_object(scenario: Path) -> None:
    written = wattloom.compare(scenario, ["pack", "fifo"])
    ready = wattloom.compare(scenario, [load_policy("pack"), "fifo"])
    assert written == ready


def test_processes_do_not_change_results(scenario: Path) -> None:
    told: list[tuple[int, int]] = []
    serial = wattloom.compare(scenario, "random,pack,least-joules", seeds=2, processes=1)
    parallel = wattloom.compare(
        scenario,
        "random,pack,least-joules",
        seeds=2,
        processes=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert serial == parallel
    assert told[-1] == (360, 360)


def test_all_policies_of_a_seed_meet_the_same_tasks(scenario: Path) -> None:
    found = wattloom.compare(scenario, ["pack", "fifo"], seeds=2)
    alone = wattloom.simulate(scenario, "fifo", seed=1)
    assert found.row("fifo").runs[1] == alone


def test_means_and_spreads_are_over_the_seeds(scenario: Path) -> None:
    row = wattloom.compare(scenario, ["pack"], seeds=3).rows[0]
    totals = [run.energy.total for run in row.runs]
    assert row.energy.total == pytest.approx(sum(totals) / 3)
    assert row.energy_wh_spread > 0.0
    assert row.digest not in {run.digest for run in row.runs}


def test_an_error_in_another_process_is_the_error_of_this_one(scenario: Path, tmp_path: Path) -> None:
    policy = tmp_path / "mine.py"
    policy.write_text(
        "from wattloom import RankingPolicy\n"
        "class Fails(RankingPolicy):\n"
        "    name, summary = 'fails', 'fails'\n"
        "    def cost(self, shape, site, estimate):\n"
        "        return 1 / 0\n"
    )
    with pytest.raises(InputError, match="ZeroDivisionError"):
        wattloom.compare(scenario, ["fifo", f"{policy}:Fails"], processes=2)


def test_work_left_undone_is_not_a_saving(scenario: Path) -> None:
    found = wattloom.compare(scenario, ["pack", "fifo"])
    run = found.rows[0].runs[0]
    lazy = msgspec.structs.replace(run, energy=type(run.energy)(), tasks=msgspec.structs.replace(run.tasks, finished=1))
    undone = msgspec.structs.replace(found, rows=[type(found.rows[0])("lazy", [lazy]), found.rows[1]], reference="lazy")
    assert undone.best.policy == "fifo"
    assert "no saving is given" in undone.sentence


def test_a_saving_bought_with_waiting_says_so(scenario: Path) -> None:
    found = wattloom.compare(scenario, ["pack", "fifo"])
    later = msgspec.structs.replace(found.best.runs[0].wait_s, p95=found.best.wait_s.p95 + 500.0)
    slow = msgspec.structs.replace(found.best.runs[0], wait_s=later)
    rows = [type(row)(row.policy, [slow]) if row is found.best else row for row in found.rows]
    assert "95% of tasks start within" in msgspec.structs.replace(found, rows=rows).sentence


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("fifo", ["fifo"]),
        ("fifo, pack", ["fifo", "pack"]),
        ("marginal-energy:tdp=true,guarantee=0.8,pack", ["marginal-energy:tdp=true,guarantee=0.8", "pack"]),
        ("mine.py:A:x=1,y=2,mine.py:B,random:seed=3", ["mine.py:A:x=1,y=2", "mine.py:B", "random:seed=3"]),
        (",", []),
    ],
)
def test_policies_in_one_line_are_told_apart(text: str, specs: list[str]) -> None:
    assert separate(text) == specs


def test_the_reference_is_what_clusters_run_today_or_the_first() -> None:
    assert reference_among(["pack", "spread:ignore_requests=true"]) == "spread:ignore_requests=true"
    assert reference_among(["pack", "fifo"]) == "pack"


def test_a_log_names_policy_seed_and_scenario(scenario: Path, tmp_path: Path) -> None:
    from wattloom.history.log import Log

    wattloom.simulate(scenario, "marginal-energy:guarantee=0.8", seed=7, log=tmp_path / "run.log")
    header = Log(tmp_path / "run.log").header
    assert (header.policy, header.seed, header.scenario) == ("marginal-energy:guarantee=0.8", 7, "tiny")
