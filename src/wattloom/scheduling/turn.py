"""One turn of the engine: the event that is being handled.

Owns the time it carries and the instructions that follow from it, which all parts of the engine share.
"""

from wattloom.scheduling.instructions import AnyInstruction


class Turn:
    """What holds until the next event."""

    __slots__ = ("out", "time")

    def __init__(self) -> None:
        self.time: float = 0.0
        self.out: list[AnyInstruction] = []
        """Instructions so far, in the order in which a backend gets them."""
