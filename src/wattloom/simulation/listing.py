"""The built-in scenarios as a list for people and programs.

Owns what is told of each. The scenarios are `scenario`'s.
"""

import msgspec

from wattloom.simulation.published import HeldAgainst, held_against
from wattloom.simulation.scenario import Scenario, builtin_names, load_scenario, text_of


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
    published: list[HeldAgainst]
    """What the sources say, and what the model gave as recorded with it."""


def shown(name: str) -> str:
    """A built-in scenario's file, and before it, as comments, where it contradicts its source."""
    held = _info(load_scenario(name)[0], name).published
    wrong = [each for each in held if each.contradicts]
    if not wrong:
        return text_of(name)
    told = f"This scenario contradicts its source in {len(wrong)} of the {len(held)} figures it published:"
    comments = [told, *(f"  {each.sentence}" for each in wrong)]
    return "".join(f"# {line}\n" for line in comments) + "\n" + text_of(name)


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
        published=held_against(scenario.published, {}, {}, 0),
    )
