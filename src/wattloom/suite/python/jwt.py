"""jwt-python: a token is signed and verified, and one that was changed is not, by PyJWT."""

from functools import cache
from typing import Any

import jwt
from jwt.algorithms import RSAAlgorithm


def handler(event: dict[str, Any]) -> dict[str, Any]:
    token = jwt.encode(event["claims"], _key(event["key"]), algorithm="RS256")
    public = _key(event["public_key"])
    return {
        "token": token,
        "verified": _verified(token, public) == event["claims"],
        "tampered": _verified(_changed(token), public) is not None,
    }


@cache
def _key(pem: str) -> Any:
    """Read once, as a service would."""
    return RSAAlgorithm(RSAAlgorithm.SHA256).prepare_key(pem)


def _verified(token: str, key: Any) -> dict[str, Any] | None:
    try:
        return jwt.decode(token, key, algorithms=["RS256"])
    except jwt.InvalidSignatureError:
        return None


def _changed(token: str) -> str:
    """With another first letter of the signature."""
    body, _, signature = token.rpartition(".")
    return f"{body}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"
