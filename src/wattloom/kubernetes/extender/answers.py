"""What the extender answers to kube-scheduler's two questions, as bytes.

Owns the form of questions and answers, and that everything gets one: what cannot be answered is told in words under
"Error". The choice itself is `choice`'s; what is assumed after it `load`'s.
"""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from wattloom.kubernetes.extender.choice import Choice
from wattloom.kubernetes.extender.load import Loads
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.policies.view import Ask

LOG: Final = logging.getLogger(__name__)
ALL: Final = 1 << 30
"""Keep as many."""
SOFT: Final = (b'"preferredDuringScheduling', b'"ScheduleAnyway"')
"""Found in pods whose owners have wishes that only kube-scheduler's scores can follow."""
NO_NAMES: Final = "NodeNames is missing: set nodeCacheCapable: true for this extender in kube-scheduler's configuration"
TWICE_EVERY_S: Final = 0.2
"""Refusals this long apart are looked at twice."""
UNSYNCED: Final = "asked before the cluster was read: every node passes until then"


class ExtenderArgs(msgspec.Struct, frozen=True, gc=False):
    """kube-scheduler's ExtenderArgs."""

    pod: Pod = msgspec.field(name="Pod")
    names: msgspec.Raw = msgspec.field(name="NodeNames", default=msgspec.Raw(b"null"))


class Unanswerable(Exception):
    """The question makes no sense; says why."""


class Answers:
    """`filter` and `prioritize` take a body and give one. `synced` says whether the cluster was read.

    `keep` nodes pass the filter, of a pod with soft wishes all that watts allow. None, instead of a refusal: ask once
    more in a moment. kube-scheduler may have seen a pod leave before we did, and asks because of that: refused now, its
    pod would wait for minutes."""

    def __init__(
        self,
        driver: TimedDriver,
        choice: Choice,
        loads: Loads,
        *,
        keep: int,
        synced: Callable[[], bool],
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        """Calls by verb and what was answered: chosen, refused, passed (not read yet), error."""
        self._choice = choice
        self._loads = loads
        self._keep = keep
        self._synced, self._refused = synced, refused
        self._said_unsynced = False
        self._driver = driver
        self._twice_at = -TWICE_EVERY_S
        self._read: Final = msgspec.json.Decoder(ExtenderArgs)

    # -- filter ------------------------------------------------------------------------------------------------------

    def filter(self, body: bytes, last: bool = False) -> bytes | None:
        try:
            return self._filter(body, last)
        except Exception as error:
            self._count("filter", "error")
            return msgspec.json.encode({"NodeNames": None, "FailedNodes": {}, "Error": _in_words(error)})

    def _filter(self, body: bytes, last: bool) -> bytes | None:
        args = self._asked(body)
        if not self._ready():
            self._count("filter", "passed")
            return _passing(bytes(args.names))
        task = self._loads.call(args.pod)
        ask = self._choice.ask(task)
        names = _names(args)
        offer = self._choice.offer(names)
        keep = ALL if SOFT[0] in body or SOFT[1] in body else self._keep
        found = self._choice.best(ask, offer, 1 if keep == ALL else keep)
        if not found:
            if not last and self._look_twice():
                return None
            self._count("filter", "refused")
            self._refused()
            return _refusing(self._choice.refused(ask, names))
        self._count("filter", "chosen")
        if keep == ALL:
            return self._all(args.pod, ask, names)
        if len(found) == 1:
            self._assume(args.pod, found[0])
        return _passing(_listed(found))

    def _look_twice(self) -> bool:
        now = self._driver.now
        if now - self._twice_at < TWICE_EVERY_S:
            return False
        self._twice_at = now
        return True

    def _all(self, pod: Pod, ask: Ask, names: list[str]) -> bytes:
        refused = self._choice.refused(ask, names)
        passed = [name for name in names if name not in refused] if refused else names
        if len(passed) == 1:  # kube-scheduler has nothing left to score, and will not ask
            self._assume(pod, passed[0])
        return msgspec.json.encode({"NodeNames": passed, "FailedNodes": refused, "Error": ""})

    # -- prioritize --------------------------------------------------------------------------------------------------

    def prioritize(self, body: bytes, last: bool = False) -> bytes | None:
        """There is no place for an error in this answer: kube-scheduler takes what is no list for one."""
        try:
            return self._prioritize(body)
        except Exception as error:
            self._count("prioritize", "error")
            return msgspec.json.encode({"Error": _in_words(error)})

    def _prioritize(self, body: bytes) -> bytes:
        args = self._asked(body)
        names = _names(args)
        if not self._ready():
            self._count("prioritize", "passed")
            return _scored(names, [0] * len(names))
        task = self._loads.call(args.pod)
        found = self._choice.scored(self._choice.ask(task), names)
        self._count("prioritize", "chosen")
        if names:
            self._assume(args.pod, names[found.index(max(found))])
        return _scored(names, found)

    # -- both --------------------------------------------------------------------------------------------------------

    def _asked(self, body: bytes) -> ExtenderArgs:
        args = self._read.decode(body)
        if not args.pod.metadata.uid:
            raise Unanswerable("Pod.metadata.uid is missing: this is no pod of an API server")
        if bytes(args.names) == b"null":
            raise Unanswerable(NO_NAMES)
        return args

    def _ready(self) -> bool:
        if self._synced():
            return True
        if not self._said_unsynced:
            self._said_unsynced = True
            LOG.warning(UNSYNCED)
        return False

    def _assume(self, pod: Pod, node: str) -> None:
        self._loads.assume(pod, node)
        self._choice.taken(node)

    def _count(self, verb: str, result: str) -> None:
        key = verb, result
        self.counts[key] = self.counts.get(key, 0) + 1


def _names(args: ExtenderArgs) -> list[str]:
    return msgspec.json.decode(args.names, type=list[str])


def _listed(names: list[str]) -> bytes:
    return msgspec.json.encode(names)


def _passing(names: bytes) -> bytes:
    return b'{"NodeNames":%b,"FailedNodes":{},"Error":""}' % names


def _refusing(why: dict[str, str]) -> bytes:
    return b'{"NodeNames":[],"FailedNodes":%b,"Error":""}' % msgspec.json.encode(why)


def _scored(names: list[str], found: list[int]) -> bytes:
    parts = [b'{"Host":%b,"Score":%d}' % (msgspec.json.encode(n), score) for n, score in zip(names, found, strict=True)]
    return b"[%b]" % b",".join(parts)


def _in_words(error: Exception) -> str:
    if isinstance(error, msgspec.MsgspecError):
        return f"wattloom: the question cannot be read: {error}"
    if isinstance(error, Unanswerable):
        return f"wattloom: {error}"
    LOG.error("a question could not be answered", exc_info=error)
    return f"wattloom: {type(error).__name__}: {error}"
