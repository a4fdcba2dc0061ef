"""Whose joules an interval's were: between the prices of CPU seconds and the counters of entities.

Owns who is told apart (processes, those that came and went unseen, programs), that everybody who ran pays the price in
whole grains, and what is borne by whom. Pure.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from wattloom.attribution.idle_policy import Claim, IdlePolicy, Shared, share_out
from wattloom.attribution.sharing import Price
from wattloom.energy.grains import in_grains
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.process import Process


class Departed(msgspec.Struct, frozen=True, gc=False):
    """Processes that came and went unseen, of one place and one parent."""

    place: Place
    parent: str

    @property
    def key(self) -> str:
        return f"exited:{self.place.group}:{self.parent}"


Who = Process | Departed


def program(who: Who) -> str:
    """What draws alike, as far as can be told from outside: processes of one name in one control group."""
    return f"{who.place.group}:{who.name}" if isinstance(who, Process) else who.key


class Active(msgspec.Struct, frozen=True):
    """Joules above idle. `of` and `left_j` add up to them, to the last bit."""

    of: dict[Who, float]
    left_j: float
    """Nobody's."""


class Policy(msgspec.Struct, frozen=True):
    """Who bears idle draw and our own joules."""

    name: IdlePolicy
    cores: float
    """Of the machine."""


def active_joules(used: Mapping[Who, float], prices: Mapping[Who, Price], active_j: float) -> Active:
    """Everybody pays the price of his CPU seconds, out of the joules above idle."""
    return Active(*in_grains({who: seconds * prices[who].joules for who, seconds in used.items()}, active_j))


def shared_joules(
    policy: Policy, idle_j: float, own_j: float, active: Active, claims: dict[Who, Claim]
) -> list[Shared[Who]]:
    """Idle draw and our own joules, each shared out."""
    return [
        share_out(policy.name, joules, claims, unattributed_j=active.left_j, cores=policy.cores)
        for joules in (idle_j, own_j)
    ]


def reservations(living: Iterable[Process], reserved: Callable[[Place], float]) -> dict[Who, Claim]:
    """What is reserved for a group is its processes', in equal parts: they all stand for it."""
    members: dict[Place, list[Process]] = {}
    for process in living:
        if process.place.container or process.place.unit:
            members.setdefault(process.place, []).append(process)
    found: dict[Who, Claim] = {}
    for place, processes in members.items():
        cores = reserved(place)
        for process in processes if cores > 0.0 else ():
            found[process] = Claim(0.0, cores / len(processes))
    return found
