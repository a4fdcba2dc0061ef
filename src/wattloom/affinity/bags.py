"""Bags: which functions run beside which.

Owns the lots and the rounds. A bag is a set of functions that share a machine; where it is larger than the machine has
cores, it is run in rounds. The same seed gives the same bags. Nothing is run here.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from wattloom.errors import InputError

MOST_BAGS: Final = 10_000
MOST_IN_A_BAG: Final = 1_000


class Lots(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How bags are drawn."""

    bags: int = 20
    size: int = 8
    least: int = 2
    """Bags that every function is in, at least."""
    seed: int = 1


Bag = tuple[str, ...]


def drawn(functions: Sequence[str], lots: Lots) -> list[Bag]:
    """Bags in which each function is as often as the others, give or take one. InputError: there are too few."""
    size = min(lots.size, len(functions))
    _check(functions, lots, size)
    chance = Random(lots.seed)
    count = dict.fromkeys(functions, 0)
    bags: list[Bag] = []
    for _ in range(lots.bags):
        order = sorted(functions, key=lambda name: (count[name], chance.random()))
        bag = order[:size]
        chance.shuffle(bag)
        for name in bag:
            count[name] += 1
        bags.append(tuple(bag))
    return bags


def _check(functions: Sequence[str], lots: Lots, size: int) -> None:
    if not functions:
        raise InputError("functions", "name at least one")
    if len(set(functions)) != len(functions):
        twice = next(name for name in functions if list(functions).count(name) > 1)
        raise InputError("functions", f"{twice} is there twice")
    needed = -(-lots.least * len(functions) // size)
    if lots.bags < needed:
        raise InputError(
            "bags",
            f"{len(functions)} functions in at least {lots.least} bags of {size} need {needed} bags, not {lots.bags}",
        )


def rounds(bag: Bag, cores: int) -> list[Bag]:
    """Who runs at the same time: one function on each core, none of them idle. A bag that is smaller than the machine,
    and what the last round lacks, is filled up with functions of the bag, the first first."""
    needed = -(-len(bag) // cores)
    slots = [bag[number % len(bag)] for number in range(needed * cores)]
    return [tuple(slots[first : first + cores]) for first in range(0, len(slots), cores)]
