"""Drawing lots: any node that has room, each as likely as the others.

Owns the draw. It has no memory and no generator: the lots are a hash of seed, task and attempt, so a task draws the
same lots whenever it is asked, here and in a replay.
"""

from hashlib import blake2b
from typing import ClassVar, Final

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.policies.by_name import nodes_with_room
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate

LOT_BYTES: Final = 8
LOTS: Final = 8
"""A blake2b digest is long enough for so many."""


class RandomChoice(Policy):
    """A node by lot."""

    name = "random"
    summary = "a node drawn by lot among those that have room"
    options: ClassVar[dict[str, str]] = {"seed": "another seed draws other lots (a whole number; default 0)"}

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        shape, names, nodes = ask.shape, view.names(), view.nodes()
        *lots, last = self._lots(ask)
        # Drawing again until one has room is as fair as drawing among those that have, and seldom takes many draws.
        for lot in lots if names else ():
            name = names[lot % len(names)]
            if view.takes(shape, nodes[name]):
                return Proposal(name, 0.0)
        fitting = [name for _, name in nodes_with_room(shape, view)]
        return Proposal(fitting[last % len(fitting)], 0.0) if fitting else Refusal(view.why_none(shape))

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        return 0.0

    def _lots(self, ask: Ask) -> list[int]:
        digest = blake2b(f"{self.seed}\n{ask.task.id}\n{ask.attempt}".encode(), digest_size=LOTS * LOT_BYTES).digest()
        return [int.from_bytes(digest[at : at + LOT_BYTES]) for at in range(0, len(digest), LOT_BYTES)]
