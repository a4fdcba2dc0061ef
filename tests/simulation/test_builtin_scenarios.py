"""The built-in scenarios and machines: what they must be to deserve their names."""

import re
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import wattloom
from wattloom.errors import ScenarioError
from wattloom.experiments.isa_draws import CATEGORIES, FUNCTIONS
from wattloom.machines.catalogue import MachineEntry, machines
from wattloom.machines.machine import Machine
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Policy
from wattloom.policies.spread import Spread
from wattloom.simulation.build import trial_of
from wattloom.simulation.listing import ScenarioInfo, scenarios, shown
from wattloom.simulation.loop import Simulation
from wattloom.simulation.published import Published, held_against
from wattloom.simulation.result import Result
from wattloom.simulation.scenario import (
    ArrivalsEntry,
    FaultEntry,
    FunctionEntry,
    NodeGroup,
    Scenario,
    VariantEntry,
    builtin_names,
    load_scenario,
    parse,
    text_of,
)
from wattloom.simulation.trial import SchedulerCost

RESULT_ID = re.compile(r"power_ssj2008-20\d{6}-\d{5}")
REFERENCE = "xeon-platinum-8280-2s"


def built_in(name: str) -> Scenario:
    return load_scenario(name)[0]


def simulated(name: str, policy: Policy, seed: int = 1) -> Result:
    return Simulation(trial_of(built_in(name), seed), policy).run()


# -- the catalogue -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", machines())
def test_a_machine_says_where_its_figures_come_from(name: str) -> None:
    machine = machines()[name]
    assert machine.source
    assert machine.watts
    if machine.provenance == "measured":
        assert RESULT_ID.search(machine.source)
        assert machine.quantity == "wall"
    powers = [watts for _, watts in machine.watts]
    assert powers == sorted(powers)
    assert machine.watts[-1][0] == machine.threads
    assert machine.sleep_w is None or machine.sleep_w < powers[0]


def test_there_are_many_kinds_of_real_machines() -> None:
    measured = [machine for machine in machines().values() if machine.provenance == "measured"]
    assert len(measured) >= 8
    assert {machine.arch for machine in machines().values()} == {"x86_64", "aarch64"}
    assert min(machine.threads for machine in measured) <= 8 < 200 <= max(machine.threads for machine in measured)
    idle_share = [machine.watts[0][1] / machine.watts[-1][1] for machine in measured]
    assert min(idle_share) < 0.2 < 0.6 < max(idle_share), "power-proportional ones and others"


def test_speeds_are_ssj_ops_per_core_of_throughput_against_the_reference() -> None:
    def per_core(name: str) -> float | None:
        found = re.search(r"ssj_ops at 100%(?:, (\w+) nodes)?: ([\d,]+)", machines()[name].source)
        if found is None:
            return None
        nodes = {None: 1, "four": 4, "eight": 8}[found[1]]
        machine = machines()[name]
        smt = machine.threads > machine.cores
        return (
            int(found[2].replace(",", "")) / nodes / (machine.threads / machine.smt_slowdown if smt else machine.cores)
        )

    reference = per_core(REFERENCE)
    assert reference is not None
    assert machines()[REFERENCE].speed == 1.0
    checked = 0
    for name, machine in machines().items():
        if machine.provenance == "measured":
            ours = per_core(name)
            assert ours is not None
            assert machine.speed == pytest.approx(ours / reference, abs=0.0006), name
            checked += 1
    assert checked >= 8


def test_sleep_and_wake_follow_the_stated_rule() -> None:
    for name, machine in machines().items():
        if machine.sleep_w is None:
            continue
        two = "-2s" in name
        small = not two and machine.cores <= 8
        asleep = (5.0 if two else 2.5) if machine.quantity == "package" else 15.0 if two else 5.0 if small else 10.0
        assert (machine.sleep_w, machine.wake_s) == (asleep, 15.0 if small else 30.0), name
        powers = [watts for _, watts in machine.watts]
        assert powers[0] * machine.wake_s < machine.wake_j < powers[-1] * machine.wake_s, name


