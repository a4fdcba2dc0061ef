"""Where the exporter listens, and who may ask.

Owns the rule: on this machine alone anybody may; on any other address a token is asked for, and the way there is
encrypted unless somebody has said in so many words that it need not be.
"""

import hmac
import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.files import read_text

DEFAULT: Final = "127.0.0.1:9909"
SHORTEST_TOKEN: Final = 16
MOST_BYTES: Final = 1 << 20


class Address(msgspec.Struct, frozen=True):
    """A host and a port. Port 0: any that is free."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only programs of this machine can come here."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Access(msgspec.Struct, frozen=True):
    """What a caller must bring, and by which way."""

    token: str = ""
    """Empty: nothing."""
    certificate: Path | None = None
    key: Path | None = None
    """None: it stands in the certificate's file."""

    def admits(self, authorization: str | None) -> bool:
        """Whether a header `Authorization` has the token. Takes as long for a wrong one, however wrong it is."""
        given = (authorization or "").encode()
        return not self.token or hmac.compare_digest(given, f"Bearer {self.token}".encode())

    def encryption(self) -> ssl.SSLContext | None:
        if self.certificate is None:
            if self.key is not None:
                raise InputError("key", "is of no use without a certificate: give --certificate too")
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as problem:
            raise InputError("certificate", f"{self.certificate} cannot be used: {problem}") from problem
        return context


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `[HOST]:PORT` or `:PORT`, which is every address of this machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError("listen", f"must be HOST:PORT, as in {DEFAULT}, not {text!r}")
    return Address(host.strip("[]") or "0.0.0.0", int(port))


def check_access(address: Address, access: Access, *, insecure: bool = False) -> None:
    """Raises InputError unless it is safe to listen there."""
    if access.token and len(access.token) < SHORTEST_TOKEN:
        raise InputError("token", f"must have at least {SHORTEST_TOKEN} characters: head -c 24 /dev/urandom | base64")
    if access.token and not access.token.isascii():
        raise InputError("token", "must be of plain letters, digits and signs (ASCII)")
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


def read_token(path: Path) -> str:
    try:
        token = read_text(path, MOST_BYTES).strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError("token-file", f"{path} cannot be read: {problem}") from problem
    if not token:
        raise InputError("token-file", f"{path} is empty")
    return token
