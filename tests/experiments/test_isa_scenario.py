"""The scenario `isa-mixed` is a draw of the experiment, as it came; in it all that the study says holds."""

import pytest
from msgspec.structs import replace

from wattloom.experiments.isa import DrawFacts, facts_of
from wattloom.experiments.isa_draws import WORKLOADS
from wattloom.experiments.isa_runs import POLICIES, runs_of
from wattloom.experiments.isa_scenario import TYPICAL, nearest_the_medians, text, typical_draw
from wattloom.simulation.scenario import text_of


def typical() -> DrawFacts:
    draw = typical_draw()
    found = facts_of(draw, runs_of(draw))
    assert found is not None
    return found


def test_the_scenario_is_written_from_the_draw_and_not_by_hand() -> None:
    again = (
        "write it anew: python -m wattloom.experiments.isa_scenario > src/wattloom/simulation/scenarios/isa-mixed.toml"
    )
    assert text_of("isa-mixed") == text(typical_draw()), again


def test_in_it_every_fact_of_the_study_holds_at_once() -> None:
    assert [fact for fact, holds in typical().facts.items() if not holds] == []


@pytest.mark.parametrize("workload", WORKLOADS)
def test_in_it_energies_of_whole_servers_are_in_the_studys_order(workload: str) -> None:
    whole = {policy: typical().runs[workload, policy].whole_w for policy in POLICIES}
    worst = "arm-first" if workload == "crypto" else "round-robin"
    assert max(whole, key=lambda policy: whole[policy]) == worst
    assert min(whole, key=lambda policy: whole[policy]) == "energy-aware"


def test_the_typical_one_of_several_is_that_with_savings_nearest_the_medians() -> None:
    one = typical()
    usual = [replace(one, number=number, facts={"": False}) for number in range(3)]
    near = replace(one, number=3, savings={name: saving + 1.0 for name, saving in one.savings.items()})
    far = replace(one, number=4, savings={name: saving + 9.0 for name, saving in one.savings.items()})
    found = nearest_the_medians([*usual, far, near])
    assert found is not None
    assert found.number == 3
    assert nearest_the_medians(usual) is None
    assert one.number == TYPICAL
