"""What earlier runs left unfinished: the tasks that were accepted and have no end in the log.

Owns the way from a run's rows to its unfinished tasks with their payloads. What becomes of them is the
backend's to say.
"""

import sqlite3
from collections.abc import Iterator
from typing import Final

import msgspec

from wattloom.journal.calls import Call, KeptFunction, Unfinished
from wattloom.journal.story import Stories, Story
from wattloom.scheduling.stored_log import rows_of

CALLS: Final = msgspec.msgpack.Decoder(list[Call])
CUT_OFF: Final = "taken_over IS NULL AND (unfinished > 0 OR (unfinished IS NULL AND ended IS NULL))"
"""Runs with tasks that nobody has taken over, or that were cut off and not looked at since."""


def runs_to_recover(connection: sqlite3.Connection, current: int | None) -> list[int]:
    return [
        row[0] for row in connection.execute(f"SELECT run FROM runs WHERE {CUT_OFF} ORDER BY run") if row[0] != current
    ]


def unfinished_of(connection: sqlite3.Connection, run: int, boot: str = "") -> list[Unfinished]:
    """In order of submission. `boot` says which start of the machine this is."""
    (then,) = connection.execute("SELECT boot FROM runs WHERE run = ?", (run,)).fetchone()
    stories = Stories().take(lines_of(connection, run))
    calls = _calls(connection, run, stories)
    functions: dict[str, KeptFunction | None] = {}
    for digest in {call.function for call in calls.values()}:
        functions[digest] = kept_function(connection, digest)
    return [
        _unfinished(run, then == boot, story, stories, calls.get(story.task), functions)
        for story in stories.open.values()
    ]


def lines_of(connection: sqlite3.Connection, run: int) -> Iterator[bytes]:
    """All lines of a run's log but the header."""
    for (records,) in connection.execute("SELECT records FROM log WHERE id BETWEEN ? AND ? ORDER BY id", rows_of(run)):
        yield from records.splitlines()


def kept_function(connection: sqlite3.Connection, digest: str) -> KeptFunction | None:
    row = connection.execute("SELECT digest, name, blob FROM functions WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else KeptFunction(*row)


def _calls(connection: sqlite3.Connection, run: int, stories: Stories) -> dict[str, Call]:
    """Payloads of the tasks that have not ended."""
    found: dict[str, Call] = {}
    for (body,) in connection.execute("SELECT body FROM payloads WHERE id BETWEEN ? AND ?", rows_of(run)):
        found.update((call.task, call) for call in CALLS.decode(body) if call.task in stories.open)
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
        cancelled=story.cancelled,
        call=call,
        function=None if call is None else functions[call.function],
    )
