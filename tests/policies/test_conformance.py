from collections.abc import Callable

import pytest

from wattloom.policies.loading import available, load_policy, unavailable
from wattloom.policies.protocol import Policy
from wattloom.testing.policy_conformance import CHECKS, Check, check_name

WITH_OPTIONS = (
    "marginal-energy:guarantee=0.8,tdp=true",
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
