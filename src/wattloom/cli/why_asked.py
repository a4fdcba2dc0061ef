"""A running scheduler asked why a pod went where it went.

Owns the question, and what is said when nobody answers.
"""

from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import urlopen

import msgspec

from wattloom.errors import InputError, WattloomError
from wattloom.files import UNREADABLE

if TYPE_CHECKING:
    from wattloom.history.why import Why

DEFAULT: Final = "http://127.0.0.1:10262"
PATIENCE_S: Final = 130.0
MOST_BYTES: Final = 64 << 20
FORWARD: Final = "kubectl -n wattloom-system port-forward deploy/wattloom-scheduler 10262"


def is_pod(task: str, log: object, scheduler: str | None) -> bool:
    """Whether a scheduler is meant to know it: NAMESPACE/POD without a log."""
    return scheduler is not None or (log is None and task.count("/") == 1)


def ask_scheduler(pod: str, scheduler: str | None) -> "Why":
    """Every decision on the pod, as the scheduler there tells it."""
    url = (scheduler or DEFAULT).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise InputError("scheduler", f"must be http://HOST:PORT, not {url!r}")
    try:
        with urlopen(f"{url}/why?pod={quote(pod)}", timeout=PATIENCE_S) as answer:
            body = answer.read(MOST_BYTES)
    except HTTPError as refused:
        raise WattloomError(_plain(refused.read().decode(errors="replace"))) from None
    except (URLError, OSError, HTTPException) as problem:
        reason = getattr(problem, "reason", problem)
        raise InputError(
            "scheduler", f"nobody answers at {url} ({reason}): run `{FORWARD}` beside, or give --log FILE"
        ) from None
    except ValueError as problem:
        raise InputError("scheduler", f"{url} is no address: {problem}") from None
    try:
        return _read(body)
    except (*UNREADABLE, LookupError, TypeError, AttributeError) as problem:
        raise WattloomError(f"what answers at {url} is no scheduler of Wattloom's: {problem!r}") from None


def _plain(text: str) -> str:
    """Without what the other side's own words begin with."""
    return text.strip().partition("\n")[0].removeprefix("error: ")


def _read(body: bytes) -> "Why":
    from wattloom.history.explanation import Explanation
    from wattloom.history.waiting import Waiting
    from wattloom.history.why import Told, Why
    from wattloom.scheduling.instructions import Conclude, Place, Wait

    answer: dict[str, Any] = msgspec.json.decode(body)
    recorded = [Told(each.pop("time"), msgspec.convert(each, Place | Wait | Conclude)) for each in answer["recorded"]]
    return Why(
        task=answer["task"],
        explanations=msgspec.convert(answer["decisions"], list[Explanation]),
        same_decisions=answer["same_decisions"],
        recorded=recorded,
        waiting=msgspec.convert(answer["waiting"], Waiting | None),
        found_on=answer.get("found_on", ""),
        aside=answer.get("aside", ""),
        since=answer.get("since", ""),
    )