# -- every scenario ----------------------------------------------------------------------------------------------------


def test_the_four_are_there() -> None:
    assert builtin_names() == ["heats-bursts", "hsc-cpu", "isa-mixed", "mixed-1000"]


@pytest.mark.parametrize("name", builtin_names())
def test_a_scenario_says_what_it_is_from_what_and_what_was_assumed(name: str) -> None:
    scenario = built_in(name)
    assert scenario.name == name
    assert scenario.title
    assert scenario.sources
    assert scenario.assumptions


@pytest.mark.parametrize("name", ["heats-bursts", "hsc-cpu", "isa-mixed"])
def test_every_task_finishes(name: str) -> None:
    tasks = simulated(name, Spread()).tasks
    assert (tasks.finished, tasks.failed, tasks.waiting) == (tasks.submitted, 0, 0)


# -- what the sources published ----------------------------------------------------------------------------------------

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "reference" / "scenarios.md").read_text()
PUBLISHING = [name for name in builtin_names() if built_in(name).published]


@pytest.mark.parametrize("name", PUBLISHING)
def test_what_is_recorded_beside_a_published_figure_is_what_the_model_gives(name: str) -> None:
    """And the documentation has both figures: a change of the model or of a policy cannot leave them behind."""
    for seeds in sorted({figure.seeds for figure in built_in(name).published}):
        figures = [figure for figure in built_in(name).published if figure.seeds == seeds]
        policies = list(dict.fromkeys(policy for figure in figures for policy in (figure.policy, *figure.against)))
        held = wattloom.compare(name, policies, seeds=seeds).held_against
        for figure, ours in zip(built_in(name).published, held, strict=True):
            if figure.seeds == seeds:
                assert not ours.recorded
                close = {"energy": 0.006, "makespan": 0.06, "saving": 0.06}.get(figure.what, 0.0)
                assert ours.ours == (figure.here if figure.what == "worst" else pytest.approx(figure.here, abs=close))
                assert f"{figure.policy}`" in DOCUMENTED
                for value in (ours.published, figure.here):
                    assert (value if isinstance(value, str) else f"{value:g}") in DOCUMENTED, (name, value)


def test_scenarios_that_contradict_their_source_say_so_wherever_they_are_shown() -> None:
    for name in PUBLISHING:
        wrong = [held for held in held_against(built_in(name).published, {}, {}, 0) if held.contradicts]
        assert wrong, f"{name} contradicts nothing any more: say so in its page"
        text = shown(name)
        assert parse(text, name) == built_in(name)
        assert text.startswith(f"# This scenario contradicts its source in {len(wrong)} of the ")
        assert all(f"#   {held.sentence}\n" in text for held in wrong)
        assert [held for held in _listed(name).published if held.contradicts] == wrong


def _listed(name: str) -> ScenarioInfo:
    return next(one for one in scenarios() if one.name == name)


FIGURE: dict[str, Any] = {"what": "energy", "policy": "a", "value": 100.0, "here": 90.0}
SAVING = {"what": "saving", "against": ["b"]}
WORST = {"what": "worst", "value": None, "against": ["b"], "here": None}
HELD: dict[str, tuple[dict[str, Any], dict[str, float], float | str | None, str]] = {
    "close": ({}, {"a": 104.0}, 104.0, "agrees"),
    "far": ({}, {"a": 106.0}, 106.0, "contradicts the source"),
    "not run": ({}, {"b": 106.0}, 90.0, "contradicts the source"),
    "fitted": ({"calibrated": True}, {"a": 101.0}, 101.0, "calibrated"),
    "fitted once": ({"calibrated": True}, {"a": 120.0}, 120.0, "contradicts the source"),
    "less saved": (SAVING | {"value": 7.0}, {"a": 95.0, "b": 100.0}, 5.0, "agrees"),
    "none saved": (SAVING | {"value": 2.0}, {"a": 101.0, "b": 100.0}, -1.0, "contradicts the source"),
    "worst": (WORST, {"a": 9.0, "b": 8.0}, "a", "agrees"),
    "not worst": (WORST, {"a": 8.0, "b": 9.0}, "b", "contradicts the source"),
    "neither run nor recorded": ({"here": None}, {"b": 106.0}, None, "not known"),
    "run with fewer seeds than recorded": ({"seeds": 8}, {"a": 100.0}, 90.0, "contradicts the source"),
    "run with one seed, none recorded": ({"seeds": 8, "here": None}, {"a": 100.0}, 100.0, "agrees"),
}
RECORDED = ("not run", "neither run nor recorded", "run with fewer seeds than recorded")


