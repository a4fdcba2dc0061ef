"""Everything the engine can ask of a backend. Frozen and serialisable.

Owns the instructions and their names in the log.
"""

from typing import Final, Literal, get_args

import msgspec

from wattloom.cluster.node_class import DeviceUse
from wattloom.cluster.reasons import Reason
from wattloom.energy.forecast import Forecast, Unknown

Outcome = Literal["finished", "failed", "cancelled", "rejected", "unknown"]
"""How a task ended. `unknown`: it may or may not have run, and may not be run twice."""


class Instruction(msgspec.Struct, frozen=True, gc=False, tag_field="instruction", omit_defaults=True):
    """What a backend is asked to do."""


class Place(Instruction, frozen=True, tag="place"):
    """Run this attempt of the task on this node with this build."""

    task: str
    attempt: int
    node: str
    variant: str
    cost: float | None
    """In the policy's own measure; None: unknown, or as of the task it stands behind."""
    guarantee: float = 1.0
    """Share of the requested CPU that is guaranteed."""
    devices: DeviceUse = ()
    """Thousandths of each device, in the node class's order of kinds."""
    forecast: Forecast | Unknown | None = None
    behind: str = ""
    """Not at once: when this task, which has the share, and those placed behind it before are done. No decision of its
    own was made: the forecast is that of the task which the share was given to."""
    number: int = 0
    """The how-manieth placement this is, counted from 1, over all runs of a program. 0: logs before version 4."""


class Evict(Instruction, frozen=True, tag="evict"):
    """Stop this attempt; report it as failed with kind `evicted`, or as finished if it was faster."""

    task: str
    attempt: int
    node: str
    reason: Reason


class Migrate(Instruction, frozen=True, tag="migrate"):
    """Let this attempt go on on another node, where its part is taken already; report it migrated. What it has where it
    is stays taken until then."""

    task: str
    attempt: int
    node: str
    """Where it is."""
    to: str
    variant: str
    devices: DeviceUse = ()
    """On the node it goes to, as of `Place`."""
    forecast: Forecast | Unknown | None = None
    number: int = 0
    """Counted with the placements."""


class Resize(Instruction, frozen=True, tag="resize"):
    """Keep other cores and bytes for this attempt, where it is; report it resized."""

    task: str
    attempt: int
    node: str
    cpu: float
    memory: int


class SetFrequency(Instruction, frozen=True, tag="set-frequency"):
    """Let the node run at this share of the frequency it has by itself; report what it runs at."""

    node: str
    share: float


class Prepare(Instruction, frozen=True, tag="prepare"):
    """Load an instance of the function on the node; report it ready."""

    node: str
    function: str
    variant: str


class Release(Instruction, frozen=True, tag="release"):
    """Unload an instance that waits for a call; report it gone."""

    node: str
    function: str
    variant: str


class Conclude(Instruction, frozen=True, tag="conclude"):
    """The task has ended, otherwise than by finishing: tell its owner."""

    task: str
    outcome: Outcome
    reason: Reason
    message: str = ""


class Wait(Instruction, frozen=True, tag="wait"):
    """The task has no place for now: its owner may be told why."""

    task: str
    reason: Reason
    until: float | None = None
    message: str = ""


class Sleep(Instruction, frozen=True, tag="sleep"):
    node: str


class Wake(Instruction, frozen=True, tag="wake"):
    """Wake the node and report it awake; tasks are placed on it then."""

    node: str


AnyInstruction = Place | Evict | Migrate | Resize | SetFrequency | Prepare | Release | Conclude | Wait | Sleep | Wake

MoveKind = Literal["evict", "migrate", "resize", "set-frequency", "prepare", "release"]
"""What a policy may ask of running work and of nodes, and not every backend can: each says which. (To stop a task whose
owner does not want it any more is something that all can.)"""
ALL_MOVES: Final = frozenset[MoveKind](get_args(MoveKind))
