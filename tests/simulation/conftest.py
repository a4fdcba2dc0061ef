"""What the simulator's tests share: small scenarios written as files are, and a policy that lets nodes sleep."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wattloom.cluster.node_class import NodeClass
from wattloom.policies.fifo import Fifo
from wattloom.policies.protocol import Policy
from wattloom.policies.view import View
from wattloom.simulation.build import trial_of
from wattloom.simulation.loop import Simulation
from wattloom.simulation.result import Result
from wattloom.simulation.scenario import parse

Run = Callable[..., Result]

FREE = "scheduler = { watts = 0 }"

MACHINES = """
[machines.smt]          # two cores, four threads
arch = "x86_64"
cores = 2
threads = 4
memory_gib = 8
cores_watts = [[0, 10], [2, 30], [4, 34]]
sleep_w = 1
wake_s = 5
wake_j = 100

[machines.plain]        # two cores without SMT
arch = "x86_64"
cores = 2
memory_gib = 8
cores_watts = [[0, 10], [1, 22], [2, 30]]
"""


class Sleepy(Fifo):
    """First node with room; idle nodes sleep after five seconds."""

    name = "sleepy"

    def linger(self, cls: NodeClass, view: View) -> float | None:
        return 5.0


@pytest.fixture
def run() -> Run:
    """Simulates a scenario written on the two test machines, by default under fifo."""

    def simulate(text: str, policy: Policy | None = None, seed: int = 0, top: str = FREE) -> Result:
        trial = trial_of(parse(f'name = "test"\n{top}\n{MACHINES}{text}', "test"), seed)
        return Simulation(trial, policy if policy is not None else Fifo()).run()

    return simulate


@pytest.fixture
def sleepy() -> Policy:
    return Sleepy()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log may be written."""
    return tmp_path / "run.log"
