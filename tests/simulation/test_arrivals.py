"""Streams of tasks: what a seed fixes, and whether the chances are what the file says."""

import io
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev

import msgspec
import pytest

from wattloom.errors import ScenarioError
from wattloom.history.log import Header, LogWriter
from wattloom.policies.protocol import Policy
from wattloom.policies.random_choice import RandomChoice
from wattloom.policies.round_robin import RoundRobin
from wattloom.policies.spread import Spread
from wattloom.scheduling import events as ev
from wattloom.simulation.build import trial_of
from wattloom.simulation.loop import Simulation
from wattloom.simulation.scenario import load_scenario, parse
from wattloom.simulation.trial import Arrival

CLUSTER = """
name = "test"
[[nodes]]
machine = "xeon-e5-2670-2s"
count = 3
[[nodes]]
machine = "xeon-e3-1260lv5-1s"
[functions.a]
work_s = 10
spread = 0.5
[functions.b]
work_s = 40
"""


def arrivals(text: str, seed: int = 0, folder: Path = Path()) -> list[Arrival]:
    return trial_of(parse(CLUSTER + "[[arrivals]]\n" + text, "test"), seed, folder).arrivals


def test_poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() -> None:
    times = [one.time for one in arrivals('kind = "poisson"\nrate_per_s = 2\ncount = 20000\nfunctions = { a = 1 }')]
    gaps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
    assert fmean(gaps) == pytest.approx(0.5, abs=4 * 0.5 / sqrt(20000))
    assert pstdev(gaps) == pytest.approx(0.5, rel=0.05)


def test_poisson_for_a_duration_stays_within_it() -> None:
    text = 'kind = "poisson"\nrate_per_s = 3\nduration_s = 2000\nstart_s = 100\nfunctions = { a = 1 }'
    times = [one.time for one in arrivals(text)]
    assert 100.0 <= min(times) < max(times) < 2100.0
    assert len(times) == pytest.approx(6000, abs=4 * sqrt(6000))


def test_functions_are_drawn_by_their_weights() -> None:
    drawn = arrivals('kind = "at-once"\ncount = 10000\nfunctions = { a = 1, b = 3 }')
    share = sum(one.task.function == "b" for one in drawn) / len(drawn)
    assert share == pytest.approx(0.75, abs=4 * sqrt(0.75 * 0.25 / 10000))
    assert {one.time for one in drawn} == {0.0}


def test_lengths_have_mean_one_and_the_given_spread() -> None:
    factors = [one.factor for one in arrivals('kind = "at-once"\ncount = 20000\nfunctions = { a = 1 }')]
    assert fmean(factors) == pytest.approx(1.0, abs=4 * 0.5 / sqrt(20000))
    assert pstdev(factors) == pytest.approx(0.5, rel=0.05)
    assert min(factors) > 0.0


def test_without_a_spread_all_tasks_are_equally_long() -> None:
    assert {one.factor for one in arrivals('kind = "at-once"\ncount = 50\nfunctions = { b = 1 }')} == {1.0}


def test_bursts_come_when_they_should() -> None:
    text = 'kind = "bursts"\nbursts = 3\nevery_s = 100\nwithin_s = 20\ncount = 400\nstart_s = 10\nfunctions = { a = 1 }'
    times = [one.time for one in arrivals(text)]
    for burst in range(3):
        begin = 10.0 + 100.0 * burst
        within = [time - begin for time in times if begin <= time <= begin + 20.0]
        assert len(within) == 400
        assert fmean(within) == pytest.approx(10.0, abs=4 * 20 / sqrt(12 * 400))


def test_tasks_are_in_order_of_time_over_all_streams() -> None:
    text = 'kind = "poisson"\nrate_per_s = 1\ncount = 100\nfunctions = { a = 1 }\n'
    drawn = arrivals(text + "[[arrivals]]\n" + text.replace("a = 1", "b = 1"))
    times = [one.time for one in drawn]
    assert times == sorted(times)
    assert [one.task.id for one in drawn] == [f"t{n}" for n in range(1, 201)]


# -- traces ------------------------------------------------------------------------------------------------------------


def trace(folder: Path, text: str) -> list[Arrival]:
    (folder / "trace.csv").write_text(text)
    return arrivals('kind = "trace"\nfile = "trace.csv"\nstart_s = 5', folder=folder)


