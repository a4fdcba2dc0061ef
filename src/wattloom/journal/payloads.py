"""What a journal holds of a call so that it can be made again, and what is left of one after a crash.

Owns these records. How arguments and functions are pickled is the backend's business: here they are bytes.
"""

import msgspec

from wattloom.workload.function import Function
from wattloom.workload.task import Task


class Call(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The payload of one task."""

    task: str
    function: str
    """Digest of the pickled function."""
    args: bytes
    spool: tuple[str, ...] = ()
    """Names of the spool files that hold its large buffers."""
    key: str = ""
    """Idempotency key; empty: none was given."""
    timeout: float = 0.0
    """Seconds that it may run; 0: as long as it takes."""
    content: str = ""
    """What kind of bytes its arguments are; empty: pickled."""


class KeptFunction(msgspec.Struct, frozen=True):
    """A pickled function."""

    digest: str
    name: str
    blob: bytes


class Unfinished(msgspec.Struct, frozen=True):
    """A task that was accepted in an earlier run and had not ended when that run did."""

    run: int
    task: Task
    definition: Function | None
    """The function as that run's log last defined it."""
    attempt: int = 0
    """The last one; 0: it never had a place."""
    place: int = 0
    """The number of its last placement; 0: it never had one."""
    share: int = 0
    """The `place` by which the share was taken that it was to run on: its own, or that of the first before it."""
    node: str = ""
    """Where that attempt was; empty: it had no place when the run ended, so it was not running."""
    started: bool = False
    """Whether that attempt was reported as started."""
    failures: int = 0
    """How often the function itself had failed before."""
    losses: int = 0
    """How often it was lost before by others' fault, in all runs."""
    joules: float | None = None
    """Of all attempts so far, in all runs; None: none are known."""
    spread_j: float | None = None
    provenance: str = ""
    cancelled: bool = False
    """Whether its owner did not want it any more: it is not to be run again."""
    call: Call | None = None
    """None: its arguments are not in the journal any more."""
    function: KeptFunction | None = None
    """None: neither is the function."""

    same_boot: bool = True
    """Whether the machine has not been started anew since: what was not forced to disk may be lost otherwise."""

    @property
    def placed(self) -> bool:
        """Whether it may have been running."""
        return bool(self.node)
