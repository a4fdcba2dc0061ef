"""Every policy decides as it did when this was recorded, at the same joules and seconds, to the last bit."""

from pathlib import Path

import pytest
from tests.golden import scenarios
from tests.golden.scenarios import Case, Figures

import wattloom


def different(which: list[Case]) -> str:
    return "\n".join(scenarios.different(which, lambda line: None))


@pytest.mark.parametrize("policy", scenarios.POLICIES)
def test_small_scenarios_are_as_recorded(policy: str) -> None:
    assert different([case for case in scenarios.quick_cases() if case.policy == policy]) == ""


@pytest.mark.slow
@pytest.mark.parametrize("policy", scenarios.POLICIES)
@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
def test_all_scenarios_are_as_recorded(scenario: str, policy: str) -> None:
    assert different([case for case in scenarios.cases() if case[:2] == (scenario, policy)]) == ""


def test_every_scenario_policy_and_seed_is_recorded() -> None:
    assert set(scenarios.recorded()) == set(scenarios.cases())
    built_in = {each.name for each in wattloom.scenarios()}
    kept_here = {path.stem for path in Path(__file__).parent.glob("*.toml")}
    assert built_in <= set(scenarios.SCENARIOS) <= built_in | kept_here
    assert {policy.partition(":")[0] for policy in scenarios.POLICIES} <= {each.name for each in wattloom.policies()}


def test_what_moved_is_shown_as_before_and_after() -> None:
    case, before = next(iter(scenarios.recorded().items()))
    after = before._replace(energy_j="1.5")
    assert scenarios.row(case, before, after) == f"{case}: energy_j {before.energy_j} -> 1.5"


def test_a_figure_that_is_off_by_the_last_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("hsc-cpu", "fifo", 0)
    before = scenarios.recorded()[case]
    off = Figures(before.digest, repr(float(before.energy_j) * (1 + 2e-16)), before.makespan_s)
    monkeypatch.setattr(scenarios, "recorded", lambda: {case: off})
    assert different([case]) == f"{case}: energy_j {off.energy_j} -> {before.energy_j}"
