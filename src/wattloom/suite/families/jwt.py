"""Claims and the token that is signed over them: RS256, the usual one.

Owns the key, which is made by seed and protects nothing, and the claims. A signature of this kind has no chance in it:
all languages come to the same one if they write the claims alike.
"""

import base64
import hashlib
import json
from functools import cache
from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect

BITS: Final = 2048
EXPONENT: Final = 65537
ISSUED_AT: Final = 1_700_000_000
LASTS_S: Final = 10 * 365 * 86_400
SMALL_PRIMES: Final = tuple(n for n in range(3, 2000, 2) if all(n % d for d in range(3, int(n**0.5) + 1, 2)))
PREFIX: Final = bytes.fromhex("3031300d060960864801650304020105000420")
"""What PKCS #1 puts before a SHA-256 that is signed."""


def event(seed: int) -> dict[str, Any]:
    chance = Chance("jwt", seed)
    claims = {
        "sub": f"user-{chance.below(1_000_000, 1)[0]}",
        "iss": "wattloom",
        "iat": ISSUED_AT,
        "exp": ISSUED_AT + LASTS_S,
        "scope": " ".join(chance.pick(("read", "write", "list", "admin", "share"), 4)),
        "nonce": chance.bytes(16).hex(),
    }
    return {"claims": claims, "key": _key().private_pem, "public_key": _key().public_pem}


def check(given: dict[str, Any], result: Any) -> None:
    """The signature is right by arithmetic alone, and the token says what it was to say."""
    parts = result["token"].split(".")
    expect(len(parts) == 3, "the token has not three parts")
    header, claims, signature = map(_decoded, parts)
    expect(json.loads(header)["alg"] == "RS256", f"the token's header is {header.decode()}")
    expect(json.loads(claims) == given["claims"], f"the token's claims are {claims.decode()}")
    key = _key()
    opened = pow(int.from_bytes(signature), EXPONENT, key.modulus).to_bytes(BITS // 8)
    digest = hashlib.sha256(f"{parts[0]}.{parts[1]}".encode()).digest()
    filling = b"\xff" * (BITS // 8 - 3 - len(PREFIX) - len(digest))
    expect(opened == b"\x00\x01" + filling + b"\x00" + PREFIX + digest, "the token's signature is wrong")
    expect(result["verified"] is True, "the function could not verify its own token")
    expect(result["tampered"] is False, "the function verified a token that was changed")


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


# -- a key by seed -----------------------------------------------------------------------------------------------------


class _Key:
    def __init__(self, p: int, q: int) -> None:
        self.modulus = p * q
        d = pow(EXPONENT, -1, (p - 1) * (q - 1))
        numbers = (0, self.modulus, EXPONENT, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
        rsa = _der(0x30, bytes.fromhex("06092a864886f70d0101010500"))
        inner = _der(0x30, b"".join(map(_whole, numbers)))
        self.private_pem = _pem("PRIVATE KEY", _der(0x30, _whole(0) + rsa + _der(0x04, inner)))
        public = _der(0x30, _whole(self.modulus) + _whole(EXPONENT))
        self.public_pem = _pem("PUBLIC KEY", _der(0x30, rsa + _der(0x03, b"\x00" + public)))


@cache
def _key() -> _Key:
    chance = Chance("rsa", 0)
    return _Key(_prime(chance), _prime(chance))


def _prime(chance: Chance) -> int:
    """Of half the bits, the two highest set, so that the product has all of them."""
    while True:
        found = int.from_bytes(chance.bytes(BITS // 16)) | (3 << (BITS // 2 - 2)) | 1
        if found % EXPONENT != 1 and all(found % each for each in SMALL_PRIMES) and _is_prime(found):
            return found


def _is_prime(n: int) -> bool:
    """Miller and Rabin, with the first primes as witnesses."""
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    for witness in (2, *SMALL_PRIMES[:7]):
        x = pow(witness, (n - 1) >> twos, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(twos - 1)):
            return False
    return True


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def _whole(number: int) -> bytes:
    return _der(0x02, number.to_bytes(number.bit_length() // 8 + 1))


def _pem(what: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {what}-----", *lines, f"-----END {what}-----", ""])
