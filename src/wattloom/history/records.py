"""One walk over the records of a log: which kind each line is, and as much of it as somebody asks for.

Owns how a line becomes an event or an instruction, and the numbers of lines: nobody else looks at the bytes of a line.
Two ways lead through a log. `whole` decodes every record and stops at one that this version does not know: for whoever
tells the log to an engine again. A `Walk` decodes of the kinds that were asked for the fields that were asked for, so
that logs of other versions can be read too, and fast. What the records come to is not known here.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Final, TypeVar, get_args

import msgspec

from wattloom.bounds import LATEST_S
from wattloom.errors import LogError
from wattloom.files import UNREADABLE
from wattloom.scheduling.events import AnyEvent, Event
from wattloom.scheduling.instructions import AnyInstruction, Instruction

Moment = Annotated[float, msgspec.Meta(ge=-LATEST_S, le=LATEST_S)]
"""Unix time, or seconds of a log: what lies beyond is damage, and no clock could show it."""
Record = AnyEvent | AnyInstruction
HEADER_LINE: Final = 1
"""The header's number; lines are counted from there."""
LONGEST_EXCERPT: Final = 60


class Part(msgspec.Struct, gc=False):
    """As much of an instruction as somebody needs, by the names that its fields have in the log."""


class Happened(msgspec.Struct, gc=False):
    """As much of an event."""

    time: Moment


_Event = TypeVar("_Event", bound=Happened | Event)
_Instruction = TypeVar("_Instruction", bound=Part | Instruction)
_Taker = Callable[[bytes], None]


def kind_of(record: type[Event] | type[Instruction]) -> str:
    """What a kind of record is called in the log."""
    return str(record.__struct_config__.tag)


def line_of(record: type[Event] | type[Instruction]) -> bytes:
    """How every line of this kind begins: for whoever only counts."""
    return _beginning(record) + kind_of(record).encode() + b'"'


def _beginning(record: type[Event] | type[Instruction]) -> bytes:
    """How the line of every event, or of every instruction, begins."""
    return f'{{"{record.__struct_config__.tag_field}":"'.encode()


EVENT: Final = _beginning(get_args(AnyEvent)[0])
INSTRUCTION: Final = _beginning(get_args(AnyInstruction)[0])
EVENT_KIND_AT: Final = len(EVENT)
INSTRUCTION_KIND_AT: Final = len(INSTRUCTION)


class Position:
    """Where a walk is."""

    __slots__ = ("line", "number", "time")

    def __init__(self) -> None:
        self.number = HEADER_LINE
        """Of the last line."""
        self.line = b""
        """The last line itself."""
        self.time = 0.0
        """Of the last event that was looked at."""


class Walk:
    """Lines one after the other, each told to those who asked for its kind.

    Kinds that nobody asked for, and those of other versions, only have to be records at all, unless `unasked` is False:
    then nobody looks at them. `source` is named where a line is damaged. Who is told may keep `at`, not the walk: in a
    circle of references a long history would outlive its use.
    """

    def __init__(self, source: str = "", *, unasked: bool = True) -> None:
        self._source: Final = source
        self.at: Final = Position()
        self._events: Final[dict[bytes, _Taker]] = {}
        self._instructions: Final[dict[bytes, _Taker]] = {}
        self._other_event: Final[_Taker] = _event_taker(self.at, Happened, _nothing) if unasked else _nothing
        self._other_instruction: Final[_Taker] = _instruction_taker(Part, _nothing) if unasked else _nothing
        self._no_record: Final[_Taker] = _refuse if unasked else _nothing

    def on_event(self, kind: type[Event], part: type[_Event], then: Callable[[_Event], None]) -> None:
        """Events of this kind are wanted: decoded as `part`, which is the kind itself or has some of its fields."""
        _add(self._events, kind, _event_taker(self.at, part, then))

    def on_instruction(
        self, kind: type[Instruction], part: type[_Instruction], then: Callable[[_Instruction], None]
    ) -> None:
        _add(self._instructions, kind, _instruction_taker(part, then))

    def take(self, lines: Iterable[bytes]) -> None:
        """Read lines, or further lines. Raises LogError, with the source and the number of the line, at one that is
        damaged."""
        at, events, instructions = self.at, self._events, self._instructions
        try:
            for line in lines:
                at.line = line
                at.number += 1
                if line.startswith(EVENT):
                    kind = line[EVENT_KIND_AT : line.index(b'"', EVENT_KIND_AT)]
                    events.get(kind, self._other_event)(line)
                elif line.startswith(INSTRUCTION):
                    kind = line[INSTRUCTION_KIND_AT : line.index(b'"', INSTRUCTION_KIND_AT)]
                    instructions.get(kind, self._other_instruction)(line)
                else:
                    self._no_record(line)
        except (*UNREADABLE, msgspec.MsgspecError, ValueError) as problem:
            words = f"is damaged: {problem} ({excerpt(at.line)})"
            raise LogError(f"{self._source}:{at.number}", words) from problem


def whole(lines: Iterable[bytes], source: str) -> Iterator[tuple[int, Record]]:
    """Every record with the number of its line. Raises LogError at one that this version does not know."""
    events = msgspec.json.Decoder(AnyEvent)
    instructions = msgspec.json.Decoder(AnyInstruction)
    for number, line in enumerate(lines, start=HEADER_LINE + 1):
        try:
            record = (events if line.startswith(EVENT) else instructions).decode(line)
        except UNREADABLE as problem:
            raise LogError(f"{source}:{number}", str(problem)) from problem
        yield number, record


def excerpt(line: bytes) -> str:
    """How a line begins, printable."""
    return repr(line[:LONGEST_EXCERPT])[1:]


def _event_taker(at: Position, part: type[_Event], then: Callable[[_Event], None]) -> _Taker:
    decode = msgspec.json.Decoder(part).decode

    def taker(line: bytes) -> None:
        event = decode(line)
        at.time = event.time
        then(event)

    return taker


def _instruction_taker(part: type[_Instruction], then: Callable[[_Instruction], None]) -> _Taker:
    decode = msgspec.json.Decoder(part).decode
    return lambda line: then(decode(line))


def _add(takers: dict[bytes, _Taker], kind: type[Event] | type[Instruction], taker: _Taker) -> None:
    """Who asked first is told first."""
    name = kind_of(kind).encode()
    first = takers.get(name)
    takers[name] = taker if first is None else _one_after_the_other(first, taker)


def _one_after_the_other(first: _Taker, second: _Taker) -> _Taker:
    def taker(line: bytes) -> None:
        first(line)
        second(line)

    return taker


def _nothing(record: object) -> None:
    """Of which nothing is needed."""


def _refuse(line: bytes) -> None:
    raise ValueError("is neither an event nor an instruction")
