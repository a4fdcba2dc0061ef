"""The simulator and this machine agree: the same calls on the same virtual nodes.

Each call spends a given CPU time. The seconds of each function on each node are calibrated; placements, makespan and
joules are predicted from them. Where others take the cores meanwhile (a call takes longer than its CPU time) the run is
repeated once; if both were disturbed, the simulator is asked with the lengths the calls really had.
"""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.beds import parity
from tests.beds.parity import Outcome, Planned, Seconds, Timed, timed

from wattloom import Executor, replay

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("beds_are_found"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two nodes need two cores"),
    pytest.mark.filterwarnings("default:disturbed"),
]

WITHIN = 0.10
DISTURBED = 0.03
POLICIES = ("round-robin", "least-joules", "arch-first")


def spin(seconds: float) -> Timed:
    def work() -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    return timed(work)


def short() -> Timed:
    return spin(LENGTHS["short"])


def middle() -> Timed:
    return spin(LENGTHS["middle"])


def long() -> Timed:
    return spin(LENGTHS["long"])


LENGTHS = {"short": 0.06, "middle": 0.14, "long": 0.24}
WORK: dict[str, Callable[[], Timed]] = {"short": short, "middle": middle, "long": long}
NODES = parity.two_nodes() if len(os.sched_getaffinity(0)) >= 2 else []
PLAN = [
    *(Planned(0.0, name) for name in ("middle", "middle", "short")),
    *(Planned(0.6, name) for name in ("middle", "long", "middle")),
    *(Planned(1.2, name) for name in ("middle", "middle", "middle", "middle", "long", "short")),
]
"""Three times some calls at once, the nodes empty in between: no ends that are close to each other."""
IDEAL: Seconds = {(name, "quick"): seconds for name, seconds in LENGTHS.items()} | {
    (name, "frugal"): seconds / 0.65 for name, seconds in LENGTHS.items()
}
"""What calibration would find on a perfect machine."""


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> Seconds:
    return parity.calibrate(NODES, WORK, tmp_path_factory.mktemp("calibration") / "work.journal", rounds=5)


def least_disturbed(policy: str, seconds: Seconds, folder: Path) -> Outcome:
    runs: list[Outcome] = []
    while len(runs) < 2 and not any(run.disturbance <= DISTURBED for run in runs):
        runs.append(parity.run(NODES, WORK, PLAN, policy, folder / f"{len(runs)}.journal", seconds))
    if len(runs) > 1:
        shares = ", ".join(f"{run.disturbance:.0%}" for run in runs)
        warnings.warn(f"disturbed: others had the cores, runs under {policy} were longer by {shares}", stacklevel=2)
    return min(runs, key=lambda run: run.disturbance)


def agree(predicted: Outcome, real: Outcome) -> None:
    assert predicted.makespan_s == pytest.approx(real.makespan_s, rel=WITHIN)
    assert predicted.joules == pytest.approx(real.joules, rel=WITHIN)


@pytest.mark.parametrize("policy", POLICIES)
def test_placements_makespan_and_joules_are_as_predicted(policy: str, seconds: Seconds, tmp_path: Path) -> None:
    real = least_disturbed(policy, seconds, tmp_path)
    if real.disturbance <= DISTURBED:
        predicted = parity.predict(NODES, WORK, PLAN, policy, seconds)
        assert predicted.placements == real.placements
        agree(predicted, real)
    else:
        agree(parity.predict(NODES, WORK, PLAN, policy, seconds, lengths=as_long_as(real, seconds)), real)


def as_long_as(real: Outcome, seconds: Seconds) -> list[float]:
    """How many times its calibrated length each call was, where it ran."""
    machine_of = {node.name: getattr(node.machine, "name", "") for node in NODES}
    node_of = dict(real.placements)
    return [
        length / seconds[PLAN[call].function, machine_of[node_of[call]]] for call, length in enumerate(real.lengths)
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_plan_does_not_hang_on_noise(policy: str) -> None:
    def predict(lengths: Sequence[float] | None) -> Outcome:
        return parity.predict(NODES, WORK, PLAN, policy, IDEAL, lengths=lengths)

    assert parity.is_steady(predict, len(PLAN), noise=0.04, tries=10)


def test_policies_place_the_plan_differently() -> None:
    placements = {tuple(parity.predict(NODES, WORK, PLAN, policy, IDEAL).placements) for policy in POLICIES}
    assert len(placements) == len(POLICIES)


def test_a_prediction_that_is_wrong_is_seen() -> None:
    right = parity.predict(NODES, WORK, PLAN, "round-robin", IDEAL)
    wrong = parity.predict(NODES, WORK, PLAN, "round-robin", {key: 1.4 * value for key, value in IDEAL.items()})
    with pytest.raises(AssertionError):
        agree(wrong, right)


def nothing(_: int) -> None:
    """As short as a call can be."""


def test_a_journal_of_many_calls_is_replayed_under_another_policy_in_seconds(tmp_path: Path) -> None:
    journal, tasks = tmp_path / "many.journal", 5_000
    with Executor(journal=journal, policy="fifo") as executor:
        for _ in executor.map(nothing, range(tasks)):
            pass
    began = time.process_time()
    again = replay(journal, policy="least-joules")
    took = time.process_time() - began
    assert again.same_decisions
    assert again.counterfactual is not None
    assert again.recorded.tasks.finished == again.counterfactual.tasks.finished == tasks
    assert took < 5.0  # 100,000 tasks in 20 times as much; it takes about a second
