"""The installed policies as a list a user can read.

Owns what is said about each, and how several are written in one line.
"""

import msgspec

from wattloom.policies.loading import available


class PolicyInfo(msgspec.Struct, frozen=True):
    """A policy that can be named."""

    name: str
    summary: str
    options: dict[str, str]
    """Option and what it does."""


def policies() -> list[PolicyInfo]:
    """Every installed policy, by name."""
    return [PolicyInfo(name, getattr(cls, "summary", ""), dict(cls.options)) for name, cls in available().items()]


def builtin_policies() -> list[str]:
    """Names of the policies that come with Wattloom, in alphabetical order."""
    return [name for name, cls in available().items() if cls.__module__.startswith("wattloom.")]


def compared_policies() -> list[str]:
    """Those of them that are compared where none is named: without a plan, one that goes by it is another."""
    planless = {name for name, cls in available().items() if not cls.goes_by_plan}
    return [name for name in builtin_policies() if name in planless]


def separate(text: str) -> list[str]:
    """`fifo,marginal-energy:tdp=true,guarantee=0.8,pack` is three: a piece that is only `key=value` is an option."""
    specs: list[str] = []
    for piece in (piece.strip() for piece in text.split(",")):
        head, equals, _ = piece.partition("=")
        if specs and equals and ":" not in head:
            specs[-1] += f",{piece}"
        elif piece:
            specs.append(piece)
    return specs
