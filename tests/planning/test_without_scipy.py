"""Without the extra `planning`: simple policies work, the others say what to install."""

import sys

import pytest
from tests.beds.plans import ARM, X86, kept, table

from wattloom.errors import MissingExtra
from wattloom.planning.making import Wishes, make_plan
from wattloom.planning.plan import Demand

PROFILES = table({name: {"arm": (1.0, 1.0), "x86": (1.0, 2.0), "third": (1.0, 3.0)} for name in "abc"})
DEMAND = [Demand(function=name, rate=9.0) for name in "abc"]


@pytest.fixture
def _no_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)


@pytest.mark.usefixtures("_no_scipy")
def test_simple_policies_need_no_solver() -> None:
    servers = [ARM, X86, ARM.__class__(name="third", machine="third", cores=9)]
    assert kept(make_plan(DEMAND, servers, PROFILES, Wishes("round-robin")))


@pytest.mark.usefixtures("_no_scipy")
def test_a_plan_that_must_be_solved_names_the_extra() -> None:
    servers = [ARM, X86, ARM.__class__(name="third", machine="third", cores=9)]
    with pytest.raises(MissingExtra, match=r"wattloom\[planning\]"):
        make_plan(DEMAND, servers, PROFILES)
