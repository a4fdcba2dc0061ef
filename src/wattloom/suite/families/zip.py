"""Three files and the archive they are packed into.

Owns the files: English-like text of some ten thousand characters, which shrinks as text does.
"""

import base64
import io
import zipfile
from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect

TEXT: Final = (
    "the of and to in a is that it was for on are with as at be this from have or by one had not but what all were "
    "when there can an your which their said if do will each about how up out them then she many some so these would "
    "power energy core server task node watt joule second function schedule place meter idle load rate plan cost"
)
SIZES: Final = {"small.txt": 2_000, "middle.txt": 8_000, "large.txt": 20_000}
"""Words of each file."""


def event(seed: int) -> dict[str, Any]:
    chance, words = Chance("zip", seed), TEXT.split()
    return {"files": [{"name": name, "text": " ".join(chance.pick(words, size))} for name, size in SIZES.items()]}


def check(given: dict[str, Any], result: Any) -> None:
    """Unpacked with Python's `zipfile`, each file is what it was, and the archive is smaller than they are."""
    packed = base64.b64decode(result["archive"], validate=True)
    expect(zipfile.is_zipfile(io.BytesIO(packed)), "it is no zip archive")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    wanted = {each["name"]: each["text"] for each in given["files"]}
    expect(sorted(found) == sorted(wanted), f"the archive has {sorted(found)}, not {sorted(wanted)}")
    expect(found == wanted, "a file in the archive is not what it was")
    plain = sum(map(len, wanted.values()))
    expect(len(packed) < plain / 2, f"{plain:,} bytes of text became {len(packed):,}: they were not compressed")
