"""The built-in scenarios as a list for people and programs.

Owns what is told of each. The scenarios are `scenario`'s.
"""

import msgspec

from wattloom.simulation.scenario import Scenario, builtin_names, load_scenario


class ScenarioInfo(msgspec.Struct, frozen=True):
    """A built-in scenario."""

    name: str
    title: str
    nodes: int
    machines: int
    """Different types."""
    functions: int
    assumptions: list[str]
    sources: list[str]


def scenarios() -> list[ScenarioInfo]:
    """The built-in scenarios."""
    return [_info(load_scenario(name)[0], name) for name in builtin_names()]


def _info(scenario: Scenario, name: str) -> ScenarioInfo:
    return ScenarioInfo(
        name=name,
        title=scenario.title,
        nodes=sum(group.count for group in scenario.nodes),
        machines=len({group.machine for group in scenario.nodes}),
        functions=len(scenario.functions),
        assumptions=scenario.assumptions,
        sources=scenario.sources,
    )
