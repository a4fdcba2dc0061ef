"""The token of `--token-file`, by which others than this machine may ask.

Owns what is said of a file without a usable one: that is a mistake, never no token.
"""

from pathlib import Path
from typing import Final

TOKEN_FILE: Final = " (at least 16 characters)"
"""For help."""
MOST_BYTES: Final = 1 << 20


def token_in(file: Path) -> str:
    from wattloom.errors import InputError
    from wattloom.files import read_text
    from wattloom.kubernetes.health import SHORTEST_TOKEN

    try:
        token = read_text(file, MOST_BYTES).strip()
    except OSError as problem:
        raise InputError("token-file", f"{file} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("token-file", f"{file} is no text") from None
    if not token:
        raise InputError("token-file", f"the token file is empty: {file}")
    if len(token) < SHORTEST_TOKEN:
        raise InputError("token-file", f"{file} has {len(token)} characters, and a token at least {SHORTEST_TOKEN}")
    return token
