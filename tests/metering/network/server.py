"""A small web server whose answers a test decides, with every fault a source over a network can have."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

Fault = Literal["", "hang", "drip", "reset", "html", "garbage", "huge", "503", "401", "elsewhere"]
HTML = b"<!DOCTYPE html><html><body>It works!</body></html>"


class Request:
    """What was asked."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.path, self.headers, self.body = method, path, headers, body


Reply = tuple[int, dict[str, str], bytes]
Answer = Callable[[Request], Reply]


def page(text: str | bytes) -> Reply:
    return 200, {"Content-Type": "text/plain"}, text.encode() if isinstance(text, str) else text


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"Content-Type": "application/json"} | named, json.dumps(value).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    """An answer in one piece: in two, the second waits for the other side's word of the first."""
    server: "_Server"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        self.server.asked.append(request)
        fault = self.server.fault
        if fault in ("hang", "drip", "reset"):
            self._misbehave(fault)
            return
        status, more, text = self.server.faulty(fault) or self.server.answer(request)
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    do_GET = do_POST = do_DELETE = _serve

    def _misbehave(self, fault: Fault) -> None:
        self.close_connection = True
        if fault == "reset":
            self.connection.close()
            return
        if fault == "drip":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.server.ending.wait(0.2):
            if fault == "drip":
                try:
                    self.wfile.write(b"X-Drop: 1\r\n")
                    self.wfile.flush()
                except OSError:
                    return

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer = answer
        self.fault: Fault = ""
        self.asked: list[Request] = []
        self.ending = threading.Event()
        self.open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def leave(self) -> None:
        """As a program that ends: whoever is connected hears of it."""
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def faulty(self, fault: Fault) -> Reply | None:
        replies: dict[Fault, Reply] = {
            "html": (200, {"Content-Type": "text/html"}, HTML),
            "garbage": (200, {}, bytes(range(256)) * 20),
            "503": (503, {}, b"busy"),
            "401": (401, {}, b"who are you?"),
            "elsewhere": (302, {"Location": "http://elsewhere.example/steal"}, b""),
        }
        return (200, {}, b"x" * (17 << 20)) if fault == "huge" else replies.get(fault)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are no errors here."""


class Server:
    """Answers on a free port of this machine until it is closed."""

    def __init__(self, answer: Answer, tls: Path | None = None, port: int = 0) -> None:
        self._server = _Server(answer, port)
        self._tls = tls
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[Request]:
        return self._server.asked

    def fail(self, fault: Fault) -> None:
        self._server.fault = fault

    def close(self) -> None:
        self._server.ending.set()
        self._server.shutdown()
        self._server.leave()
        self._server.server_close()
        self._thread.join(5.0)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether it comes to hold, on a machine that may be busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()
