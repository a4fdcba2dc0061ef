"""Two servers, exactly: against all assignments there are."""

from itertools import product

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattloom.planning.two_servers import least_on_two, one_by_one

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))
COSTS = st.tuples(st.integers(1, 20), st.integers(1, 20))
FUNCTIONS = st.lists(st.tuples(SIZES, COSTS), min_size=1, max_size=7)
ROOM = st.tuples(st.integers(1, 20), st.integers(1, 20))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FUNCTIONS, ROOM)
def test_the_least_is_found_wherever_anything_fits(
    functions: list[tuple[tuple[int, int], tuple[int, int]]], capacity: tuple[int, int]
) -> None:
    cores = np.array([size for size, _ in functions])
    cost = np.array([each for _, each in functions], dtype=float)
    fitting = [way for way in product((0, 1), repeat=len(functions)) if _fits(way, cores, capacity)]
    found = least_on_two(cores, cost, capacity)
    if not fitting:
        assert found is None
        return
    assert found is not None
    best = min(fitting, key=lambda way: (sum(cost[at, server] for at, server in enumerate(way)), way))
    assert tuple(found) == best, "the first of the best, server 0 before server 1"


def _fits(way: tuple[int, ...], cores: np.ndarray, capacity: tuple[int, int]) -> bool:
    given_out = [sum(cores[at, server] for at, each in enumerate(way) if each == server) for server in (0, 1)]
    return bool(given_out[0] <= capacity[0] and given_out[1] <= capacity[1])


@given(FUNCTIONS, ROOM, st.integers(0, 1))
def test_one_by_one_gives_each_the_server_whose_turn_it_is_or_the_other(
    functions: list[tuple[tuple[int, int], tuple[int, int]]], capacity: tuple[int, int], first: int
) -> None:
    cores = np.array([size for size, _ in functions])
    turns = [(first + at) % 2 for at in range(len(functions))]
    left, expected = list(capacity), []
    for size, turn in zip(cores.tolist(), turns, strict=True):
        server = next((each for each in (turn, 1 - turn) if size[each] <= left[each]), -1)
        if server < 0 or -1 in expected:
            server = -1
        else:
            left[server] -= size[server]
        expected.append(server)
    assert one_by_one(turns, cores, capacity).tolist() == expected
    twice = one_by_one(turns, np.stack([cores, cores]), capacity)
    assert twice.tolist() == [expected, expected]
