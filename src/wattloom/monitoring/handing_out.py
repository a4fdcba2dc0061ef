"""Whose joules an interval's were: pure arithmetic between the meter's count and the ledger.

Owns that everybody who ran gets a part by CPU time, heavier seconds more, in whole grains; and what is borne by whom.
"""

from collections.abc import Callable, Iterable

import msgspec

from wattloom.attribution.idle_policy import Claim, IdlePolicy, Shared, share_out
from wattloom.attribution.sharing import Price, to_grain
from wattloom.monitoring.pending import Who
from wattloom.monitoring.process import Process
from wattloom.monitoring.whereabouts import Place


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


def active_joules(used: dict[Who, float], price: Price, factor: Callable[[Who], float]) -> Active:
    """By CPU seconds, each as heavy as `factor` says: together they pay what they would have paid by time alone."""
    weights = {who: seconds * factor(who) for who, seconds in used.items()}
    whole = sum(weights.values())
    each = price.joules * sum(used.values()) / whole if whole > 0.0 else 0.0
    found = {who: to_grain(weight * each) for who, weight in weights.items()}
    left = price.active_j - sum(found.values())
    if left < 0.0:  # products of many figures may be some grains too high
        found[max(found, key=lambda who: found[who])] += left
        left = 0.0
    return Active(found, left)


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
