"""Who bears what nobody used: the idle draw of the machine and the work of watching it.

Owns the three rules and that each conserves to the last grain. Pure: joules and claims in, joules out.

- `node`: it stays with the machine.
- `pro-rata`: everybody bears as much of it as their share of the active joules; what nobody is known to have used
  leaves its part with the machine.
- `reserved`: everybody bears the share of the machine that they have reserved, busy or not; what is not reserved stays
  with the machine.
"""

from collections.abc import Mapping
from typing import Final, Generic, Literal, TypeVar, get_args

import msgspec

from wattloom.energy.grains import in_grains

IdlePolicy = Literal["node", "pro-rata", "reserved"]
POLICIES: Final[tuple[IdlePolicy, ...]] = get_args(IdlePolicy)

K = TypeVar("K")


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What somebody brings along when shared joules are shared out."""

    active_j: float
    reserved: float = 0.0
    """Cores set aside for them, whether they use them or not."""


class Shared(msgspec.Struct, Generic[K], frozen=True):
    """Shared joules, shared out. The parts and `node_j` add up to what there was, to the last bit."""

    parts: Mapping[K, float]
    """By who bears them, in whole grains."""
    node_j: float
    """What stays with the machine."""

    def of(self, who: K) -> float:
        return self.parts.get(who, 0.0)


def share_out(
    policy: IdlePolicy, joules: float, claims: Mapping[K, Claim], *, unattributed_j: float = 0.0, cores: float = 0.0
) -> Shared[K]:
    """Share joules (whole grains) out. `unattributed_j`: active joules that are nobody's; `cores`: of the machine."""
    weights, whole = _weights(policy, claims, unattributed_j, cores)
    if whole <= 0.0 or joules <= 0.0:
        return Shared({}, joules)
    return Shared(*in_grains({who: joules * (weight / whole) for who, weight in weights.items()}, joules))


def _weights(
    policy: IdlePolicy, claims: Mapping[K, Claim], unattributed_j: float, cores: float
) -> tuple[dict[K, float], float]:
    """Everybody's weight, and the whole they are parts of."""
    if policy == "pro-rata":
        active = {who: claim.active_j for who, claim in claims.items() if claim.active_j > 0.0}
        return active, sum(active.values()) + max(unattributed_j, 0.0)
    if policy == "reserved":
        reserved = {who: claim.reserved for who, claim in claims.items() if claim.reserved > 0.0}
        return reserved, max(sum(reserved.values()), cores)  # more may be promised than there is
    return {}, 0.0
