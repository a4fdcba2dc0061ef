"""What an API server can answer instead of what was asked for.

Owns the errors of this room and the words they are told in. Knows no connection.

ApiError                  any answer that is not the one asked for: `status`, `reason`, `message`, `what`
├── Unreachable           no whole answer came; `sent` says whether the request may have been carried out
├── Unauthorized    401   it does not know us, also after the credentials were read again
├── Forbidden       403   it knows us and does not let us; says which verb on which resource is missing
├── NotFound        404
├── Conflict        409   somebody was faster; `exists` where the name is taken
├── Gone            410   the version asked for is no longer kept: list again
├── Invalid         400, 422 and the other 4xx
├── TooManyRequests 429   still, after its `retry_after_s` was waited for as long as patience allowed
├── ServerFault     5xx   the write may have been carried out or not
└── BadAnswer             an answer that is no HTTP, no JSON or not the object expected
"""

from typing import Final

import msgspec

from wattloom.errors import WattloomError

LONGEST: Final = 1000
"""Letters of an answer that are quoted."""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The object in which an API server says what went wrong."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(WattloomError):
    """An answer that is not the one asked for. `what` is the request, such as `GET /api/v1/pods`."""

    def __init__(self, what: str, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(f"{what}: {message}")
        self.what = what
        self.message = message
        self.status = status
        self.reason = reason


class Unreachable(ApiError):
    """No whole answer came. `sent` is false only where the request surely never reached the server."""

    def __init__(self, what: str, message: str, *, sent: bool) -> None:
        super().__init__(what, message)
        self.sent = sent


class Unauthorized(ApiError):
    """The API server does not know who asks."""


class Forbidden(ApiError):
    """The API server knows who asks, and does not let them."""


class NotFound(ApiError):
    """There is no such object, or no such kind of object."""


class Conflict(ApiError):
    """The object is not what the request took it for."""

    @property
    def exists(self) -> bool:
        return self.reason == "AlreadyExists"


class Gone(ApiError):
    """The version asked for is no longer kept."""


class Invalid(ApiError):
    """The API server does not take what was sent."""


class ServerFault(ApiError):
    """The API server failed. A write may have been carried out or not."""


class TooManyRequests(ApiError):
    """The API server asks for fewer requests."""

    def __init__(self, what: str, message: str, *, status: int = 429, reason: str = "", retry_after_s: float) -> None:
        super().__init__(what, message, status=status, reason=reason)
        self.retry_after_s = retry_after_s


class BadAnswer(ApiError):
    """The answer is no HTTP, no JSON, or not the object that was expected."""


BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
}


def error_of(what: str, status: int, body: bytes, retry_after_s: float | None = None) -> ApiError:
    """The answer as an error of the right kind. `retry_after_s` is what its header said."""
    told = status_in(body)
    if told is None:
        told = Status(message=body[:LONGEST].decode("utf-8", "replace").strip() or f"answered {status}")
    message = _in_words(status, told)
    if retry_after_s is not None and status in (429, 503):
        return TooManyRequests(what, message, status=status, reason=told.reason, retry_after_s=retry_after_s)
    if status == 429:
        seconds = told.details.retry_after_seconds if told.details else 0
        return TooManyRequests(what, message, reason=told.reason, retry_after_s=float(seconds or 1))
    kind = BY_STATUS.get(status) or (ServerFault if status >= 500 else Invalid)
    return kind(what, message, status=status, reason=told.reason)


def status_in(body: bytes | msgspec.Raw) -> Status | None:
    """The status object in an answer, where there is one."""
    try:
        told = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        return None
    return told if told.message or told.reason else None


def _in_words(status: int, told: Status) -> str:
    message = told.message[:LONGEST] or told.reason
    if status == 401:
        return f"the API server does not accept the credentials ({message}): are they of this cluster, and still valid?"
    if status == 403:
        return f"not allowed ({message}): give this verb on this resource to the account, by a Role or ClusterRole"
    return message
