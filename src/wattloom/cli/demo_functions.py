"""What the demo runs: ordinary functions of a few hundredths of a second.

Owns the work. It is imported by worker processes, so it imports little.
"""

import hashlib
import json
import re
import time
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

CALL_S: Final = 0.03
"""About what a call is meant to take."""


def count_primes() -> int:
    """Trial division in pure Python."""
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, 20_000))


def hash_blocks() -> str:
    """SHA-256 over 32 MB."""
    found = hashlib.sha256()
    block = bytes(1 << 20)
    for _ in range(32):
        found.update(block)
    return found.hexdigest()


def compress_text() -> int:
    """Deflate over 1 MB of numbers."""
    return len(zlib.compress(b" ".join(str(n * n).encode() for n in range(100_000)), 4))


def read_records() -> int:
    """JSON and a regular expression."""
    text = json.dumps([{"id": n, "name": f"record {n}", "size": n * n} for n in range(6_000)])
    return len(json.loads(text)) + len(re.findall(r"record (\d+)", text))


def multiply_matrices() -> float:
    """numpy, where it is installed."""
    from importlib import import_module

    numpy: Any = import_module("numpy")
    matrix = numpy.ones((500, 500))
    for _ in range(4):
        matrix = matrix @ matrix / 500.0
    return float(matrix[0, 0])


def wait_a_moment() -> None:
    """What waits costs next to nothing."""
    time.sleep(CALL_S)


def functions() -> list[Callable[[], object]]:
    """Those that run here."""
    numeric = [multiply_matrices] if find_spec("numpy") is not None else []
    return [count_primes, hash_blocks, compress_text, read_records, wait_a_moment, *numeric]
