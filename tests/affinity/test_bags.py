"""Which functions run beside which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.affinity.bags import Lots, drawn, rounds
from wattloom.errors import InputError


@given(
    functions=st.integers(1, 30),
    size=st.integers(1, 12),
    least=st.integers(1, 4),
    more=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_every_function_is_in_enough_bags_and_none_is_much_more_often_than_another(
    functions: int, size: int, least: int, more: int, seed: int
) -> None:
    names = [f"f{number}" for number in range(functions)]
    bags = -(-least * functions // min(size, functions)) + more
    found = drawn(names, Lots(bags, size, least, seed))
    counts = [sum(name in bag for bag in found) for name in names]
    assert len(found) == bags
    assert min(counts) >= least
    assert max(counts) - min(counts) <= 1
    assert all(len(set(bag)) == len(bag) == min(size, functions) for bag in found)


def test_the_same_seed_gives_the_same_bags_and_another_gives_others() -> None:
    names = [f"f{number}" for number in range(22)]
    assert drawn(names, Lots(seed=3)) == drawn(names, Lots(seed=3))
    assert drawn(names, Lots(seed=3)) != drawn(names, Lots(seed=4))


def test_too_few_bags_are_refused_with_how_many_are_needed() -> None:
    with pytest.raises(InputError, match="22 functions in at least 2 bags of 8 need 6 bags, not 5"):
        drawn([f"f{number}" for number in range(22)], Lots(bags=5))


def test_no_functions_and_twice_the_same_are_refused() -> None:
    with pytest.raises(InputError, match="name at least one"):
        drawn([], Lots())
    with pytest.raises(InputError, match="a is there twice"):
        drawn(["a", "b", "a"], Lots())


@given(size=st.integers(1, 20), cores=st.integers(1, 70))
def test_in_every_round_all_cores_are_busy_and_every_function_has_its_turn(size: int, cores: int) -> None:
    bag = tuple(f"f{number}" for number in range(size))
    found = rounds(bag, cores)
    assert all(len(each) == cores for each in found)
    assert {name for each in found for name in each} == set(bag)
    assert len(found) == -(-size // cores)
