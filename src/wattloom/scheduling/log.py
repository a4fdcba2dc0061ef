"""The log: every event the engine took, and every instruction it gave, one JSON line each.

Owns the format and its version. One format for all backends: any log replays to the same instructions, and any log can
be replayed under another policy. An instruction's line follows the event that caused it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from wattloom.errors import LogError
from wattloom.scheduling.events import AnyEvent
from wattloom.scheduling.instructions import AnyInstruction, Place

VERSION = 1
LINES_AT_ONCE = 512
"""Lines that a digest takes in together: far cheaper than one by one."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """First line of a log."""

    wattloom_log: int
    policy: str
    """As `--policy` takes it."""
    backend: str
    seed: int | None = None
    scenario: str = ""


class _Format(msgspec.Struct):
    """What the first line of every version has."""

    wattloom_log: int


class LogWriter:
    """Appends records to an open file."""

    def __init__(self, file: IO[bytes], header: Header) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder()
        self._line(header)

    def write(self, event: AnyEvent, instructions: Iterable[AnyInstruction]) -> None:
        self._line(event)
        for instruction in instructions:
            self._line(instruction)

    def _line(self, record: object) -> None:
        self._file.write(self._encoder.encode(record) + b"\n")


class Log:
    """A log read back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = self._read_header()

    def records(self) -> Iterator[AnyEvent | AnyInstruction]:
        """Events and instructions in order. A torn last line, as a crash leaves it, ends the log."""
        events = msgspec.json.Decoder(AnyEvent)
        instructions = msgspec.json.Decoder(AnyInstruction)
        with self.path.open("rb") as file:
            file.readline()
            for number, line in enumerate(file, start=2):
                if not line.endswith(b"\n"):
                    return
                decoder = events if line.startswith(b'{"event"') else instructions
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError as problem:
                    raise LogError(f"{self.path}:{number}", str(problem)) from problem

    def events(self) -> Iterator[AnyEvent]:
        for record in self.records():
            if isinstance(record, AnyEvent):
                yield record

    def _read_header(self) -> Header:
        try:
            with self.path.open("rb") as file:
                first = file.readline()
        except OSError as problem:
            raise LogError(str(self.path), problem.strerror or str(problem)) from problem
        try:
            version = msgspec.json.decode(first, type=_Format).wattloom_log
            if version != VERSION:
                raise LogError(str(self.path), f"has format {version}; this version reads {VERSION}")
            return msgspec.json.decode(first, type=Header)
        except msgspec.DecodeError as problem:
            raise LogError(str(self.path), f"is not a Wattloom log: {problem}") from problem


class Digest:
    """A fingerprint of decisions: equal digests, equal placements in equal order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._lines: list[str] = []

    def add(self, place: Place) -> None:
        self._lines.append(f"{place.task} {place.attempt} {place.node} {place.variant}\n")
        if len(self._lines) >= LINES_AT_ONCE:
            self._take_in()

    def hex(self) -> str:
        self._take_in()
        return self._hash.hexdigest()[:32]

    def _take_in(self) -> None:
        self._hash.update("".join(self._lines).encode())
        self._lines.clear()
