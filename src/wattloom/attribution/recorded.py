"""Recorded power and runs as a caller gives them: files, or pairs and triples.

Owns what may be given. The files' formats are `power_files`'.
"""

from collections.abc import Sequence
from math import nan
from pathlib import Path

from wattloom.attribution.power_files import RecordedPower, RecordedRuns, power_of, read_power, read_runs, runs_of
from wattloom.errors import InputError


def recorded_power(given: str | Path | Sequence[tuple[float, float]]) -> RecordedPower:
    """From a file, or from pairs of seconds and watts."""
    if isinstance(given, str | Path):
        return read_power(given)
    return power_of("power", [each[0] for each in given], [each[1] for each in given])


def recorded_runs(given: str | Path | Sequence[tuple[float, float, str]], node: str | None) -> RecordedRuns:
    """From a file, or from triples of start, end and function."""
    if isinstance(given, str | Path):
        return read_runs(given, node)
    if node is not None:
        raise InputError("node", "runs that are given as triples have no node; leave it out, or give a file")
    return runs_of("runs", [(start, end, function, nan) for start, end, function in given])
