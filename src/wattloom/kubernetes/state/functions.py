"""Which function of the engine a pod is a call of, and what its owner declares about it.

Owns the name and the declaration. Pods of one function share what was learned of their run times.
"""

import re
from typing import Final

from wattloom.kubernetes.model.annotations import RUNTIME, PodAnnotations, wishes_of
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.node_cache import REFERENCE
from wattloom.scheduling import events as ev
from wattloom.workload.function import Function, Variant

_NUMBERED: Final = re.compile(r"-[0-9]+$")
"""What tells pods apart that somebody made one by one."""


def shared_name(function: str, pod: Pod) -> str:
    """Pods that nobody controls are one function if only `-NUMBER` at the end tells them apart.

    If they declare how long they run, only with those that declare the same: each declaration of another run time
    would make void what was learned so far."""
    if pod.metadata.owner_references:
        return function
    shared = _NUMBERED.sub("", function)
    seconds = _declared_s(pod) if shared != function else None
    return shared if seconds is None else f"{shared}@{seconds:.12g}s"


def define(driver: TimedDriver, name: str, pod: Pod) -> None:
    """Tell the engine of the function, if it does not know it as the pod declares it."""
    known = driver.engine.ledger.functions.get(name)
    if RUNTIME in pod.metadata.annotations:
        seconds = _declared_s(pod)
        declared = Function(name, variants=(Variant(seconds={REFERENCE: seconds} if seconds else {}),))
        if declared != known:
            driver.tell(ev.FunctionDefined(driver.now, declared))
    elif known is None:
        driver.tell(ev.FunctionDefined(driver.now, Function(name)))


def _declared_s(pod: Pod) -> float | None:
    """How long it runs, where its owner says so."""
    wishes = wishes_of(pod) if RUNTIME in pod.metadata.annotations else None
    return wishes.runtime_s if isinstance(wishes, PodAnnotations) else None
