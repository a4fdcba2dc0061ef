"""Drawing lots: any node that has room, each as likely as the others.

Owns the draw. It has no memory and no generator: the lots are a hash of seed, task and attempt, so a task draws the
same lots whenever it is asked, here and in a replay.
"""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import batched, islice
from typing import ClassVar

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.policies.by_name import has_room, nodes_with_room
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.outlook import Outlook


class RandomChoice(Policy):
    """A node by lot."""

    name = "random"
    summary = "a node drawn by lot among those that have room"
    options: ClassVar[dict[str, str]] = {"seed": "another seed draws other lots (a whole number; default 0)"}
