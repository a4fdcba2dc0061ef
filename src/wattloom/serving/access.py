"""Who may ask: tokens and certificates, for every server.

Owns the rule of what a token is, how it is compared and how the way is encrypted. Each program says where it asks for
one; none is asked for, anywhere, to find out whether a program is well.
"""

import hmac
import ssl
from base64 import b64decode
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.files import read_text
from wattloom.serving.address import Address

SHORTEST_TOKEN: Final = 16
MOST_BYTES: Final = 1 << 20
"""Of a file with a token."""


class Access(msgspec.Struct, frozen=True):
    """What a caller must bring, and by which way."""

    token: str = ""
    """Empty: nothing."""
    certificate: Path | None = None
    key: Path | None = None
    """None: it stands in the certificate's file."""

    def admits(self, authorization: bytes) -> bool:
        return not self.token or brings(self.token, authorization)

    def encryption(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            if self.key is not None:
                raise InputError("key", "is of no use without a certificate: give --certificate too")
            return None
        try:
            return server_encryption(self.certificate, self.key)
        except (OSError, ssl.SSLError) as problem:
            raise InputError("certificate", f"{self.certificate} cannot be used: {problem}") from problem


def brings(token: str, authorization: bytes) -> bool:
    """Whether a header `Authorization` has the token, as Bearer or as the password of Basic, as kube-scheduler sends
    what stands before the @ of an address. Takes as long for a wrong one, however wrong it is."""
    kind, _, given = authorization.partition(b" ")
    if kind.lower() == b"basic":
        try:
            given = b64decode(given, validate=True).partition(b":")[2]
        except ValueError:
            return False
    elif kind.lower() != b"bearer":
        return False
    return hmac.compare_digest(given, token.encode())


def check_token(token: str) -> None:
    """Raises InputError for one that could be guessed, or not be sent. Empty: none."""
    if token and len(token) < SHORTEST_TOKEN:
        raise InputError("token", f"must have at least {SHORTEST_TOKEN} characters: head -c 24 /dev/urandom | base64")
    if not token.isascii():
        raise InputError("token", "must be of plain letters, digits and signs (ASCII)")


def check_access(address: Address, access: Access, *, insecure: bool = False) -> None:
    """Raises InputError unless it is safe to listen there: on this machine alone anybody may ask; on any other address
    a token is asked for, and the way there is encrypted unless somebody has said that it need not be."""
    check_token(access.token)
    if address.loopback:
        return
    if not access.token:
        raise InputError(
            "listen",
            f"{address} can be reached from other machines: give a token (--token-file, or WATTLOOM_EXPORTER_TOKEN)",
        )
    if access.certificate is None and not insecure:
        raise InputError(
            "listen",
            f"{address} can be reached from other machines: give a certificate (--certificate), or say --insecure "
            "if the way there is safe or encrypted by somebody else",
        )


def read_token(file: Path) -> str:
    """The token of `--token-file`. A file without a usable one is a mistake, never no token."""
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


def server_encryption(
    certificate: Path | str, key: Path | str | None = None, client_ca: Path | str = ""
) -> ssl.SSLContext:
    """With `client_ca` only callers with a certificate of that authority get in. OSError: files cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
