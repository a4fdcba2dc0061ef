"""Asking over HTTP, for meters: one answer, soon, of a bearable size, from the host that was named.

Owns connections, credentials, whose certificates are trusted, and what is said when it fails. Knows nothing of joules.
Follows no redirect to another host, takes no proxy, and puts neither passwords nor queries into messages.
"""

import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any, Final
from urllib.parse import unquote, urlencode, urljoin, urlsplit

import msgspec

from wattloom.files import UNREADABLE
from wattloom.metering.deadline import answers_until
from wattloom.metering.source import SourceProblem

MOST_BYTES: Final = 16 << 20
"""A page with 10,000 processes has about 5 MB."""
MOST_REDIRECTS: Final = 3
PIECE: Final = 1 << 16
REDIRECTS: Final = (301, 302, 303, 307, 308)
OTHER_NAME: Final = (62, 64)
"""OpenSSL's numbers for a good certificate with another name or address in it."""


class Page(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    """Names in small letters."""

    def json(self, what: str) -> Any:
        try:
            return msgspec.json.decode(self.body)
        except UNREADABLE as problem:
            if self.status != 200:
                raise SourceProblem(f"{what} {_refusal(self.status)}") from problem
            raise SourceProblem(f"{what} answered with something that is not JSON{_looks(self.body)}") from problem


class Http:
    """One server, over a connection that is kept. Used by one thread."""

    def __init__(
        self,
        url: str,
        *,
        user: str = "",
        password: str = "",
        token: str = "",
        certificate: str = "",
        timeout_s: float = 3.0,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        parts = urlsplit(url)
        self._scheme, self._host, self._port = parts.scheme, parts.hostname or "", parts.port
        self._path = parts.path
        self._query = parts.query
        self.headers: dict[str, str] = {"Accept": "*/*", "User-Agent": "wattloom"}
        user, password = user or unquote(parts.username or ""), password or unquote(parts.password or "")
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        elif user:
            self.headers["Authorization"] = basic(user, password)
        self._certificate = certificate
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._connection: HTTPConnection | None = None
        port = f":{self._port}" if self._port is not None else ""
        self.where: Final = f"{self._scheme}://{self._host}{port}"
        """For messages: no user, no password, no query."""

    def get(self, path: str = "", query: Mapping[str, str] | None = None) -> Page:
        """The page, if the answer is good; else SourceProblem. `path`: below the address, or absolute."""
        page = self.send("GET", path, query)
        if page.status != 200:
            raise SourceProblem(f"{self.where}{self._below(path)} {_refusal(page.status)}")
        return page

    def send(
        self,
        method: str,
        path: str = "",
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """One question, whatever the answer's status. `body` is sent as JSON."""
        target = self._below(path)
        if query:
            target += "?" + urlencode(query)
        elif self._query and not path:
            target += "?" + self._query
        data = None if body is None else msgspec.json.encode(body)
        sent = self.headers | ({"Content-Type": "application/json"} if data is not None else {}) | dict(headers or {})
        end = monotonic() + self._timeout_s
        for _ in range(MOST_REDIRECTS + 1):
            page = self._exchange(method, target, data, sent, end)
            if page.status not in REDIRECTS:
                return page
            target = self._redirected(target, page)
        raise SourceProblem(f"{self.where} sends us in circles")

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # -- one exchange ------------------------------------------------------------------------------------------------

    def _below(self, path: str) -> str:
        if path.startswith("/"):
            return path
        return f"{self._path.rstrip('/')}/{path}" if path else self._path or "/"

    def _exchange(self, method: str, target: str, data: bytes | None, headers: dict[str, str], end: float) -> Page:
        """On the kept connection; if the server has closed that meanwhile, once more on a new one."""
        kept = self._connection is not None
        try:
            return self._once(method, target, data, headers, end)
        except (ConnectionError, HTTPException) as problem:
            self.close()
            if not kept:
                raise SourceProblem(self._in_words(problem)) from problem
        except (OSError, ValueError) as problem:
            self.close()
            raise SourceProblem(self._in_words(problem)) from problem
        return self._exchange(method, target, data, headers, end)

    def _once(self, method: str, target: str, data: bytes | None, headers: dict[str, str], end: float) -> Page:
        connection = self._connected(end)
        connection.request(method, target, data, headers)
        connection.response_class = answers_until(end)  # type: ignore[assignment]
        with connection.getresponse() as response:
            body = self._body(response)
            found = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            self.close()
        return Page(response.status, body, found)

    def _body(self, response: HTTPResponse) -> bytes:
        pieces = bytearray()
        while piece := response.read(PIECE):
            pieces += piece
            if len(pieces) > self._most_bytes:
                self.close()
                raise SourceProblem(
                    f"{self.where} sends more than {self._most_bytes >> 20} MB: is this the right page?"
                )
        return bytes(pieces)

    def _redirected(self, target: str, page: Page) -> str:
        goal = urlsplit(urljoin(self.where + target, page.headers.get("location", "")))
        if (goal.scheme, goal.hostname, goal.port) != (self._scheme, self._host, self._port):
            raise SourceProblem(
                f"{self.where} sends us on to {goal.scheme}://{goal.hostname}: set that address if it is right"
            )
        return goal.path + (f"?{goal.query}" if goal.query else "")

    # -- connections -------------------------------------------------------------------------------------------------

    def _connected(self, end: float) -> HTTPConnection:
        if self._connection is None:
            self._connection = self._connect(end)
        if self._connection.sock is not None:
            self._connection.sock.settimeout(max(end - monotonic(), 0.01))
        return self._connection

    def _connect(self, end: float) -> HTTPConnection:
        left = max(end - monotonic(), 0.01)
        if self._scheme == "http":
            plain = HTTPConnection(self._host, self._port, timeout=left)
            plain.connect()
            return plain
        if self._scheme != "https":
            raise SourceProblem(f"{self._scheme or 'an address without http://'} is not spoken here: http or https is")
        try:
            return self._secured(left, trusting(self._certificate))
        except ssl.SSLCertVerificationError as problem:
            if problem.verify_code not in OTHER_NAME or self._certificate in ("", "any"):
                raise
            # Management controllers often bear a certificate with another name. This very one is trusted by the user.
            return self._pinned(left)

    def _secured(self, timeout_s: float, context: ssl.SSLContext) -> HTTPSConnection:
        connection = HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

    def _pinned(self, timeout_s: float) -> HTTPSConnection:
        context = trusting(self._certificate)
        context.check_hostname = False
        connection = self._secured(timeout_s, context)
        shown = connection.sock.getpeercert(binary_form=True) if isinstance(connection.sock, ssl.SSLSocket) else None
        if shown is None or shown not in certificates(self._certificate):
            connection.close()
            raise SourceProblem(f"{self.where} shows a certificate with another name than {self._host}")
        return connection

    def _in_words(self, problem: Exception) -> str:
        if isinstance(problem, ssl.SSLCertVerificationError):
            return (
                f"{self.where} shows a certificate that is not trusted: {problem.verify_message}\nset `certificate` "
                "to a file with the right one, or to `any` if nobody else is on this network"
            )
        if isinstance(problem, FileNotFoundError):
            return f"there is no certificate file {self._certificate}"
        if isinstance(problem, TimeoutError):
            return f"{self.where} has not answered within {self._timeout_s:g} s"
        if isinstance(problem, ConnectionRefusedError):
            return f"nobody answers at {self.where}: is it running?"
        if isinstance(problem, socket.gaierror):
            return f"there is no host {self._host}"
        if isinstance(problem, ConnectionError | HTTPException):
            return f"{self.where} broke off the connection or does not speak HTTP ({type(problem).__name__})"
        if isinstance(problem, OSError) and problem.strerror:
            return f"{self.where} cannot be reached: {problem.strerror}"
        return f"{self.where} cannot be asked: {type(problem).__name__}"


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def _refusal(status: int) -> str:
    reasons = {
        401: "wants a user and password, or others than these (401)",
        403: "does not allow it (403)",
        404: "does not exist there (404)",
        429: "is asked too often (429)",
        503: "is busy or out of service (503)",
    }
    return reasons.get(status, f"answered with status {status}")


def _looks(body: bytes) -> str:
    start = body[:200].lstrip().lower()
    return ", but a web page" if start.startswith((b"<!doctype", b"<html")) else ""


def trusting(certificate: str) -> ssl.SSLContext:
    """Empty: what the system trusts; `any`: everybody; else what stands in that file."""
    context = ssl.create_default_context(cafile=certificate if certificate not in ("", "any") else None)
    if certificate == "any":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif certificate:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def certificates(path: str) -> list[bytes]:
    """Those in a file, in their binary form."""
    with open(path, encoding="ascii", errors="replace") as file:
        blocks = file.read().split("-----BEGIN CERTIFICATE-----")[1:]
    found: list[bytes] = []
    for block in blocks:
        with suppress(ValueError):
            text = block.partition("-----END CERTIFICATE-----")[0]
            found.append(ssl.PEM_cert_to_DER_cert(f"-----BEGIN CERTIFICATE-----{text}-----END CERTIFICATE-----"))
    return found
