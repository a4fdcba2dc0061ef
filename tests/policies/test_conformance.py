import re
from collections.abc import Callable
from math import inf, nextafter
from pathlib import Path

import pytest

from wattloom.cluster.node import Node
from wattloom.machines.profile import MachineProfile
from wattloom.policies.loading import available, load_policy, unavailable
from wattloom.policies.protocol import Policy
from wattloom.testing.policy_clusters import History
from wattloom.testing.policy_conformance import CHECKS, Check, check_name, check_policy
from wattloom.units import GIB
from wattloom.workload.function import Function, Variant
from wattloom.workload.task import Task

WITH_OPTIONS = (
    "marginal-energy:guarantee=1,tdp=false",
    "marginal-energy:guarantee=0.5",
    "spread:ignore_requests=true",
    "arch-first:first=aarch64",
    "random:seed=7",
    "weighted:energy_weight=1",
    "weighted:energy_weight=0",
    "least-joules:sleep=false",
)


def _make(spec: str) -> Callable[[], Policy]:
    return lambda: load_policy(spec)


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("spec", [*available(), *WITH_OPTIONS])
def test_every_policy_conforms(spec: str, check: Check) -> None:
    check(_make(spec))


def test_every_entry_point_loads() -> None:
    assert unavailable() == {}


# -- ties --------------------------------------------------------------------------------------------------------------

CURVE = ((0.0, 17.3), (1.0, 31.1), (4.0, 58.7), (8.0, 77.9))


def machine(name: str, bits: int) -> MachineProfile:
    """Equal to the others but for the last bits of its watts."""
    watts = tuple((cores, nudged(power, bits)) for cores, power in CURVE)
    return MachineProfile(
        name, "x86_64", 4, 8, 64 * GIB, watts=watts, tdp_w=300.0, sleep_w=1.3, wake_s=3.1, wake_j=90.7
    )


def nudged(value: float, bits: int) -> float:
    for _ in range(abs(bits)):
        value = nextafter(value, inf if bits > 0 else -inf)
    return value


def seconds(alone: float, *bits: int) -> dict[str, float]:
    return {f"m{number}": nudged(alone, -each) for number, each in enumerate(bits)}


def places(spec: str, *bits: int) -> list[str]:
    machines = [machine(f"m{number}", each) for number, each in enumerate(bits)]
    nodes = [Node(f"n{number}", each.name) for number, each in enumerate(machines)]
    functions = [Function(f"f{n}", variants=(Variant(seconds=seconds(n + 0.7, *bits)),)) for n in range(2)]
    one = History(load_policy(spec)).set_up(nodes, machines, functions)
    return [one.place(Task(f"t{n}", f"f{n % 2}", energy_weight=0.37)) for n in range(20)]


@pytest.mark.parametrize("spec", [*available(), *WITH_OPTIONS])
def test_the_last_bits_of_a_float_decide_nothing(spec: str) -> None:
    """Three nodes that nobody could tell apart by a meter: their names decide, or what the policy says of ties."""
    expected = places(spec, 0, 0, 0)
    for bits in ((3, 0, -3), (0, -2, 1), (1, 4, 0)):
        assert places(spec, *bits) == expected


# -- the tutorial ------------------------------------------------------------------------------------------------------

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "write-a-policy.md"
VERSIONS = re.findall(r'^```python title="fastest.py"\n(.*?)^```$', TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)


def test_the_tutorial_has_three_versions_of_its_policy() -> None:
    assert len(VERSIONS) == 3


@pytest.mark.parametrize("version", VERSIONS, ids=["smallest", "ties", "option"])
def test_every_version_of_the_tutorial_is_a_good_citizen(version: str, tmp_path: Path) -> None:
    """Who stops reading after any step has a policy that conforms."""
    (tmp_path / "fastest.py").write_text(version)
    spec = f"{tmp_path / 'fastest.py'}:Fastest"
    check_policy(_make(spec))
    test_the_last_bits_of_a_float_decide_nothing(spec)