@pytest.mark.parametrize("case", HELD)
def test_a_published_figure_is_held_against_ours(case: str) -> None:
    more, energies, ours, verdict = HELD[case]
    (held,) = held_against([Published(**(FIGURE | more))], energies, dict.fromkeys(energies, 1.0), 1)
    assert (held.ours, held.verdict, held.recorded) == (ours, verdict, case in RECORDED)


def test_one_lucky_seed_does_not_make_a_scenario_agree_with_its_source() -> None:
    compared = wattloom.compare("heats-bursts", "spread,weighted:energy_weight=1")
    assert compared.held_against[0].sentence == (
        "saving of weighted:energy_weight=1 against spread: published 7.1%, here -1.8%, recorded over 8 seeds "
        "(-8.9 points): contradicts the source"
    )


SENSELESS = [
    {"value": None}, {"value": nan}, {"value": inf}, {"value": 0.0}, {"value": -1.0}, {"unit": "s"}, {"against": ["b"]},
    {"here": "a"}, {"here": nan}, {"seeds": 0}, {"what": "saving"}, SAVING | {"against": ["b", "c"]},
    WORST | {"against": []}, WORST | {"value": 1.0}, WORST | {"here": "c"}, WORST | {"here": 1.0},
]  # fmt: skip


@pytest.mark.parametrize("more", SENSELESS, ids=str)
def test_a_published_figure_that_nothing_can_be_held_against_is_refused_where_it_stands(more: dict[str, Any]) -> None:
    given = [f"{name} = {value!r}" for name, value in (FIGURE | more).items() if value is not None]
    text = "\n".join([text_of("isa-mixed"), "[[published]]", *given])
    with pytest.raises(ScenarioError, match=r"mine: published\[0\]"):
        parse(text, "mine")


# -- hsc-cpu -----------------------------------------------------------------------------------------------------------


def test_hsc_meets_the_row_it_was_calibrated_on() -> None:
    result = simulated("hsc-cpu", Spread())
    assert result.tasks.submitted == 210
    assert sum(wait == 0.0 for wait in result.waits) == 190
    assert result.makespan_s == pytest.approx(476.0, rel=0.002)
    assert result.energy.watt_hours()["total"] == pytest.approx(73.47, rel=0.002)


def test_hsc_two_jobs_on_a_core_take_half_as_long_again() -> None:
    assert 1.0 / Machine(machines()["epyc-7443-2s-a"]).speed(96_000) == pytest.approx(1.5)


# -- heats-bursts ------------------------------------------------------------------------------------------------------


def test_heats_k_means_costs_on_the_amd_node_what_the_source_measured() -> None:
    machine = Machine(machines()["epyc-7281-2s"])
    seconds = built_in("heats-bursts").functions["kmeans-speed"].seconds
    assert (machine.watts(2000) - machine.idle_w) * seconds["epyc-7281-2s"] == pytest.approx(1047.0, rel=0.005)


def test_heats_moving_to_arm_after_30_s_would_save_a_third() -> None:
    arm = Machine(machines()["cortex-a53-rpi3b"])
    seconds = built_in("heats-bursts").functions["kmeans-speed"].seconds
    rest = 1.0 - 30.0 / 69.0
    joules = 1047.0 * 30.0 / 69.0 + rest * seconds["cortex-a53-rpi3b"] * (arm.watts(2000) - arm.idle_w)
    assert (1047.0 - joules) / 1047.0 == pytest.approx(0.34, abs=0.01)