def test_a_trace_says_everything_itself(tmp_path: Path) -> None:
    first, second, third = trace(
        tmp_path,
        "time_s,function,seconds,count,priority,deadline_s,energy_weight,defer_s\n7,b,,,,,,\n1.5,a,25,2,3,60,0.9,30\n",
    )
    assert (first.time, first.task.function, first.factor) == (6.5, "a", 2.5)
    assert (first.task.priority, first.task.deadline_s, first.task.energy_weight, first.task.defer_s) == (
        3,
        60,
        0.9,
        30,
    )
    assert msgspec.structs.replace(second.task, id=first.task.id) == first.task
    assert (third.time, third.task.function, third.factor, third.task.priority) == (12.0, "b", 1.0, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("time_s\n1\n", "columns time_s and function"),
        ("time_s,function,colour\n1,a,red\n", "unknown columns: colour"),
        ("time_s,function\nsoon,a\n", "trace.csv:2: time_s: is not a number"),
        ("time_s,function\n-1,a\n", "trace.csv:2: time_s: must be a number, not negative"),
        ("time_s,function\ninf,a\n", "time_s: must be finite"),
        ("time_s,function\n1,c\n", "function 'c'"),
        ("time_s,function,count\n1,a,0\n", "count: must be at least 1"),
        ("time_s,function,count\n1,a,1.5\n", "count: must be a whole number"),
        ("time_s,function,priority\n1,a,0.5\n", "priority: must be a whole number"),
        ("time_s,function,seconds\n1,a,-3\n", "seconds: must be positive"),
        ("time_s,function,energy_weight\n1,a,2\n", "energy_weight: must be between 0 and 1"),
        ("time_s,function,deadline_s\n1,a,0\n", "deadline_s: must be positive"),
    ],
)
def test_a_wrong_trace_is_an_error_that_names_the_cell(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        trace(tmp_path, text)


def test_a_missing_trace_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"arrivals\[0\]\.file: .*nowhere\.csv cannot be read"):
        arrivals('kind = "trace"\nfile = "nowhere.csv"')


# -- seeds -------------------------------------------------------------------------------------------------------------

MIXED = """
kind = "poisson"
rate_per_s = 1
count = 300
functions = { a = 2, b = 1 }
"""


def logged(seed: int, policy: Policy) -> tuple[bytes, bytes]:
    """The result as JSON, and the log."""
    file = io.BytesIO()
    trial = trial_of(parse(CLUSTER + "[[arrivals]]" + MIXED, "test"), seed)
    result = Simulation(trial, policy, LogWriter(file, Header(1, policy.name, "simulation", seed))).run()
    return msgspec.json.encode(result), file.getvalue()


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert logged(4, RandomChoice()) == logged(4, RandomChoice())


def test_another_seed_gives_other_tasks() -> None:
    assert arrivals(MIXED, 1) != arrivals(MIXED, 2)
    assert logged(1, Spread())[0] != logged(2, Spread())[0]


def test_a_tasks_length_does_not_depend_on_the_policy() -> None:
    lengths = [true_lengths(policy) for policy in (Spread(), RoundRobin(), RandomChoice())]
    assert lengths[0].keys() == lengths[1].keys() == lengths[2].keys()
    assert lengths[0] == pytest.approx(lengths[1])
    assert lengths[0] == pytest.approx(lengths[2])
    assert len(set(lengths[0].values())) > 100


def true_lengths(policy: Policy) -> dict[str, float]:
    """Seconds each task would have taken on a machine of speed 1, by what the log says of where it ran."""
    trial = trial_of(parse(CLUSTER + "[[arrivals]]" + MIXED, "test"), 7)
    speeds = {profile.name: profile.speed for profile in trial.machines}
    machine_of = {node.name: speeds[node.machine] for node in trial.nodes}
    file = io.BytesIO()
    Simulation(trial, policy, LogWriter(file, Header(1, policy.name, "simulation", 7))).run()
    lengths: dict[str, float] = {}
    where: dict[str, str] = {}
    for line in file.getvalue().splitlines()[1:]:
        record = msgspec.json.decode(line)
        if record.get("instruction") == "place":
            where[record["task"]] = record["node"]
        elif line.startswith(b'{"event"'):
            event = msgspec.json.decode(line, type=ev.AnyEvent)
            if isinstance(event, ev.TaskFinished) and event.seconds is not None:
                lengths[event.task] = event.seconds * machine_of[where[event.task]]
    return lengths


def test_a_built_in_scenario_has_the_same_tasks_on_every_machine() -> None:
    """Seeds are strings hashed by SHA-512: these figures must never change."""
    scenario, folder = load_scenario("heats-bursts")
    drawn = trial_of(scenario, 1, folder).arrivals
    assert [(one.task.function, round(one.time, 6), round(one.factor, 6)) for one in drawn[:2]] == [
        ("kmeans-energy", 1.054624, 1.054759),
        ("kmeans-speed", 2.170037, 0.468921),
    ]
