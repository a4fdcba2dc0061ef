"""What earlier runs left unfinished: the tasks that were accepted and have no end in the log.

Owns the way from a run's rows to its unfinished tasks with their payloads. What becomes of them is the
backend's to say.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import LogError
from wattloom.journal import errors
from wattloom.journal.calls import Call, KeptFunction, Unfinished
from wattloom.journal.story import Stories, Story
from wattloom.scheduling.stored_log import damage, rows_of

LOG: Final = "log"
CALLS: Final = msgspec.msgpack.Decoder(list[Call])
CUT_OFF: Final = "taken_over IS NULL AND (unfinished > 0 OR (unfinished IS NULL AND ended IS NULL))"
"""Runs with tasks that nobody has taken over, or that were cut off and not looked at since."""


def runs_to_recover(connection: sqlite3.Connection, current: int | None) -> list[int]:
    return [
        row[0] for row in connection.execute(f"SELECT run FROM runs WHERE {CUT_OFF} ORDER BY run") if row[0] != current
    ]


def unfinished_of(connection: sqlite3.Connection, path: Path, run: int, boot: str = "") -> list[Unfinished]:
    """In order of submission. `boot` says which start of the machine this is. Raises JournalCorrupt at a row that is
    not as it was written: nobody knows then what was accepted, what had begun and what ended."""
    (then,) = connection.execute("SELECT boot FROM runs WHERE run = ?", (run,)).fetchone()
    stories = _stories(connection, path, run)
    calls = _calls(connection, path, run, stories)
    functions: dict[str, KeptFunction | None] = {}
    for digest in {call.function for call in calls.values()}:
        functions[digest] = kept_function(connection, path, digest)
    try:
        return [
            _unfinished(run, then == boot, story, stories, calls.get(story.task), functions)
            for story in stories.open.values()
        ]
    except msgspec.MsgspecError as problem:
        raise errors.damaged(path, run, LOG, "?", f"has a task that cannot be read: {problem}") from problem


def workers_of(connection: sqlite3.Connection, run: int) -> dict[str, int]:
    """The progress files that have to be there, and their marks. Of a run of version 1: none."""
    return dict(connection.execute("SELECT file, mark FROM workers WHERE run = ?", (run,)).fetchall())


def _stories(connection: sqlite3.Connection, path: Path, run: int) -> Stories:
    stories = Stories(str(path), ended=False)
    expected = rows_of(run)[0]
    for row, records in _sound_rows(connection, path, run, LOG, "records"):
        expected += 1
        if row != expected:
            raise errors.damaged(path, run, LOG, expected, "is missing")
        try:
            stories.take(records.splitlines())
        except LogError as problem:
            raise errors.damaged(path, run, LOG, row, problem.problem) from problem
    return stories


def _sound_rows(
    connection: sqlite3.Connection, path: Path, run: int, table: str, column: str
) -> Iterator[tuple[int, bytes]]:
    """Number and data of each row of a run, as it was written. Data are asked for as bytes whatever they are, so that
    text which is none can be told from a failing disk."""
    query = f"SELECT id, CAST({column} AS BLOB), typeof({column}), checksum FROM {table} WHERE id BETWEEN ? AND ?"
    for row, data, kind, sum_then in connection.execute(f"{query} ORDER BY id", rows_of(run)):
        found = f"is {kind}, not bytes" if kind != "blob" else damage(row, data, sum_then)
        if found:
            raise errors.damaged(path, run, table, row, found)
        yield row, data


def kept_function(connection: sqlite3.Connection, path: Path, digest: str) -> KeptFunction | None:
    row = connection.execute(
        "SELECT digest, name, blob, run, checksum FROM functions WHERE digest = ?", (digest,)
    ).fetchone()
    if row is None:
        return None
    if found := damage(0, row[2], row[4]):
        raise errors.damaged(path, row[3], "functions", digest, found)
    return KeptFunction(digest, str(row[1]), row[2])


def _calls(connection: sqlite3.Connection, path: Path, run: int, stories: Stories) -> dict[str, Call]:
    """Payloads of the tasks that have not ended."""
    found: dict[str, Call] = {}
    for row, body in _sound_rows(connection, path, run, "payloads", "body"):
        try:
            found.update((call.task, call) for call in CALLS.decode(body) if call.task in stories.open)
        except (msgspec.MsgspecError, ValueError) as problem:
            raise errors.damaged(path, run, "payloads", row, f"cannot be read: {problem}") from problem
    return found


def _unfinished(
    run: int,
    same_boot: bool,
    story: Story,
    stories: Stories,
    call: Call | None,
    functions: dict[str, KeptFunction | None],
) -> Unfinished:
    return Unfinished(
        run=run,
        task=story.submission(),
        definition=stories.definition(story.function),
        attempt=story.attempt,
        place=story.place,
        share=story.share,
        same_boot=same_boot,
        node=story.node if story.on_node else "",
        started=story.on_node and story.started is not None,
        failures=story.failures,
        losses=story.losses,
        joules=story.joules,
        spread_j=story.spread_j,
        provenance=story.provenance,
        cancelled=story.cancelled,
        call=call,
        function=None if call is None else functions[call.function],
    )
