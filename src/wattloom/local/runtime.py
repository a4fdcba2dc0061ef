"""What a worker wants of whoever runs functions: a call is bytes with a content type, and so is its end.

Owns the protocol and the content types. Python's is the first runtime (`python_runtime`); one for another language has
functions of its own and speaks JSON or bytes. Knows no socket, no journal and no engine.
"""

from typing import Any, Final, Protocol

from wattloom.local.packing import Packed

PICKLE: Final = ""
"""Python's own: (arguments, named arguments), and any value. Empty on the wire, since most calls have it."""
JSON: Final = "application/json"
"""A list of arguments, or an object of named ones; and a value. An exception is an object with `type`, `message` and
`traceback`."""
BYTES: Final = "application/octet-stream"
"""One argument, which is bytes, and bytes; without a copy in between where they are large."""


class Outcome:
    """How a call ended: one of the `frames`' statuses, and its body in the content type it says."""

    __slots__ = ("content", "packed", "status")

    def __init__(self, status: int, packed: Packed, content: str = PICKLE) -> None:
        self.status: Final = status
        self.packed: Final = packed
        self.content: Final = content


class Runtime(Protocol):
    """Runs functions of one language, one call at a time."""

    def load(self, blob: bytes) -> Any:
        """A function as it was sent, ready to be called. Raises whatever is wrong with it."""

    def call(self, function: Any, body: bytes, buffers: list[memoryview], content: str) -> Outcome:
        """Decode, run, encode. What the function raises is an outcome; nothing is raised here. `buffers`: large parts
        of the body that came beside it; if the body itself was large it is empty, and the last of them."""

    def failed(self, problem: BaseException, content: str) -> Outcome:
        """What could not even be called, as an outcome."""
