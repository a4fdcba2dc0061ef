"""Sets of nodes as bits, and the domains that a label divides the nodes into.

Owns both. A set of nodes is a whole number with a bit for each node's number: to join or to cut sets of
thousands of nodes is one operation. When numbers or labels change, topologies are made anew.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from wattloom.cluster.matching import whole_number
from wattloom.workload.constraints import Expression

EVERY: Final = -1
"""The set of all nodes, also of those to come: every bit is set."""


Numbered = list[tuple[int, int]]
"""Values of a label that are numbers, in order, each with its node's number or its set of nodes."""


def mask_of(numbers: Iterable[int]) -> int:
    """The set of the nodes with these numbers."""
    known = list(numbers)
    if not known:
        return 0
    bits = bytearray(max(known) // 8 + 1)
    for number in known:
        bits[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(bits, "little")


class Topology:
    """Domains: nodes with the same value of a label. Those without the label are in none."""

    __slots__ = ("_many", "_numbered", "_single", "everywhere", "singles")

    def __init__(self, labelled: Iterable[tuple[str | None, int]]) -> None:
        numbers: dict[str, list[int]] = {}
        for value, number in labelled:
            if value is not None:
                numbers.setdefault(value, []).append(number)
        self._single: Final = {value: found[0] for value, found in numbers.items() if len(found) == 1}
        """Domains of one node each, such as host names: their sets are made when asked for, many would be large."""
        self._many: Final = {value: mask_of(found) for value, found in numbers.items() if len(found) > 1}
        self.singles: Final = mask_of(self._single.values())
        everywhere = self.singles
        for mask in self._many.values():
            everywhere |= mask
        self.everywhere: Final = everywhere
        """The nodes that have the label."""
        self._numbered: tuple[Numbered, Numbered] | None = None
        """The same by values that are numbers, once somebody has asked for that."""

    def mask(self, value: str) -> int:
        """The nodes of one domain."""
        number = self._single.get(value)
        if number is not None:
            return 1 << number
        return self._many.get(value, 0)

    def number(self, value: str) -> int:
        """The only node of a domain; -1: it has none, or several."""
        return self._single.get(value, -1)

    def domains(self, among: int) -> int:
        """How many domains have nodes among these."""
        return (self.singles & among).bit_count() + sum(1 for mask in self._many.values() if mask & among)

    def where(self, expression: Expression) -> int:
        """The nodes whose label satisfies the expression."""
        operator = expression.operator
        if operator == "Exists":
            return self.everywhere
        if operator == "DoesNotExist":
            return ~self.everywhere
        if operator in ("In", "NotIn"):
            found = 0
            for value in expression.values:
                found |= self.mask(value)
            return found if operator == "In" else ~found
        return self._beyond(expression)

    def _beyond(self, expression: Expression) -> int:
        """The nodes whose label is a number above (`Gt`) or below the one of the expression."""
        bound = whole_number(expression.values[0]) if len(expression.values) == 1 else None
        if bound is None:
            return 0
        if self._numbered is None:
            self._numbered = _in_order(self._single), _in_order(self._many)
        single, many = self._numbered
        above = expression.operator == "Gt"
        found = mask_of(each[1] for each in _part(single, bound, above))
        for _, mask in _part(many, bound, above):
            found |= mask
        return found


def _in_order(by_value: dict[str, int]) -> Numbered:
    """Those whose values are numbers, read once, however many expressions ask for them."""
    read = [(whole_number(value), each) for value, each in by_value.items()]
    return sorted([(number, each) for number, each in read if number is not None])


def _part(numbered: Numbered, bound: int, above: bool) -> Numbered:
    return numbered[bisect_left(numbered, (bound + 1, 0)) :] if above else numbered[: bisect_left(numbered, (bound, 0))]
