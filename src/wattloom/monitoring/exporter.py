"""The exporter: an HTTP server that shows the latest snapshot to Prometheus.

Owns the server, its pages (`/metrics`, `/healthz`, and `/` which names them) and how long a caller may keep it
waiting. Works out nothing. Who may ask is `address`'s rule.
"""

import socket
import ssl
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from socketserver import TCPServer
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from wattloom.errors import InputError
from wattloom.monitoring.address import Access, Address, check_access
from wattloom.monitoring.exposition import registry_of, text_of
from wattloom.monitoring.prominence import Detail, Prominence, Prominent
from wattloom.monitoring.snapshot import Snapshot
from wattloom.monitoring.watch import Watch
from wattloom.monitoring.watching import INTERVAL_S, Watcher

PATIENCE_S: Final = 10.0
"""For a whole request, and for the caller to take the answer: one that is slower is left."""
MOST_HEAD: Final = 16_384
"""Bytes of a request."""
LEAVING_S: Final = 1.0
"""Who was told to leave has done so by then, unless the machine is very busy."""
MOST_CALLERS: Final = 32
LATE: Final = 10.0
"""Intervals without a look after which something is wrong."""
PAGE: Final = b"<title>wattloom</title><p>wattloom exporter: <a href=metrics>metrics</a>, <a href=healthz>health</a>"
TEXT: Final = "text/plain; charset=utf-8"


class Exporter:
    """Looks about once a second and answers. `start`, then `stop`; or `with`."""

    def __init__(
        self,
        watch: Watch,
        address: Address,
        *,
        access: Access | None = None,
        insecure: bool = False,
        detail: Detail | None = None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._access: Final = access or Access()
        check_access(address, self._access, insecure=insecure)
        self._interval_s: Final = interval_s
        self._prominence: Final = Prominence(detail or Detail())
        self._server: Final = _listening(address, self._access, self)
        self._watcher: Final = Watcher(watch, interval_s, self._take)
        self._latest = self._watcher.latest, self._prominence.update(self._watcher.latest)
        self._registry: Final = registry_of(self.latest)
        self._thread: Final = Thread(target=self._server.serve_forever, name="wattloom-exporter", daemon=True)

    @property
    def address(self) -> Address:
        """With the port that was found, where any would do."""
        host, port = self._server.server_address[:2]
        return Address(str(host), int(port))

    def latest(self) -> tuple[Snapshot, Prominent]:
        return self._latest

    def start(self) -> None:
        self._watcher.start()
        self._thread.start()

    def stop(self) -> None:
        """No more answers; those under way are given."""
        if self._thread.is_alive():  # a server that never served would be waited for without end
            self._server.shutdown()
        self._server.server_close()
        self._watcher.stop()

    def __enter__(self) -> "Exporter":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def failure(self) -> str:
        """Why this exporter is not well. Empty: it is."""
        if self._watcher.failure is not None:
            return f"looking has ended: {type(self._watcher.failure).__name__}: {self._watcher.failure}"
        late_s = monotonic() - self._latest[0].time
        return f"the last look was {late_s:.0f} s ago" if late_s > LATE * max(self._interval_s, 1.0) else ""

    def _take(self, shown: Snapshot) -> None:
        self._latest = shown, self._prominence.update(shown)

    def answer(self, path: str, authorization: str | None, accept: str) -> tuple[int, str, bytes]:
        """Status, type and body."""
        admitted, failure = self._access.admits(authorization), self.failure
        if path == "/healthz":  # whether it is well, everybody may know; why not, may hold more
            return (503, TEXT, failure.encode() if admitted else b"not well\n") if failure else (200, TEXT, b"ok\n")
        if not admitted:
            return 401, TEXT, b"a token is needed: Authorization: Bearer TOKEN\n"
        if path == "/metrics":
            body, kind = text_of(self._registry, accept)
            return 200, kind, body
        return (200, "text/html; charset=utf-8", PAGE) if path == "/" else (404, TEXT, b"there is /metrics\n")


class _HeadTooLong(Exception):
    """More was sent than a request can have."""


class _Received(RawIOBase):
    """What a caller sends: so many bytes, and for so long, until `begin` is called for the next request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until, self._left = 0.0, 0

    def begin(self) -> None:
        self._until, self._left = monotonic() + PATIENCE_S, MOST_HEAD

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise _HeadTooLong
        if (left_s := self._until - monotonic()) <= 0.0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        size = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= size
        return size


class _Handler(BaseHTTPRequestHandler):
    server_version = "wattloom"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # so that also what is no HTTP is answered with a status
    server: "_Server"

    def setup(self) -> None:
        super().setup()
        self._received = _Received(self.connection)
        self.rfile = BufferedReader(self._received)
        self.connection.settimeout(PATIENCE_S)
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.do_handshake()

    def handle_one_request(self) -> None:
        self._received.begin()
        try:
            super().handle_one_request()
        except _HeadTooLong:
            self.request_version, self.requestline, self.command = self.protocol_version, "", ""
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def do_GET(self) -> None:
        self._reply(with_body=True)

    def do_HEAD(self) -> None:
        self._reply(with_body=False)

    def _reply(self, with_body: bool) -> None:
        try:
            path = urlsplit(self.path).path
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # nobody reads it, and it is no request of its own
        self.server.waits_for(self.connection, False)
        status, kind, body = self.server.exporter.answer(
            path, self.headers.get("Authorization"), self.headers.get("Accept", "")
        )
        self.server.waits_for(self.connection, True)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.connection.settimeout(PATIENCE_S)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape every few seconds is not worth a line each."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 32
    exporter: Exporter

    def __init__(self, address: tuple[str, int]) -> None:
        self._places: Final = BoundedSemaphore(MOST_CALLERS)
        self._slow: Final[dict[socket.socket, None]] = {}
        """Whoever keeps us waiting, for a request or to take the answer; the longest first."""
        self._changing: Final = Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Without asking a name server what we are called, which nobody wants to know and which may take long."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread for each caller. Where all places are taken, the slowest leaves for whoever comes: so a probe,
        which asks at once, always gets in."""
        if self._places.acquire(blocking=False) or (self._send_one_away() and self._places.acquire(timeout=LEAVING_S)):
            self.waits_for(request, True)
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def waits_for(self, caller: socket.socket, now: bool) -> None:
        """Whether it is the caller's turn to go on."""
        with self._changing:
            self._slow.pop(caller, None)
            if now:
                self._slow[caller] = None

    def _send_one_away(self) -> bool:
        with self._changing:
            slowest = next(iter(self._slow), None)
            if slowest is None:
                return False
            del self._slow[slowest]
            with suppress(OSError):
                socket.socket.shutdown(slowest, socket.SHUT_RDWR)
        return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.waits_for(request, False)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hung up or does not speak TLS is its own trouble."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _listening(address: Address, access: Access, exporter: Exporter) -> _Server:
    encryption = access.encryption()
    try:
        server = (_Server6 if ":" in address.host else _Server)((address.host, address.port))
    except OSError as problem:
        raise InputError("listen", f"cannot listen at {address}: {problem.strerror or problem}") from problem
    server.exporter = exporter
    if encryption is not None:
        # Hands are shaken by the caller's own thread: a slow one keeps nobody else waiting.
        server.socket = encryption.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server
