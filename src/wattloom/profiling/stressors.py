"""The kinds of load a machine is profiled with, and how each is asked for.

Owns the list. Different work draws different power on the same cores: so there are several.
"""

from typing import Final

import msgspec

from wattloom.errors import InputError


class Stressor(msgspec.Struct, frozen=True):
    """One kind of load."""

    name: str
    summary: str
    words: tuple[str, ...] = ()
    """What stress-ng is told, with {n} for the number of CPUs. Empty: it is one of our own."""
    own: str = ""
    """Which of our own loops stands in where there is no stress-ng. Empty: none does."""


ALL: Final = {
    each.name: each
    for each in (
        Stressor("integer", "whole numbers in registers", ("--cpu", "{n}", "--cpu-method", "int64"), "integer"),
        Stressor("matrix", "matrix product", ("--matrix", "{n}", "--matrix-method", "prod"), "matrix"),
        Stressor("memory", "streams through memory", ("--stream", "{n}"), "memory"),
        Stressor("vector", "vectors of whole numbers", ("--vecmath", "{n}")),
        Stressor("float", "floating point in registers", ("--cpu", "{n}", "--cpu-method", "double")),
        Stressor("sort", "sorting, with its jumps", ("--qsort", "{n}")),
        Stressor("kmeans", "k-means clustering in numpy", own="kmeans"),
    )
}
USUAL: Final = ("integer", "matrix", "memory")


def stressors(names: str, builtin: bool = False) -> list[Stressor]:
    """From names with commas between them. InputError lists what there is."""
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    known = {name: each for name, each in ALL.items() if each.own or not builtin}
    for name in wanted:
        if name not in known:
            without = " without stress-ng" if builtin and name in ALL else ""
            raise InputError("stressors", f"{name!r} is not known{without}; there is {', '.join(known)}")
    if not wanted:
        raise InputError("stressors", f"name at least one of {', '.join(known)}")
    return [known[name] for name in wanted]
