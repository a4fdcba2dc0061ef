"""Power that was written down, played back: a file with `time_s,watts` or `time_s,joules`.

Owns the file's form and the playback: its first row is at the time of the first reading. Used only where it is named,
since what it says is not of this machine now. A file that grows is read on.
"""

import csv
from bisect import bisect_right
from itertools import pairwise
from math import inf, isfinite, nan
from pathlib import Path
from statistics import median
from typing import Final, Literal

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.errors import InputError
from wattloom.files import lines
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.profile import MachineProfile
from wattloom.metering.integrated import LEAST_J, NOISE, STEP
from wattloom.metering.protocol import Quantity, Sample
from wattloom.metering.setup_hints import missing, setting

MOST_W: Final = 20_000.0
GAP_S: Final = 10.0
GAP_ROWS: Final = 5.0
"""Rows further apart than this many times the usual, and than GAP_S, have a gap between them that is not bridged."""


class RecordingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Power that was written down, played back."""

    path: str = ""
    """A file with `time_s,watts` or `time_s,joules`."""
    quantity: Literal["wall", "package"] = "wall"
    """What it is of."""


class Tape(msgspec.Struct, frozen=True):
    """A file as it was read: cumulative joules at the times of its rows, from the first on."""

    times: list[float]
    joules: list[float]
    open_j: list[float]
    """What is open in the stretch before each row."""
    epochs: list[int]
    """Rows of two epochs have a gap between them."""
    period_s: float


class Recording:
    """Plays a file back."""

    name = "recording"
    summary = "a file of power, played back"
    provenance: Provenance = "modelled"
    model_error = FUNCTIONS_DIFFER
    only_named = True

    def __init__(self, path: Path | None, quantity: Quantity = "wall") -> None:
        self.quantity: Quantity = quantity
        self._path = path
        self._tape: Tape | str = ""
        self._stamp: tuple[int, int] | None = None
        self._began: float | None = None
        self._asked = -inf

    @property
    def period_s(self) -> float:
        tape = self._load()
        return tape.period_s if isinstance(tape, Tape) else 0.0

    def available(self) -> str | None:
        tape = self._load()
        return tape if isinstance(tape, str) else None

    def read(self, now: float) -> Sample | Unknown:
        if not isfinite(now) or now < self._asked:
            return Unknown(f"asked for {now} after {self._asked}: time went backwards")
        self._asked = now
        tape = self._load()
        if isinstance(tape, str):
            return Unknown(tape.partition("\n")[0])
        if self._began is None:
            self._began = now
        return _at(tape, now, tape.times[0] + now - self._began)

    def _load(self) -> Tape | str:
        """The file, read again where it has changed; or what is wrong with it."""
        if self._path is None:
            what = "no recording is named"
            return missing(what, *setting("recording", path='"power.csv"', quantity='"wall"'))
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._tape = read_tape(self._path)
                self._stamp = stamp
        except InputError as problem:
            self._tape, self._stamp = str(problem), stamp
        except OSError as problem:
            self._stamp = None
            return f"the recording {self._path} cannot be read: {problem.strerror}"
        return self._tape


def read_tape(path: Path) -> Tape:
    """Raises InputError if the file is not of that form."""
    try:
        with path.open(newline="") as file:
            rows = csv.reader(lines(file))
            head = [name.strip() for name in next(rows, [])]
            if head not in (["time_s", "watts"], ["time_s", "joules"]):
                raise InputError(
                    str(path), f"must begin with time_s,watts or time_s,joules, not {','.join(head)[:80]!r}"
                )
            values = [_row(path, line, row) for line, row in enumerate(rows, 2) if row]
    except UnicodeDecodeError:
        raise InputError(str(path), "is not text") from None
    except csv.Error as problem:
        raise InputError(str(path), f"is no CSV file: {problem}") from problem
    if len(values) < 2:
        raise InputError(str(path), "needs two rows at least")
    for line, (before, after) in enumerate(pairwise(values), 3):
        if after[0] <= before[0]:
            raise InputError(str(path), f"row {line}: times must rise, but {after[0]:g} comes after {before[0]:g}")
    return _tape(values, power=head[1] == "watts")


def _row(path: Path, line: int, row: list[str]) -> tuple[float, float]:
    """Time and value. An empty value is one that nobody knows."""
    try:
        time, value = row
        found = float(time), float(value) if value.strip() else nan
    except ValueError:
        raise InputError(str(path), f"row {line}: two numbers are wanted, not {','.join(row)[:80]!r}") from None
    if not isfinite(found[0]):
        raise InputError(str(path), f"row {line}: {row[0]} is no time")
    return found


def _tape(rows: list[tuple[float, float]], power: bool) -> Tape:
    usual = median(after[0] - before[0] for before, after in pairwise(rows))
    longest = max(GAP_S, GAP_ROWS * usual)
    tape = Tape([rows[0][0]], [0.0], [LEAST_J], [0], usual)
    for before, after in pairwise(rows):
        seconds, joules, open_j = _stretch(before, after, power)
        sound = seconds <= longest and 0.0 <= joules <= MOST_W * seconds
        tape.times.append(after[0])
        tape.joules.append(tape.joules[-1] + (joules if sound else 0.0))
        tape.open_j.append(max(open_j if sound else 0.0, LEAST_J))
        tape.epochs.append(tape.epochs[-1] + (not sound))
    return tape


def _stretch(before: tuple[float, float], after: tuple[float, float], power: bool) -> tuple[float, float, float]:
    """Seconds, joules and what is open between two rows. Joules that nobody knows are no number."""
    seconds = after[0] - before[0]
    if not power:
        joules = after[1] - before[1]
        return seconds, joules, NOISE * joules
    if min(before[1], after[1]) < 0.0 or max(before[1], after[1]) > MOST_W:
        return seconds, nan, nan
    joules = 0.5 * (before[1] + after[1]) * seconds
    return seconds, joules, max(abs(after[1] - before[1]) * seconds * STEP, NOISE * joules)


def _at(tape: Tape, now: float, time: float) -> Sample | Unknown:
    """Between two rows the joules rise evenly."""
    row = bisect_right(tape.times, time)
    if row >= len(tape.times):
        if time > tape.times[-1]:
            return Unknown(f"the recording is over after {tape.times[-1] - tape.times[0]:g} s")
        return Sample(now, tape.joules[-1], tape.open_j[-1], epoch=tape.epochs[-1])
    if tape.epochs[row] != tape.epochs[row - 1]:
        if time > tape.times[row - 1]:
            return Unknown(f"the recording has a gap from {tape.times[row - 1]:g} s to {tape.times[row]:g} s")
        return Sample(now, tape.joules[row - 1], tape.open_j[row - 1], epoch=tape.epochs[row - 1])
    share = (time - tape.times[row - 1]) / (tape.times[row] - tape.times[row - 1])
    joules = tape.joules[row - 1] + share * (tape.joules[row] - tape.joules[row - 1])
    return Sample(now, joules, tape.open_j[row], epoch=tape.epochs[row])


def for_machine(profile: MachineProfile, settings: RecordingSettings) -> Recording:
    """The entry point: the file that the settings name."""
    return Recording(Path(settings.path) if settings.path else None, settings.quantity)
