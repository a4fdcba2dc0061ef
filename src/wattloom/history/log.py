"""The log: every event the engine took, and every instruction it gave, one JSON line each.

Owns the format and its version; a log is a text file of its own, or stands in a journal. One format for all backends:
any log replays to the same instructions, and any log can be replayed under another policy. An instruction's line
follows the event that caused it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec

from wattloom.errors import LogError
from wattloom.files import LONGEST_LINE, UNREADABLE
from wattloom.history.records import Record, line_of, whole
from wattloom.history.stored_log import StoredLog, is_journal
from wattloom.scheduling.events import AnyEvent, TaskSubmitted
from wattloom.scheduling.instructions import AnyInstruction, MoveKind
from wattloom.scheduling.lease_terms import LeaseTerms

VERSION = 6
READABLE = (1, 2, 3, 4, 5, 6)
"""Earlier versions had fewer kinds of records and fields, and no other ones."""
FORMER_DEFAULTS = {"marginal-energy": {"tdp": "false", "guarantee": "1"}}
"""What options of a policy were where they were not written, up to and with this version:"""
LAST_FORMER = 3
FIRST_NUMBERED = 4
"""From this version on placements have their number in the log."""
HEADER_BEGINS = b'{"wattloom_log"'


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """First line of a log."""

    wattloom_log: int
    policy: str
    """As `--policy` takes it."""
    backend: str
    seed: int | None = None
    scenario: str = ""
    lease: LeaseTerms | None = None
    """On which terms tasks followed each other without a decision of their own; None: they did not."""
    placed: int = 0
    """Placements in earlier logs of the same program: those here are numbered from there on."""
    predictor: str = "table"
    """Whose forecasts the policy had, as `--predictor` takes it. Left out where it is the usual one, so that earlier
    readers are not stopped by it."""
    moves: tuple[MoveKind, ...] = ()
    """What the backend could do with running work and with nodes, beside the usual."""


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
    """A log read back: a text file, or a run of a journal (the last one, if none is named).

    A run is named by `run`, or behind the path: `work.journal#3`.
    """

    def __init__(self, path: Path, run: int | None = None) -> None:
        self.path, self._run = (path, run) if run is not None else split_run(path)
        self._stored = StoredLog(self.path, self._run) if is_journal(self.path) else None
        if self._stored is None and self._run is not None:
            raise LogError(str(self.path), f"has no run {self._run}: it is not a journal")
        self.header = self._read_header()

    @property
    def run(self) -> int | None:
        """Its number in the journal; None: the log is a file of its own."""
        return None if self._stored is None else self._stored.run

    @property
    def name(self) -> str:
        """As `--log` takes it."""
        return str(self.path) if self.run is None else f"{self.path}#{self.run}"

    def lines(self) -> Iterator[bytes]:
        """Every line after the header that stands there now, as it was written: who writes may be faster than who
        reads. A torn last line, as a crash leaves it, ends the log."""
        if self._stored is not None:
            yield from self._stored.lines()
            return
        with self.path.open("rb") as file:
            left = self.path.stat().st_size - len(file.readline())
            for line in file:
                left -= len(line)
                if left < 0:
                    return
                if line.endswith(b"\n"):
                    yield line

    def records(self) -> Iterator[Record]:
        """Events and instructions in order."""
        for _, record in self.numbered():
            yield record

    def numbered(self) -> Iterator[tuple[int, Record]]:
        """The same, each with the number of its line."""
        return whole(self.lines(), str(self.path))

    def events(self) -> Iterator[AnyEvent]:
        for record in self.records():
            if isinstance(record, AnyEvent):
                yield record

    def tasks(self) -> int:
        """How many tasks it has, at the cost of reading it."""
        beginning = line_of(TaskSubmitted)
        return sum(line.startswith(beginning) for line in self.lines())

    def _read_header(self) -> Header:
        first = self._first_line()
        try:
            version = msgspec.json.decode(first, type=_Format).wattloom_log
            if version not in READABLE:
                raise LogError(str(self.path), f"has format {version}; this version reads {_either(READABLE)}")
            header = msgspec.json.decode(first, type=Header)
            return header if version > LAST_FORMER else _as_it_was_meant(header)
        except UNREADABLE as problem:
            raise LogError(str(self.path), f"is damaged, or is not a Wattloom log or journal ({problem})") from problem

    def _first_line(self) -> bytes:
        if self._stored is not None:
            return self._stored.header
        try:
            with self.path.open("rb") as file:
                return file.readline(LONGEST_LINE)
        except OSError as problem:
            raise LogError(str(self.path), problem.strerror or str(problem)) from problem


def says_something(path: Path) -> bool:
    """Whether a file is more than the first line of a log: whoever begins another there would lose it."""
    with path.open("rb") as file:
        first = file.readline(LONGEST_LINE)
        return bool(file.read(1)) or not (first.startswith(HEADER_BEGINS) or not first)


def split_run(path: Path) -> tuple[Path, int | None]:
    """The file and the number of the run that `work.journal#3` names; a file that has such a name is meant itself."""
    name, mark, number = path.name.rpartition("#")
    if not (mark and name and number.isdecimal()) or path.exists():
        return path, None
    return path.with_name(name), int(number)


def _as_it_was_meant(header: Header) -> Header:
    """An old log's policy with the options of its time, so that it replays to what was decided."""
    name, _, given = header.policy.partition(":")
    written = {option.partition("=")[0].strip() for option in given.split(",")}
    former = [f"{key}={value}" for key, value in FORMER_DEFAULTS.get(name, {}).items() if key not in written]
    if not former:
        return header
    return msgspec.structs.replace(header, policy=f"{name}:{','.join([*filter(None, [given]), *former])}")


def _either(versions: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, versions[:-1]))} and {versions[-1]}"
