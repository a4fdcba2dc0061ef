"""A user's attributes and the anonymous credential that is made of them, shown and verified.

Owns the attributes. That the pairing holds is checked by the function, which must also refuse a proof that was changed;
that the proof is of what it says is worked out here again from its hash. (The tests work the pairing out too.)
"""

import hashlib
from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect

ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""Of the groups of BLS12-381."""
SIZES: Final = {"s1": 48, "s2": 48, "k": 96, "g2": 96, "committed": 96, "challenge": 32}
"""Bytes of each."""


def event(seed: int) -> dict[str, Any]:
    chance = Chance("el-passo", seed)
    secret, name, service, year = (chance.bytes(16).hex() for _ in range(4))
    attributes = [f"secret {secret}", f"user {name}", f"service {service}", f"adult until {year}"]
    return {"seed": chance.bytes(32).hex(), "attributes": attributes}


def check(given: dict[str, Any], result: Any) -> None:
    """Issued, verified, and a changed one refused; points of the right size; and the hash that the proof rests on."""
    expect(result["issued"] is True, "the user could not verify the signature he was given")
    expect(result["verified"] is True, "the relying party could not verify the proof")
    expect(result["tampered"] is False, "a proof that was changed was taken for a right one")
    parts = {name: bytes.fromhex(result[name]) for name in SIZES}
    for name, size in SIZES.items():
        expect(len(parts[name]) == size, f"{name} has {len(parts[name])} bytes, not {size}")
    hashed = hashlib.sha256(parts["k"] + parts["committed"] + parts["s1"] + parts["s2"]).digest()
    right = int.from_bytes(hashed) % ORDER
    expect(int.from_bytes(parts["challenge"]) == right, "the challenge is not the hash of what was committed to")
