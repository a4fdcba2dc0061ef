"""For which nodes a `MachineProfile` is: the one it names, or those with certain labels.

Owns the choice among profiles, and that it is cheap with thousands of them: profiles are found by the node's name and
by its labels, not looked through. What else stands in a profile is `profiles`' business.
"""

from typing import Final, TypeVar

import msgspec

from wattloom.cluster.matching import selects
from wattloom.errors import InputError
from wattloom.files import UNREADABLE
from wattloom.kubernetes.model import objects
from wattloom.kubernetes.model.selectors import expressions
from wattloom.workload.constraints import Expression

Read = TypeVar("Read")


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    """Readable even where the rest of a profile is not."""

    node_name: str = ""
    selector: objects.LabelSelector | None = None


class _LabelledProfile(msgspec.Struct, frozen=True, gc=False):
    """A profile for all nodes with certain labels."""

    wanted: tuple[Expression, ...]
    turn: int
    profile: objects.MachineProfile


class ProfileSelectors:
    """Profiles, added in the order in which the first of equals counts."""

    def __init__(self) -> None:
        self._named: Final[dict[str, objects.MachineProfile]] = {}
        self._by_label: Final[dict[tuple[str, str], list[_LabelledProfile]]] = {}
        """By one label that the node must have."""
        self._others: Final[list[_LabelledProfile]] = []
        self._added = 0

    def add(self, profile: objects.MachineProfile) -> None:
        """InputError if it cannot be read which nodes it is for. A selector without conditions selects nothing."""
        aim = read(bytes(profile.spec), _Selector)
        if aim.node_name:
            self._named.setdefault(aim.node_name, profile)
            return
        wanted = expressions(aim.selector)
        if wanted:
            self._added += 1
            must = next(((one.key, one.values[0]) for one in wanted if _is_one_value(one)), None)
            where = self._others if must is None else self._by_label.setdefault(must, [])
            where.append(_LabelledProfile(wanted, self._added, profile))

    def at(self, node: objects.Node) -> objects.MachineProfile | None:
        """The one that names the node, else the one whose selector has the most conditions, else the first."""
        meta = node.metadata
        named = self._named.get(meta.name)
        if named is not None:
            return named
        best: _LabelledProfile | None = None
        for label in meta.labels.items():
            best = _better(best, self._by_label.get(label, ()), meta.labels)
        best = _better(best, self._others, meta.labels)
        return None if best is None else best.profile


def named_node(profile: objects.MachineProfile) -> str:
    """The one node it is for. Empty: it names none."""
    return read(bytes(profile.spec), _Selector).node_name


def read(text: bytes, form: type[Read]) -> Read:
    try:
        return msgspec.json.decode(text, type=form)
    except UNREADABLE as error:
        raise InputError("", str(error)) from None


def _is_one_value(one: Expression) -> bool:
    return one.operator == "In" and len(one.values) == 1


def _better(
    best: _LabelledProfile | None,
    among: "list[_LabelledProfile] | tuple[_LabelledProfile, ...]",
    labels: dict[str, str],
) -> _LabelledProfile | None:
    for each in among:
        rank = -len(each.wanted), each.turn
        if (best is None or rank < (-len(best.wanted), best.turn)) and selects(each.wanted, labels):
            best = each
    return best
