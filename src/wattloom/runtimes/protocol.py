"""What a worker wants of whoever runs functions: a call is bytes with a content type, and so is its end.

Owns the protocol, the content types and the ways a call can end. Python's is the first runtime (`python`); those for
other languages have functions in files (`function_file`) and speak JSON or bytes. Knows no socket, no journal and no
engine.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from wattloom.runtimes.packing import Packed

PICKLE: Final = ""
"""Python's own: (arguments, named arguments), and any value. Empty on the wire, since most calls have it."""
JSON: Final = "application/json"
"""A list of arguments, or an object of named ones; and a value. An exception is an object with `type`, `message` and
`traceback`."""
BYTES: Final = "application/octet-stream"
"""One argument, which is bytes, and bytes; without a copy in between where they are large."""

VALUE: Final = 1
RAISED: Final = 2
UNSENDABLE: Final = 3
LOST: Final = 4
"""How a call ended: with a value; with an exception; with something that cannot be sent back; its process was killed,
and nobody knows how far it came (the body says how, as text)."""


class Outcome:
    """How a call ended, and its body in the content type it says."""

    __slots__ = ("content", "packed", "status")

    def __init__(self, status: int, packed: Packed, content: str = PICKLE) -> None:
        self.status: Final = status
        self.packed: Final = packed
        self.content: Final = content


class Runtime(Protocol):
    """Runs functions of one language, one call at a time. `wattloom.testing.runtime_conformance` says what it must
    do."""

    def load(self, blob: bytes) -> Any:
        """A function as it was sent, ready to be called: what takes long the first time (a process, a compiler) is done
        here. Raises whatever is wrong with it."""

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        """Decode, run, encode. What the function raises is an outcome; nothing is raised here. `buffers`: large parts
        of the body that came beside it; if the body itself was large it is empty, and the last of them."""

    def failed(self, problem: BaseException, content: str) -> Outcome:
        """What could not even be called, as an outcome."""

    def processes(self) -> Sequence[int]:
        """Processes that it keeps from call to call: what CPU time they use in a call is the call's."""

    def close(self) -> None:
        """They end: no more calls will come."""
