"""A plain client of an API server for tests: blocking, connections kept for the next request, JSON in and out.

On purpose not the product's client: what tests make and look at must not lean on what they test.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from tests.beds.kubernetes.certificates import Certificate

from wattloom.errors import WattloomError

Answer = TypeVar("Answer")
MERGE: Final = "application/merge-patch+json"
THREADS: Final = 8
PAGE: Final = 500
FRESH_S: Final = 2.0
"""So long a connection may wait for its next use."""
_encoder: Final = msgspec.json.Encoder()


class ApiRefused(WattloomError):
    """The API server said no. `status` is HTTP's, `reason` Kubernetes' word for it (NotFound, Forbidden, ...)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class Access(NamedTuple):
    """Where an API server is, whose word proves it is the right one, and who asks (a certificate or a token)."""

    host: str
    port: int
    authority: Path
    certificate: Certificate | None = None
    token: str | None = None


class Api:
    """Requests to one API server as one user. Safe to be used by several threads."""

    def __init__(self, access: Access, *, timeout_s: float = 30.0) -> None:
        self.access = access
        self._timeout_s = timeout_s
        self._context = ssl.create_default_context(cafile=str(access.authority))
        if access.certificate is not None:
            self._context.load_cert_chain(access.certificate.certificate, access.certificate.key)
        self._idle: list[tuple[float, HTTPSConnection]] = []

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE) -> Any:
        return self.request("PATCH", path, body, kind)

    def delete(self, path: str, **options: Any) -> Any:
        """Options are those of Kubernetes: gracePeriodSeconds=0, propagationPolicy="Background"."""
        return self.request("DELETE", path, options or None)

    def items(self, path: str, page: int = PAGE) -> list[Any]:
        """All objects of a list, page by page."""
        found: list[Any] = []
        more = ""
        while True:
            joint = "&" if "?" in path else "?"
            answer = self.get(f"{path}{joint}limit={page}{more}")
            found += answer.get("items") or []
            if not (token := answer["metadata"].get("continue")):
                return found
            more = f"&continue={token}"

    def post_many(self, bodies: Iterable[tuple[str, Any]], threads: int = THREADS) -> list[Any]:
        """Post each body to its path, several at a time; answers in the same order."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda pair: self.post(*pair), bodies))

    def text(self, path: str) -> str:
        """An answer that is no JSON, such as /metrics."""
        status, body = self._exchange("GET", path, None, "")
        if status >= 400:
            raise _refusal(status, body)
        return body.decode()

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        content = None if body is None else _encoder.encode(body)
        status, answer = self._exchange(method, path, content, kind)
        if status >= 400:
            raise _refusal(status, answer)
        return msgspec.json.decode(answer) if answer else None

    def ready(self) -> bool:
        """Whether the API server says it is ready. A server that does not answer is not."""
        try:
            return self._exchange("GET", "/readyz", None, "")[0] == 200
        except (OSError, HTTPException):
            return False

    def close(self) -> None:
        """Close the connections that nobody uses at this moment."""
        with suppress(IndexError):  # another thread may take the last one
            while True:
                self._idle.pop()[1].close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def _exchange(self, method: str, path: str, content: bytes | None, kind: str) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "User-Agent": "wattloom-test-bed"}
        if content is not None:
            headers["Content-Type"] = kind
        if self.access.token is not None:
            headers["Authorization"] = f"Bearer {self.access.token}"
        kept = self._kept()
        try:
            return self._send(kept or self._fresh(), method, path, content, headers)
        except (OSError, HTTPException):
            # After a restart of the server all kept connections are dead. Only reading may be repeated.
            self.close()
            if kept is None or method != "GET":
                raise
            return self._send(self._fresh(), method, path, content, headers)

    def _send(
        self, connection: HTTPSConnection, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append((monotonic(), connection))
        return answer

    def _kept(self) -> HTTPSConnection | None:
        """One that was used a moment ago: those that have waited may have been closed by the server."""
        while True:
            # One step for the interpreter, so two threads never get the same one.
            try:
                used, connection = self._idle.pop()
            except IndexError:
                return None
            if monotonic() - used < FRESH_S:
                return connection
            connection.close()

    def _fresh(self) -> HTTPSConnection:
        access = self.access
        return HTTPSConnection(access.host, access.port, context=self._context, timeout=self._timeout_s)


def eventually(look: Callable[[], Answer], seconds: float = 30.0, every_s: float = 0.05) -> Answer:
    """What `look` returns as soon as it is true. AssertionError, with the last answer, if it never is in that time.

    A server that cannot be reached or refuses is asked again: what is waited for may be its return.
    """
    end = monotonic() + seconds
    while True:
        last: Any
        try:
            if last := look():
                return last
        except (OSError, HTTPException, ApiRefused) as error:
            last = error
        if monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s; the last answer was {last!r}")
        sleep(every_s)


def _refusal(status: int, body: bytes) -> ApiRefused:
    try:
        told = msgspec.json.decode(body)
        return ApiRefused(status, told.get("reason", ""), told.get("message", ""))
    except (msgspec.DecodeError, AttributeError):
        return ApiRefused(status, "", body.decode(errors="replace")[:500])


def names(objects: Iterable[Any]) -> Iterator[str]:
    """The names of objects."""
    return (each["metadata"]["name"] for each in objects)
