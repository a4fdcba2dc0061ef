"""Sleep is nobody's privilege: every policy runs with it and without, and a log says which it was."""

from pathlib import Path

import pytest

import wattloom
from wattloom.errors import InputError, PolicyError
from wattloom.history.log import Log
from wattloom.kubernetes.options import usable_policy
from wattloom.policies.fifo import Fifo
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.listing import builtin_policies, compared_policies
from wattloom.policies.loading import both_ways, load_policy, with_sleep
from wattloom.policies.protocol import sleeping
from wattloom.scheduling.instructions import Sleep
from wattloom.simulation.result import Result
from wattloom.testing.builders import LINEAR, SLEEPER
from wattloom.testing.harness import Harness
from wattloom.testing.odd_policies import Lingering, Scripted


def sleepy(h: Harness) -> list[str]:
    """Nodes that are sent to sleep when nothing comes for an hour."""
    return [each.node for each in h.tick(3600.0) if isinstance(each, Sleep)]


@pytest.mark.parametrize("name", builtin_policies())
def test_any_policy_lets_idle_nodes_sleep_or_not(name: str) -> None:
    def nodes_asleep(sleep: bool | None) -> list[str]:
        h = Harness(load_policy(with_sleep(name, sleep))).node("a", SLEEPER).node("b", LINEAR)
        return sleepy(h)

    assert nodes_asleep(True) == ["a"]
    assert nodes_asleep(False) == []
    assert nodes_asleep(None) == (["a"] if name in ("least-joules", "planned") else [])


def test_a_node_sleeps_once_idling_has_cost_a_wake_up() -> None:
    h = Harness(sleeping(Fifo())).node("a", SLEEPER)
    due = SLEEPER.wake_j / (20.0 - (SLEEPER.sleep_w or 0.0))
    assert h.tick(due - 0.01) == []
    assert [type(each) for each in h.tick(due)] == [Sleep]


def test_a_policy_s_own_rule_goes_before_the_usual_one_and_no_sleep_before_both() -> None:
    h = Harness(sleeping(Lingering())).node("a", SLEEPER)
    assert h.tick(29.9) == []
    assert [type(each) for each in h.tick(30.0)] == [Sleep]
    assert sleepy(Harness(sleeping(Lingering(), False)).node("a", SLEEPER)) == []
    assert sleepy(Harness(sleeping(LeastJoules(), False)).node("a", SLEEPER)) == []


def test_an_option_that_was_written_stays_and_a_wrong_one_is_named() -> None:
    assert with_sleep("least-joules:sleep=false,stretch=2", True) == "least-joules:sleep=false,stretch=2"
    assert with_sleep("spread", None) == "spread"
    assert both_ways(["fifo", "least-joules"]) == [
        "fifo",
        "fifo:sleep=true",
        "least-joules",
        "least-joules:sleep=false",
    ]
    with pytest.raises(PolicyError, match="true or false"):
        load_policy("fifo:sleep=often")


def test_kubernetes_refuses_sleep_that_was_asked_for() -> None:
    for spec in ("fifo:sleep=true", "least-joules:linger=2"):
        with pytest.raises(InputError, match="not done on Kubernetes"):
            usable_policy(spec)
    assert usable_policy("least-joules:sleep=false").sleeps is False
    assert usable_policy("least-joules").name == "least-joules"


def test_a_log_says_whether_nodes_slept_and_replays_to_it(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    result = wattloom.simulate("heats-bursts", "spread", log=log, sleep=True)
    assert result.policy == Log(log).header.policy == "spread:sleep=true"
    assert result.energy.sleep > 0.0
    replayed = wattloom.replay(log, "spread", sleep=False)
    assert replayed.same_decisions
    assert replayed.recorded.energy.total == pytest.approx(result.energy.total, rel=1e-9)
    assert replayed.recorded.peak_w == pytest.approx(result.peak_w)
    assert replayed.counterfactual is not None
    assert replayed.counterfactual.energy.sleep == 0.0
    with pytest.raises(InputError, match="name one"):
        wattloom.replay(log, sleep=True)


def test_a_comparison_shows_all_policies_both_ways_unless_told_otherwise() -> None:
    both = wattloom.compare("heats-bursts")
    assert len(both.rows) == 2 * len(compared_policies())
    assert both.row("spread:sleep=true").energy.total < both.row("spread").energy.total
    assert "one seed" in both.sentence
    awake = wattloom.compare("heats-bursts", "spread,pack", 3, sleep=False)
    assert [row.policy for row in awake.rows] == ["spread:sleep=false", "pack:sleep=false"]
    assert "over 3 seeds, ±" in awake.sentence


def test_peak_power_and_energy_times_delay_are_in_every_result() -> None:
    result = wattloom.simulate("heats-bursts", "pack")
    mean = max(watts for _, watts in result.power)
    assert result.peak_w >= mean
    told = result.to_json()
    assert told["peak_w"] == result.peak_w
    assert told["energy_delay_js"] == result.energy.total * result.makespan_s
    row = wattloom.compare("heats-bursts", ["pack"], 2).rows[0]
    assert row.to_json()["peak_w"] == pytest.approx(sum(run.peak_w for run in row.runs) / 2)
    assert isinstance(row.runs[0], Result)


def test_a_policy_without_a_word_on_sleep_does_as_it_did() -> None:
    assert Scripted(lambda ask, view: load_policy("fifo").propose(ask, view)).sleeps is None