def test_heats_has_eight_workers_four_bursts_and_two_threads_per_task() -> None:
    scenario = built_in("heats-bursts")
    assert sum(group.count for group in scenario.nodes) == 8
    assert scenario.arrivals[0].bursts == 4
    assert {function.cpu for function in scenario.functions.values()} == {2.0}


# -- isa-mixed ---------------------------------------------------------------------------------------------------------


def test_isa_has_22_functions_for_both_instruction_sets_in_four_equal_categories() -> None:
    """Each category a quarter of the expected cores, each of its functions the same part: the mean of both servers."""
    scenario = built_in("isa-mixed")
    assert list(scenario.functions) == list(FUNCTIONS)
    rates = scenario.arrivals[0].functions
    cores = {name: rates[name] * (_isa_seconds(name, "x86") + _isa_seconds(name, "arm")) / 2 for name in FUNCTIONS}
    total = sum(cores.values())
    for names in CATEGORIES.values():
        assert [cores[name] for name in names] == pytest.approx([total / 4 / len(names)] * len(names), rel=0.001)


def test_isa_exactly_one_function_needs_less_energy_and_time_on_x86() -> None:
    """As the source found: 21 of 22 are better on ARM in speed or in energy."""
    watts = {}
    for name, entry in built_in("isa-mixed").machines.items():
        machine = Machine(entry.profile(name, name))
        watts[name] = (machine.full_watts - machine.idle_w) / machine.profile.cores
    better = [
        name
        for name in FUNCTIONS
        if _isa_seconds(name, "x86") < _isa_seconds(name, "arm")
        and _isa_seconds(name, "x86") * watts["isa-x86"] < _isa_seconds(name, "arm") * watts["isa-arm"]
    ]
    assert better == ["el-passo-cpp"]


def _isa_seconds(name: str, server: str) -> float:
    return built_in("isa-mixed").functions[name].variants[server].seconds[f"isa-{server}"]


# -- mixed-1000 --------------------------------------------------------------------------------------------------------


def test_mixed_1000_is_a_thousand_nodes_of_measured_machines() -> None:
    scenario = built_in("mixed-1000")
    assert sum(group.count for group in scenario.nodes) == 1000
    kinds = {group.machine for group in scenario.nodes}
    assert len(kinds) >= 6
    assert all(RESULT_ID.search(machines()[kind].source) for kind in kinds)
    assert len(scenario.functions) >= 8
    assert {function.priority for function in scenario.functions.values()} > {0}
    assert any(function.deadline_s for function in scenario.functions.values())
    assert any(function.defer_s for function in scenario.functions.values())


def test_mixed_1000_is_as_busy_as_data_centres_are() -> None:
    result = simulated("mixed-1000", MarginalEnergy())
    assert 20_000 <= result.tasks.submitted == result.tasks.finished <= 30_000
    assert 0.25 <= result.utilisation <= 0.35


# -- the reference pages -----------------------------------------------------------------------------------------------

REFERENCE_PAGES = Path(__file__).parents[2] / "docs" / "reference"


def test_every_scenario_and_every_field_is_in_the_reference() -> None:
    page = (REFERENCE_PAGES / "scenarios.md").read_text()
    for name in builtin_names():
        assert f"## {name}\n" in page
    tables = (Scenario, NodeGroup, FunctionEntry, VariantEntry, ArrivalsEntry, FaultEntry, MachineEntry, SchedulerCost)
    for table in tables:
        for field in table.__struct_fields__:
            assert f"`{field}`" in page or f"[{field}" in page or f"`{field}." in page, f"{table.__name__}.{field}"


def test_every_machine_is_in_the_reference_with_its_figures() -> None:
    page = (REFERENCE_PAGES / "machines.md").read_text()
    for name, machine in machines().items():
        idle, full = machine.watts[0][1], machine.watts[-1][1]
        figures = f"| `{name}` | {machine.cores} / {machine.threads} | {idle:g} | {full:g} | {machine.speed:g} |"
        assert figures in page, name
