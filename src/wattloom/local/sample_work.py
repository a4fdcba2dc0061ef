"""Small functions of different kinds that keep a core busy: what a machine is tried with when nobody names others.

Owns the work. Each call is a fixed amount of it, so that two runs of the same calls do the same.
"""

import hashlib
import zlib
from typing import Final

ROUNDS: Final = 8


def primes() -> int:
    """Trial division, in the interpreter."""
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for _ in range(ROUNDS) for n in range(2, 900))


def hashes() -> int:
    """SHA-256, in the processor's vector or hash units."""
    return sum(hashlib.pbkdf2_hmac("sha256", b"watt", b"loom", 4000)[0] for _ in range(ROUNDS))


def archives() -> int:
    """Compression of text, with many branches."""
    text = b" ".join(str(n * n).encode() for n in range(3000))
    return sum(len(zlib.compress(text, 9)) for _ in range(ROUNDS // 4))


def copies() -> int:
    """Large blocks of memory, moved about."""
    block = bytearray(8 << 20)
    total = 0
    for n in range(ROUNDS):
        block = bytearray(bytes(block))
        total += block[n]
    return total


FUNCTIONS: Final = (primes, hashes, archives, copies)
