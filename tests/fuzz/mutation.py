"""How a real file is made a wrong one: bytes, lines, cells, fields, rows of a database.

Owns the mutations. Each takes the file's bytes and a `Random` and gives other bytes; a seed gives the same again.
"""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from tests.fuzz import values

Mutation = Callable[[bytes, Random], bytes]

STRING: Final = rb'"(?:[^"\\\n]|\\.)*"'
FIGURE: Final = rb"(?<![\w.\"-])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.\"])"
TOKEN: Final = re.compile(rb"(" + STRING + rb")|(" + FIGURE + rb")")


# -- any file ----------------------------------------------------------------------------------------------------------


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def flip(data: bytes, random: Random) -> bytes:
    """One bit of one byte."""
    if not data:
        return b"\xff"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def zero(data: bytes, random: Random) -> bytes:
    """A stretch of zeros, as a crash leaves it."""
    at = random.randrange(len(data) + 1)
    length = random.choice((1, 16, 512, 4096))
    return data[:at] + bytes(min(length, len(data) - at)) + data[at + length :]


def insert(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    odd = (
        b"\xff",
        b"\x00",
        b"\n",
        b'"',
        b"{",
        b"[",
        b",",
        b"\xef\xbb\xbf",
        b"\r",
        b"\xed\xa0\x80",
        b"nan",
        b"[" * 5000,
    )
    return data[:at] + random.choice(odd) + data[at:]


def lines(data: bytes, random: Random) -> bytes:
    """A line left out, doubled, torn, or at another place."""
    found = data.splitlines(keepends=True)
    if not found:
        return b"\n"
    at, to = random.randrange(len(found)), random.randrange(len(found))
    kind = random.randrange(4)
    if kind == 0:
        del found[at]
    elif kind == 1:
        found.insert(to, found[at])
    elif kind == 2:
        found[at] = found[at][: random.randrange(len(found[at]) + 1)]
    else:
        found[at], found[to] = found[to], found[at]
    return b"".join(found)


def nothing(data: bytes, random: Random) -> bytes:
    return random.choice((b"", b"\n", b"\x00", b"{}", b"[]", b"null", b"\xff\xfe", b" " * 4096))


BYTES: Final[tuple[Mutation, ...]] = (cut, flip, zero, insert, lines, nothing)


# -- files with fields -------------------------------------------------------------------------------------------------


def _replaced(data: bytes, random: Random, group: int, by: Callable[[bytes], bytes]) -> bytes:
    """One token of a kind: 1 text in quotes, 2 a figure outside of them."""
    found = [match for match in TOKEN.finditer(data) if match[group] is not None]
    if not found:
        return data
    match = random.choice(found)
    return data[: match.start()] + by(match[0]) + data[match.end() :]


def figure(data: bytes, random: Random) -> bytes:
    return _replaced(data, random, 2, lambda _: random.choice(values.FIGURES).encode())


def scaled(data: bytes, random: Random) -> bytes:
    """A figure that could be meant, but is another one."""
    factor = random.choice((0.1, 0.5, 2, 10, -1))
    return _replaced(data, random, 2, lambda old: repr(float(old) * factor).encode())


def toml_value(data: bytes, random: Random) -> bytes:
    odd = random.choice((*values.SHAPES, *values.FIGURES, "nan", "inf", "-inf")).encode()
    return _replaced(data, random, random.choice((1, 2)), lambda _: odd)


def json_value(data: bytes, random: Random) -> bytes:
    odd = random.choice((*values.ARCHIVES, *values.FIGURES)).encode()
    return _replaced(data, random, random.choice((1, 2)), lambda _: odd)


def text(data: bytes, random: Random) -> bytes:
    """Another text between the quotes, from the file itself or from nowhere."""
    known = [match[1] for match in TOKEN.finditer(data) if match[1] is not None]
    drawn = values.string(random).encode("utf-8", "surrogatepass")
    escaped = b'"' + drawn.replace(b"\\", rb"\\").replace(b'"', rb"\"").replace(b"\n", rb"\n") + b'"'
    return _replaced(data, random, 1, lambda _: random.choice([escaped, *known[:20]]))


def key(data: bytes, random: Random) -> bytes:
    """A name of a field, misspelt or doubled."""
    found = list(re.finditer(rb"[A-Za-z_]{2,}(?=\"?\s*[=:])", data))
    if not found:
        return data
    match = random.choice(found)
    other = random.choice((match[0][:-1], match[0] + b"x", random.choice(found)[0]))
    return data[: match.start()] + other + data[match.end() :]


def cell(data: bytes, random: Random) -> bytes:
    """One cell of a CSV file: a figure becomes another kind of figure, a name another name."""
    rows = data.split(b"\n")
    at = random.randrange(len(rows))
    cells = rows[at].split(b",")
    which = random.randrange(len(cells))
    is_figure = re.fullmatch(rb"\s*-?[\d.]+(e[-+]?\d+)?\s*", cells[which]) is not None
    odd = values.number(random) if is_figure else values.string(random)
    cells[which] = odd.encode("utf-8", "surrogatepass")
    rows[at] = b",".join(cells)
    return b"\n".join(rows)


TOML: Final = (*BYTES, figure, figure, scaled, toml_value, toml_value, text, key)
JSON: Final = (*BYTES, figure, figure, scaled, json_value, json_value, text, key)
CSV: Final = (*BYTES, cell, cell, cell, figure, scaled)
YAML: Final = (*BYTES, toml_value, text, key, figure)


# -- journals ----------------------------------------------------------------------------------------------------------

ROWS: Final[tuple[object, ...]] = (
    None, 0, -1, 1, 2**31, 2**62, 2**63 - 1, -(2**63), 1e300, -1e300, 5e-324, float("inf"), float("-inf"), "",
    "text", "ü" * 1000, b"", b"\x00" * 64, b"\xff\xfe", b"{", b"{}\n", b"null", b'{"event":"', b"[" * 3000,
)  # fmt: skip


def row(data: bytes, random: Random) -> bytes:
    """One value of one row of one table."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.journal")
        path.write_bytes(data)
        try:
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            tables = [
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
            ]
            _change(connection, random.choice(tables), random)
            connection.commit()
            connection.close()
        except (sqlite3.Error, IndexError, OverflowError):
            return flip(data, random)
        return path.read_bytes()


def _change(connection: sqlite3.Connection, table: str, random: Random) -> None:
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    ids = [found for (found,) in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
    which, column = random.choice(ids), random.choice(columns)
    if random.random() < 0.1:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (which,))
        return
    old = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (which,)).fetchone()[0]
    new = random.choice(ROWS)
    if isinstance(old, bytes) and old and random.random() < 0.7:
        new = random.choice((*JSON, zero, flip, figure))(old, random)
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, which))


JOURNAL: Final = (cut, flip, flip, zero, row, row, row, row, row, row)
