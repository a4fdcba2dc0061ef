"""Rows that SQLite gives back as if nothing were wrong, and that are not what was written: they are found and said, by
file, run and row, whoever reads them. Nothing of them is passed over."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from wattloom import api
from wattloom.errors import LogError, WattloomError
from wattloom.history.log import VERSION, Header, Log
from wattloom.history.stored_log import JOURNAL_VERSION
from wattloom.journal.errors import JournalCorrupt
from wattloom.journal.journal import Journal
from wattloom.journal.payloads import Call
from wattloom.journal.retention import Retention, prune_file

LINES = (
    b'{"event":"function-defined","time":0.0,"function":{"name":"f"}}\n',
    b'{"event":"task-submitted","time":1.0,"task":{"id":"1-1","function":"f"}}\n',
    b'{"event":"task-submitted","time":1.5,"task":{"id":"1-2","function":"f"}}\n'
    b'{"instruction":"place","task":"1-1","attempt":1,"node":"n","variant":"default","cost":null}\n',
    b'{"event":"task-finished","time":2.0,"task":"1-1","attempt":1}\n',
)
"""One to a row."""
VERSION_1 = """
ALTER TABLE log DROP COLUMN checksum; ALTER TABLE payloads DROP COLUMN checksum;
ALTER TABLE functions DROP COLUMN checksum; ALTER TABLE results DROP COLUMN checksum;
DROP TABLE workers; PRAGMA user_version = 1;
"""


def write(path: Path) -> None:
    """A run that is cut off with one task open."""
    journal = Journal.open(path)
    journal.begin_run(Header(VERSION, "fifo", "local"), 1000.0)
    journal.keep_function("d1", "f", b"blob")
    journal.keep([Call("1-1", "d1", b"args"), Call("1-2", "d1", b"args")])
    journal.learn("f", "m", {"runs": 3})
    for line in LINES:
        journal.append(line)
        journal.commit()
    journal.close()


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    write(tmp_path / "whole")
    with closing(sqlite3.connect(tmp_path / "whole")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return (tmp_path / "whole").read_bytes()


@pytest.fixture
def damaged(tmp_path: Path, whole: bytes) -> Callable[..., Path]:
    """A copy, changed by statements."""

    def make(*statements: str, values: tuple[object, ...] = ()) -> Path:
        path = tmp_path / "work.journal"
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement, values) if values else connection.executescript(statement)
            connection.commit()
        return path

    return make


def unfinished(path: Path) -> list[str]:
    journal = Journal.open(path)
    try:
        return [each.task.id for each in journal.unfinished()]
    finally:
        journal.close()


def said_by(path: Path) -> str:
    """What recovery says of the damage."""
    with pytest.raises(JournalCorrupt) as raised:
        unfinished(path)
    return str(raised.value)


def test_what_is_whole_is_recovered(damaged: Callable[..., Path]) -> None:
    assert unfinished(damaged()) == ["1-2"]


@pytest.mark.parametrize(("table", "column"), [("log", "records"), ("payloads", "body"), ("functions", "blob")])
def test_every_flipped_bit_is_found(damaged: Callable[..., Path], table: str, column: str) -> None:
    """In the last row, which in the log is that of an end: without it the task would be run again."""
    path = damaged()
    last = f"rowid = (SELECT max(rowid) FROM {table})"
    with closing(sqlite3.connect(path)) as connection:
        (data,) = connection.execute(f"SELECT {column} FROM {table} WHERE {last}").fetchone()
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        path = damaged(f"UPDATE {table} SET {column} = ? WHERE {last}", values=(bytes(changed),))
        assert f"of its {table} has another checksum" in said_by(path)


LOG_DAMAGE = {
    "zeroed": ("UPDATE log SET records = zeroblob(length(records)) WHERE id % 1000 = {}", "another checksum"),
    "empty": ("UPDATE log SET records = x'' WHERE id % 1000 = {}", "another checksum"),
    "cut short": ("UPDATE log SET records = substr(records, 1, 20) WHERE id % 1000 = {}", "another checksum"),
    "text": ("UPDATE log SET records = 'abc' WHERE id % 1000 = {}", "is text, not bytes"),
    "text that is not UTF-8": ("UPDATE log SET records = CAST(x'ff' AS TEXT) WHERE id % 1000 = {}", "is text"),
    "a number": ("UPDATE log SET records = 7 WHERE id % 1000 = {}", "is integer"),
    "gone": ("DELETE FROM log WHERE id % 1000 = {}", "is missing"),
}


@pytest.mark.parametrize("how", LOG_DAMAGE)
@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_damaged_row_of_the_log_is_named(damaged: Callable[..., Path], how: str, row: int) -> None:
    statement, found = LOG_DAMAGE[how]
    first = 1 << 40
    path = damaged(statement.format((first + row) % 1000))
    text = said_by(path)
    assert str(path) in text
    assert f"run 1: row {row} of its log" in text
    assert found in text
    assert f"mv {path}" in text
    with pytest.raises(LogError, match=r"damaged|cannot be read"):
        api.tasks(path)
    with pytest.raises(LogError, match=r"damaged|cannot be read"):
        list(Log(path).lines())


def test_rows_that_have_changed_places_are_found(damaged: Callable[..., Path]) -> None:
    first = 1 << 40
    path = damaged(
        f"UPDATE log SET id = 7 WHERE id = {first + 2}; UPDATE log SET id = {first + 2} WHERE id = {first + 3};"
        f"UPDATE log SET id = {first + 3} WHERE id = 7"
    )
    assert "row 2 of its log has another checksum" in said_by(path)


@pytest.mark.parametrize("how", ["x'00'", "'x'", "zeroblob(length(body))", "CAST(x'ff' AS TEXT)", "12"])
def test_a_damaged_payload_is_named(damaged: Callable[..., Path], how: str) -> None:
    text = said_by(damaged(f"UPDATE payloads SET body = {how}"))
    assert "run 1: row 1 of its payloads" in text


@pytest.mark.parametrize("how", ["x'ff'", "'x'", "'nul'", "x'7b'"])
def test_damaged_figures_of_a_function_are_said(damaged: Callable[..., Path], how: str) -> None:
    path = damaged(f"UPDATE learned SET figures = {how}")
    journal = Journal.open(path)
    try:
        with pytest.raises(JournalCorrupt, match="what was learned of f"):
            journal.learned("f", "m")
    finally:
        journal.close()
    with pytest.raises(LogError, match="damaged"):
        api.functions(path)


# -- journals of version 1, which have no checksums --------------------------------------------------------------------


def test_a_journal_of_version_1_is_read_as_it_is_and_recovered(damaged: Callable[..., Path]) -> None:
    path = damaged(VERSION_1)
    before = path.read_bytes()
    assert b"".join(Log(path).lines()) == b"".join(LINES)
    assert [task.task for task in api.tasks(path)] == ["1-2", "1-1"]
    assert path.read_bytes() == before
    assert unfinished(path) == ["1-2"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (JOURNAL_VERSION,)
    journal = Journal.open(path)
    assert journal.begin_run(Header(VERSION, "fifo", "local"), 2000.0) == 2
    journal.append(LINES[0])
    journal.commit()
    journal.close()
    with closing(sqlite3.connect(path)) as connection:
        sums = [sum_then is None for (sum_then,) in connection.execute("SELECT checksum FROM log ORDER BY id")]
    assert sums == [True, True, True, True, False]


@pytest.mark.parametrize(
    "how",
    [
        "zeroblob(length(records))",
        "CAST(replace(CAST(records AS TEXT), '\"task-submitted\"', '\"task-submitted\"!') AS BLOB)",
        'CAST(records || \'{"event":"task-started","time":1,"task":"\' || x\'ff227d0a\' AS BLOB)',
        'CAST(\'{"event":"task-started","time":[],"task":"1-1"}\' AS BLOB)',
        'CAST(\'{"event":"task-started","time":1e300,"task":"1-1"}\' AS BLOB)',
        'CAST(\'{"event":"later\' AS BLOB)',
        'CAST(\'{"instruction":"wait",\' AS BLOB)',
        "CAST('{\"something\":1}' AS BLOB)",
        "CAST('null' AS BLOB)",
        "'text'",
        "7",
    ],
)
def test_without_checksums_a_line_that_is_no_record_is_damage(damaged: Callable[..., Path], how: str) -> None:
    first = 1 << 40
    path = damaged(VERSION_1, f"UPDATE log SET records = {how} WHERE id = {first + 2}")
    with pytest.raises(LogError):
        api.tasks(path)
    with pytest.raises(LogError):
        api.functions(path)
    assert "run 1: row 2 of its log" in said_by(path)


def test_lines_of_kinds_that_a_later_version_writes_are_passed_over(damaged: Callable[..., Path]) -> None:
    later = '{"event":"hindsight","time":1.2,"x":[1]}\n{"instruction":"resize","y":2}\n'
    path = damaged(VERSION_1, f"UPDATE log SET records = CAST(records || '{later}' AS BLOB) WHERE id = {(1 << 40) + 2}")
    assert unfinished(path) == ["1-2"]


def test_a_damaged_line_of_a_log_that_is_no_journal_is_named(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_bytes(msgspec.json.encode(Header(VERSION, "fifo", "test")) + b"\n" + b"".join(LINES) + b"\0\0\0\n")
    with pytest.raises(LogError, match=r"a\.jsonl:7: is damaged: is neither an event nor an instruction"):
        api.tasks(log)


# -- rows of runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["began", "ended", "unfinished", "bytes", "taken_over", "pid"])
@pytest.mark.parametrize("value", ["'x'", "x'00'", "1e300", "-9e999", "CAST(x'ff' AS TEXT)"])
def test_a_row_of_runs_that_cannot_have_been_written_is_said(
    damaged: Callable[..., Path], column: str, value: str
) -> None:
    path = damaged(f"UPDATE runs SET {column} = {value}")
    for reading in (lambda: api.tasks(path), lambda: api.functions(path)):
        with pytest.raises(LogError) as said:
            reading()
        assert str(path) in str(said.value)
    for opening in (lambda: Journal.open(path).close(), lambda: prune_file(path, Retention(0.0, 0.0))):
        with pytest.raises(JournalCorrupt) as raised:
            opening()
        assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "header", ["x'00'", "'x'", "CAST('[]' AS BLOB)", "zeroblob(50)", "CAST('{\"policy\":7}' AS BLOB)"]
)
def test_a_damaged_header_is_said(damaged: Callable[..., Path], header: str) -> None:
    path = damaged(f"UPDATE runs SET header = {header}")
    for reading in (lambda: api.tasks(path), lambda: api.functions(path), lambda: list(Log(path).records())):
        with pytest.raises(WattloomError):
            reading()


def test_free_pages_that_cannot_be_given_back_do_not_hold_up_pruning(tmp_path: Path) -> None:
    """A file in which SQLite keeps no book of where its pages are used has free ones for ever."""
    path = tmp_path / "work.journal"
    write(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
        connection.execute("CREATE TABLE much (x)")
        connection.execute("INSERT INTO much SELECT zeroblob(2000000)")
        connection.commit()
        connection.execute("DROP TABLE much")
        connection.commit()
        assert connection.execute("PRAGMA freelist_count").fetchone()[0] > 100
    assert prune_file(path, Retention(0.0, 0.0, force=True)).runs == (1,)
