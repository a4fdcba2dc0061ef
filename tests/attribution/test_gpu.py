from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.attribution.gpu import (
    DeviceCall,
    DeviceInterval,
    DeviceUsage,
    Use,
    share_error,
    share_out,
    split_over_calls,
)

ERROR = 0.4
IDLE_W = 50.0


def interval(joules: float = 250.0, utilisation: float | None = None, seconds: float = 1.0) -> DeviceInterval:
    return DeviceInterval("GPU-a", seconds, joules, 1.0, IDLE_W, 2.0, utilisation)


def paid(usage: DeviceUsage) -> dict[int, float]:
    return {pid: round(joules, 4) for pid, (joules, _) in usage.processes.items()}


def spread(usage: DeviceUsage, pid: int) -> float:
    return usage.processes[pid][1]


def test_idle_stays_with_the_device_and_the_rest_goes_by_utilisation() -> None:
    usage = share_out(interval(), [Use(1, 0.6), Use(2, 0.2), Use(3, 0.0, 1 << 34)], ERROR)
    assert (usage.idle_j, usage.key) == (50.0, "utilisation")
    assert paid(usage) == {1: 150.0, 2: 50.0}, "who only holds memory pays nothing"
    assert usage.unattributed_j == pytest.approx(0.0, abs=1e-6)


def test_a_device_that_is_much_busier_than_its_processes_is_used_by_others() -> None:
    usage = share_out(interval(utilisation=0.8), [Use(1, 0.4)], ERROR)
    assert paid(usage) == {1: 100.0}
    assert usage.unattributed_j == pytest.approx(100.0)


def test_a_device_that_is_a_little_busier_was_looked_at_a_little_later() -> None:
    assert paid(share_out(interval(utilisation=0.5), [Use(1, 0.4)], ERROR)) == {1: 200.0}


def test_without_processes_all_that_is_above_idle_is_unattributed() -> None:
    usage = share_out(interval(utilisation=0.9), [], ERROR)
    assert (usage.processes, usage.unattributed_j, usage.key) == ({}, 200.0, "nothing")


def test_without_known_utilisation_memory_is_the_key() -> None:
    usage = share_out(interval(), [Use(1, None, 3 << 30), Use(2, None, 1 << 30)], ERROR)
    assert (paid(usage), usage.key) == ({1: 150.0, 2: 50.0}, "memory")


def test_memory_is_a_poorer_key_than_utilisation_and_the_spread_says_so() -> None:
    by_use = share_out(interval(), [Use(1, 0.6), Use(2, 0.2)], ERROR)
    by_memory = share_out(interval(), [Use(1, None, 3), Use(2, None, 1)], ERROR)
    assert paid(by_use) == paid(by_memory)
    assert spread(by_memory, 1) > 2 * spread(by_use, 1)
    assert spread(by_memory, 2) > spread(by_use, 2)


def test_the_only_process_has_all_of_it_and_only_the_meter_is_uncertain() -> None:
    for use in (Use(1, 0.3), Use(1, None, None)):
        usage = share_out(interval(), [use], ERROR)
        assert paid(usage) == {1: 200.0}
        assert spread(usage, 1) == pytest.approx((1.0 + 2.0**2) ** 0.5, rel=1e-3)


def test_neither_utilisation_nor_memory_leaves_it_unattributed() -> None:
    usage = share_out(interval(), [Use(1, None), Use(2, None)], ERROR)
    assert (usage.processes, usage.unattributed_j) == ({}, 200.0)


def test_those_of_whom_only_memory_is_known_share_what_the_others_left() -> None:
    uses = [Use(1, 0.25), Use(2, None, 3), Use(3, None, 1)]
    assert paid(share_out(interval(utilisation=0.5), uses, ERROR)) == {1: 100.0, 2: 75.0, 3: 25.0}
    assert paid(share_out(interval(utilisation=0.25), uses, ERROR)) == {1: 200.0}


def test_an_idle_device_gives_nothing_to_those_who_hold_memory() -> None:
    usage = share_out(interval(utilisation=0.0), [Use(1, None, 5), Use(2, None, 5)], ERROR)
    assert (usage.processes, usage.unattributed_j) == ({}, 200.0)


def test_a_process_on_several_instances_of_a_card_is_one() -> None:
    usage = share_out(interval(), [Use(1, 0.2), Use(1, 0.2), Use(2, 0.4)], ERROR)
    assert paid(usage) == {1: 100.0, 2: 100.0}


def test_less_than_idle_is_all_idle() -> None:
    usage = share_out(interval(joules=30.0), [Use(1, 0.6)], ERROR)
    assert usage.idle_j == pytest.approx(30.0)
    assert paid(usage) == {1: 0.0}


def test_the_error_of_a_share_is_what_a_thousand_draws_show() -> None:
    """Two processes whose watts differ by a factor each: the formula against the truth of many draws."""
    from random import Random

    draw = Random(7)
    truths = []
    for _ in range(4000):
        one, two = (0.7 * max(draw.gauss(1.0, 0.2), 0.01), 0.3 * max(draw.gauss(1.0, 0.2), 0.01))
        truths.append(one / (one + two))
    mean = sum(truths) / len(truths)
    deviation = (sum((truth - mean) ** 2 for truth in truths) / len(truths)) ** 0.5
    assert share_error(0.7, (0.7, 0.3), 0.2) == pytest.approx(deviation, rel=0.08)


