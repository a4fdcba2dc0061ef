from pathlib import Path

import pytest

from wattloom.planning.plan import Assignment, Demand, Plan, Server

QUICK, SLOW = "tests.beds.burning.quick", "tests.beds.burning.slow"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def plan() -> Plan:
    """Two functions on two servers of one core, each far from busy."""
    return Plan(
        policy="energy-aware",
        goal="energy",
        objective=10.0,
        assignments=(
            Assignment(QUICK, "arm", 6.0, 1, 1.2, 100.0),
            Assignment(SLOW, "x86", 2.0, 1, 1.6, 25.0),
        ),
        servers=(
            Server(name="x86", machine="big", cores=1, idle_w=20.0, arch="x86_64"),
            Server(name="arm", machine="small", cores=1, idle_w=5.0, arch="aarch64"),
        ),
        demand=(Demand(function=QUICK, rate=6.0), Demand(function=SLOW, rate=2.0)),
    )
