"""One API server as it is reached: where it is, how it proves itself, and who we are to it.

Owns the address and the TLS context. Knows no kubeconfig file and sends nothing.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from wattloom.errors import InputError
from wattloom.kubernetes.client.credentials import Credentials, Pair, Pem


class Target:
    """`host` and `port` to connect to, `prefix` before every path, `tls()` for each new connection."""

    def __init__(
        self,
        server: str,
        credentials: Credentials,
        *,
        field: str = "server",
        ca: Pem | None = None,
        skip_verify: bool = False,
        server_name: str = "",
        namespace: str = "default",
    ) -> None:
        self.server: Final = server
        self.host, self.port, self.prefix, self._secure = _parts(server, field)
        self.credentials: Final = credentials
        self.namespace: Final = namespace
        self.server_name: Final = server_name or self.host
        self._field = field
        self._ca = ca
        self._skip_verify = skip_verify
        self._made: tuple[bytes, Pair | None, ssl.SSLContext] | None = None

    @property
    def authority(self) -> str:
        """As the Host header names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def tls(self) -> ssl.SSLContext | None:
        """None for plain HTTP. The files are read again, the context is made again only if they changed."""
        if not self._secure:
            return None
        pair = await self.credentials.pair()
        ca = self._ca.read() if self._ca is not None else b""
        if self._made is None or self._made[:2] != (ca, pair):
            self._made = ca, pair, self._context(ca, pair)
        return self._made[2]

    def _context(self, ca: bytes, pair: Pair | None) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=ca.decode("ascii") if ca else None)
        except (ssl.SSLError, ValueError) as error:
            raise InputError(self._ca.field if self._ca else self._field, f"no certificate in it: {error}") from None
        # Newer Pythons ask of a CA what the CAs of many clusters do not have (a key identifier).
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self._skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if pair is not None:
            _load(context, pair, self._field)
        return context


def _load(context: ssl.SSLContext, pair: Pair, field: str) -> None:
    try:
        with _as_file(pair.certificate.rstrip() + b"\n" + pair.key) as path:
            # Without a password given, OpenSSL would ask the terminal for one.
            context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        problem = f"the client certificate and its key cannot be used: {error}"
        raise InputError(field, problem) from None
    except OSError as error:
        problem = f"the client certificate cannot be handed to OpenSSL, which wants a file: {error}; set TMPDIR"
        raise InputError(field, problem) from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """OpenSSL takes a certificate from a file only: one in memory, where the system has such. Else it is a file that is
    ours alone (0600) and gone at once."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        handle, path = os.memfd_create("wattloom"), ""
    else:
        handle, path = tempfile.mkstemp(prefix="wattloom-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            yield path or f"/proc/self/fd/{handle}"
    finally:
        if path:
            os.unlink(path)


def _no_password() -> str:
    raise ValueError("the key is protected by a password")


def _parts(server: str, field: str) -> tuple[str, int, str, bool]:
    try:
        url = urlsplit(server)
        port = url.port
    except ValueError as error:
        raise InputError(field, f"{server!r} is no address: {error}") from None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise InputError(field, f"{server!r} is no address: write https://HOST:PORT")
    if url.query or url.fragment or url.username:
        raise InputError(field, f"{server!r}: only https://HOST:PORT/PATH is understood")
    if not (server.isascii() and server.isprintable()) or " " in server:
        raise InputError(field, f"{server!r} is no address: only ASCII, without spaces")
    secure = url.scheme == "https"
    return url.hostname, port or (443 if secure else 80), url.path.rstrip("/"), secure