def test_nine_in_ten_intervals_hold_the_truth() -> None:
    """Mixes of two to five processes whose watts per utilisation differ by 30%, on a device whose idle is known to 5 W,
    read by a counter that is good to 2 J."""
    from random import Random

    draw = Random(11)
    held = total = 0
    for _ in range(1500):
        busy = [draw.uniform(0.02, 0.5) for _ in range(draw.randint(2, 5))]
        active = [200.0 * share * max(draw.gauss(1.0, 0.3), 0.05) for share in busy]
        idle = draw.gauss(IDLE_W, 5.0)
        read = DeviceInterval("GPU-a", 1.0, idle + sum(active) + draw.gauss(0.0, 2.0), 2.0, IDLE_W, 5.0)
        usage = share_out(read, [Use(pid, round(share, 2)) for pid, share in enumerate(busy, 1)], 0.3)
        for pid, truth in enumerate(active, 1):
            estimate, off = usage.processes[pid]
            held += abs(estimate - truth) <= 1.645 * off
            total += 1
    assert 0.85 <= held / total <= 0.95, held / total


shares = st.one_of(st.none(), st.floats(0.0, 1.0), st.integers(0, 100).map(lambda percent: percent / 100.0))
some_uses = st.lists(
    st.builds(Use, st.integers(1, 9), shares, st.one_of(st.none(), st.integers(0, 1 << 36))), max_size=8
)


@given(
    st.floats(0.0, 1e6),
    st.floats(0.0, 500.0),
    st.floats(1e-3, 1e4),
    st.one_of(st.none(), st.floats(0.0, 1.0)),
    some_uses,
)
def test_what_the_meter_counted_is_exactly_what_is_given_out(
    joules: float, idle_w: float, seconds: float, busy: float | None, uses: list[Use]
) -> None:
    usage = share_out(DeviceInterval("GPU-a", seconds, joules, 0.1, idle_w, 1.0, busy), uses, ERROR)
    parts = sum(paid for paid, _ in usage.processes.values())
    assert usage.meter_j == usage.idle_j + usage.unattributed_j + parts
    assert usage.unattributed_j >= 0.0
    assert all(paid >= 0.0 and isfinite(off) and off >= 0.0 for paid, off in usage.processes.values())
    assert usage.meter_j == pytest.approx(joules, abs=1e-6)


@given(some_uses, st.one_of(st.none(), st.floats(0.0, 1.0)))
def test_nobody_pays_who_is_known_to_have_done_nothing(uses: list[Use], busy: float | None) -> None:
    usage = share_out(interval(utilisation=busy), uses, ERROR)
    for pid in {use.pid for use in uses}:
        if all(use.utilisation == 0.0 for use in uses if use.pid == pid):
            assert pid not in usage.processes


@given(some_uses, st.integers(1, 9))
def test_the_order_of_processes_does_not_matter(uses: list[Use], turn: int) -> None:
    turned = uses[turn % max(len(uses), 1) :] + uses[: turn % max(len(uses), 1)]
    one, other = (share_out(interval(), each, ERROR).processes for each in (uses, turned))
    assert {pid: joules for pid, (joules, _) in one.items()} == pytest.approx(
        {pid: joules for pid, (joules, _) in other.items()}, abs=1e-6
    )


# -- calls -----------------------------------------------------------------------------------------------------------


def call(task: str, pid: int, start: float, end: float) -> DeviceCall:
    return DeviceCall(task, "infer", pid, start, end)


def test_calls_of_a_worker_share_its_joules_by_time_inside_the_interval() -> None:
    calls = [call("a", 1, 8.0, 10.3), call("b", 1, 10.3, 10.4), call("c", 2, 10.0, 11.0), call("d", 1, 11.5, 12.0)]
    shares = split_over_calls(10.0, 11.0, [(1, 100.0, 5.0), (2, 30.0, 1.0)], calls, ERROR)
    assert {task: round(joules, 3) for task, (joules, _) in shares.calls.items()} == {"a": 75.0, "b": 25.0, "c": 30.0}
    assert shares.overhead_j == pytest.approx(0.0, abs=1e-6)
    assert shares.calls["c"][1] == 1.0, "a call that was alone has its worker's spread"
    assert shares.calls["a"][1] > 0.75 * 5.0


def test_a_worker_that_used_the_device_between_calls_is_overhead() -> None:
    shares = split_over_calls(10.0, 11.0, [(1, 100.0, 5.0)], [call("a", 1, 12.0, 13.0)], ERROR)
    assert (shares.calls, shares.overhead_j) == ({}, 100.0)


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.floats(0.0, 1e5), st.floats(0.0, 10.0)), max_size=3, unique_by=lambda p: p[0]
    ),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.floats(0.0, 20.0), st.floats(0.0, 5.0)), max_size=8),
)
def test_calls_and_overhead_are_what_the_processes_paid(
    paid: list[tuple[int, float, float]], made: list[tuple[int, int, float, float]]
) -> None:
    calls = [call(f"t{task}", pid, start, start + seconds) for task, pid, start, seconds in made]
    shares = split_over_calls(10.0, 11.0, paid, calls, ERROR)
    total = sum(joules for joules, _ in shares.calls.values()) + shares.overhead_j
    assert total == pytest.approx(sum(joules for _, joules, _ in paid), abs=1e-5)
    assert shares.overhead_j >= 0.0
