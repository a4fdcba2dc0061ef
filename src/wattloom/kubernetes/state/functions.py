"""Which function of the engine a pod is a call of, what its owner declares about it, and which ones are still needed.

Owns the name, the declaration and the end. Pods of one function share what was learned of their run times. Most pods of
a controller of their own come once, and a cluster makes such controllers for ever.
"""

import re
from itertools import islice
from typing import Final

from wattloom.kubernetes.model.annotations import FUNCTION, RUNTIME, PodAnnotations, annotations_of
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.node_cache import REFERENCE
from wattloom.scheduling import events as ev
from wattloom.workload.function import Function, Variant

_NUMBERED: Final = re.compile(r"-[0-9]+$")
"""What tells pods apart that somebody made one by one."""
MOST_IDLE: Final = 2_000
"""Functions that are kept although no pod calls them; when there are more, a tenth of them is forgotten at once."""


class Functions:
    """Told of calls by `called` and `left`, and by `asked` of functions that are about to be looked at.

    Where the engine `forgets`, the last functions that nobody calls are kept with what was learned of them, for they
    may come back; older ones are not."""

    def __init__(self, driver: TimedDriver, *, forgets: bool = False) -> None:
        self._driver: Final = driver
        self._forgets: Final = forgets
        self._calls: Final[dict[str, int]] = {}
        self._idle: Final[dict[str, None]] = {}
        """The oldest first."""

    def define(self, function: str, pod: Pod) -> str:
        """The name under which the engine knows it, as the pod declares it."""
        name = shared_name(function, pod)
        known = self._driver.engine.ledger.functions.get(name)
        if RUNTIME in pod.metadata.annotations:
            seconds = _declared_s(pod)
            declared = Function(name, variants=(Variant(seconds={REFERENCE: seconds} if seconds else {}),))
            if declared != known:
                self._driver.tell(ev.FunctionDefined(self._driver.now, declared))
        elif known is None:
            self._driver.tell(ev.FunctionDefined(self._driver.now, Function(name)))
        return name

    def asked(self, function: str) -> None:
        if function not in self._calls:
            self._rest(function)

    def called(self, function: str) -> None:
        self._idle.pop(function, None)
        self._calls[function] = self._calls.get(function, 0) + 1

    def left(self, function: str) -> None:
        self._calls[function] -= 1
        if not self._calls[function]:
            del self._calls[function]
            if self._forgets:
                self._rest(function)

    def _rest(self, function: str) -> None:
        self._idle.pop(function, None)
        self._idle[function] = None
        if len(self._idle) > MOST_IDLE:
            oldest = tuple(islice(self._idle, MOST_IDLE // 10))
            for name in oldest:
                del self._idle[name]
            known = self._driver.engine.ledger.functions
            there = tuple(name for name in oldest if name in known)
            self._driver.tell(ev.FunctionsForgotten(self._driver.now, there))


def shared_name(function: str, pod: Pod) -> str:
    """Pods that nobody controls are one function if only `-NUMBER` at the end tells them apart.

    If they declare how long they run, only with those that declare the same: each declaration of another run time
    would make void what was learned so far."""
    if pod.metadata.owner_references or FUNCTION in pod.metadata.annotations:
        return function
    shared = _NUMBERED.sub("", function)
    seconds = _declared_s(pod) if shared != function else None
    return shared if seconds is None else f"{shared}@{seconds:.12g}s"


def _declared_s(pod: Pod) -> float | None:
    """How long it runs, where its owner says so."""
    annotations = annotations_of(pod) if RUNTIME in pod.metadata.annotations else None
    return annotations.runtime_s if isinstance(annotations, PodAnnotations) else None
