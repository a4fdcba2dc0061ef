"""Values that nobody means, for options, cells and fields.

Owns the lists. What is drawn comes from the caller's `Random`, so that a seed gives the same again.
"""

from pathlib import Path
from random import Random
from typing import Final

NUMBERS: Final = (
    "nan", "-nan", "inf", "-inf", "-0", "0", "-1", "1", "2", "0.5", "1e308", "-1e308", "1e-320", "5e-324",
    "1e400", "1e12", "1e-9", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "1" + "0" * 400, "9" * 5000, "", " ", "1e", "0x10", "1_000", "1,5", "٣", "+1", "1.", ".5", "true", "12 W",
    "１２", "1\n2",
)  # fmt: skip
"""As somebody types them."""
FIGURES: Final = (
    "0", "-0.0", "-1", "1", "2", "3", "0.5", "1e308", "-1e308", "5e-324", "1e-9", "1e9", "1e11", "1e12",
    "1e300", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "1" + "0" * 400,
)  # fmt: skip
"""Numbers that TOML, JSON and CSV can all write."""
STRINGS: Final = (
    "", " ", "x" * 5000, "ü", "日本語", "\u202e", "\x1b[31mred", "two\nlines", "tab\tbed", "../..", "#", "#3",
    "%s", "{0}", "[bold]", "[/]", "'", '"', "\\", "-", "--", "\udcff", "a,b", "a:b=c", "a=b", "1-1", "e\u0301",
    "𝕏", "null", "None", "auto", "off", "all", ":", "::", "x.py:Y", "1=2", "=", "50=", "1:2:3", "[::1]:0",
    "localhost:99999", "127.0.0.1:0", "http://[", "snmp://",
)  # fmt: skip
PATHS: Final = (
    "folder", "/dev/null", "/dev/full", "/dev/zero", "missing", "no/such/folder/file", "x" * 300, "loop",
    "bytes-\udcff", "/proc/self/mem", ".", "/", "~", "locked", "new.out", "folder/new.out", "empty",
)  # fmt: skip
SHAPES: Final = (
    "true",
    "[]",
    "{}",
    "[1, 2]",
    '"text"',
    '""',
    "[[1, 2], [3]]",
    '{ "a" = 1 }',
    "1979-05-27",
    "'x'",
    "[nan]",
)
"""TOML values of other kinds than was asked for."""
ARCHIVES: Final = ("null", "true", "[]", "{}", '"text"', "[1, 2]", '{"a": 1}', "[[1, 2], [3]]", '"\\ud800"', "[" * 3000)
"""JSON values of other kinds; the last is not whole, and deep."""


def number(random: Random) -> str:
    return random.choice(NUMBERS)


def string(random: Random) -> str:
    drawn = random.choice(STRINGS)
    return drawn if random.random() < 0.8 else drawn + random.choice(STRINGS)[:200]


def path(random: Random, known: list[str]) -> str:
    """Of a file that is there, of something else that is there, or of nothing."""
    return random.choice(PATHS) if random.random() < 0.7 or not known else random.choice(known)


def furnish(folder: Path) -> None:
    """What `path` names, in the folder a command runs in."""
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "loop").symlink_to("loop")
    (folder / "bytes-\udcff").write_bytes(b"\xff\xfe")
    locked = folder / "locked"
    locked.write_text("nobody may read this")
    locked.chmod(0)
