"""What pods load their nodes with, as the extender counts it: those that are there, and those that soon will be.

Owns both. kube-scheduler knows of a pod's place before the API server tells anybody else, so the extender assumes
that the pod goes where it was sent, until the watch says where it is, or for a while. Memory, ports and affinity are
kube-scheduler's business: here a pod is its cores, for as long as it runs.
"""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.kubernetes.extender.functions import Functions
from wattloom.kubernetes.model.annotations import NONE, wishes_of
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.pods import MOST_CPU, ended, function_of
from wattloom.kubernetes.model.requests import asked_by, held_by
from wattloom.kubernetes.model.run_time import ran_s
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.functions import define, shared_name
from wattloom.scheduling import events as ev
from wattloom.units import MILLI
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

LOG: Final = logging.getLogger(__name__)
WAITS: Final = ("", "Pending")
"""Phases of a pod whose containers do not run yet."""


class Load:
    """A pod on a node. Without `task` the node is not known (any more)."""

    __slots__ = ("call", "heard", "node", "running_since", "task", "until", "waited")

    def __init__(self, call: Task, node: str) -> None:
        self.call: Final = call
        """As it asks; the engine gets it under a name of its own."""
        self.node: Final = node
        self.task = ""
        self.until: float | None = None
        """Assumed, and until when; None: seen there."""
        self.heard = 0
        """The last word of the API server when it was assumed."""
        self.waited = False
        """Whether it was known before it ran: else nobody knows since when it does."""
        self.running_since: float | None = None

    def goes_on_as(self, other: "Load") -> None:
        """It is the same pod: what is known of its run stays known."""
        other.waited, other.running_since = self.waited, self.running_since


class Loads:
    """Pods on nodes by uid. `knows` says whether the engine has a node; `freed` is told of nodes that load has left.

    `heard` goes up with every word of the API server about pods. What is assumed does not expire before one has come
    since: that a pod is not seen on its node means nothing while nothing is seen."""

    def __init__(
        self,
        driver: TimedDriver,
        knows: Callable[[str], bool],
        *,
        assume_s: float,
        freed: Callable[[str], None] = lambda node: None,
        heard: Callable[[], int] | None = None,
    ) -> None:
        self.by_uid: dict[str, Load] = {}
        self.elsewhere = 0
        """Pods that went to another node than was assumed."""
        self.expired = 0
        """Pods that went nowhere while that was assumed."""
        self._on_node: dict[str, dict[str, Load]] = {}
        self._assumed: dict[str, Load] = {}
        """In the order in which they expire."""
        self._driver = driver
        self._knows, self._freed, self._heard = knows, freed, heard
        self._functions: Final = Functions(driver)
        self._assume_s = assume_s
        self._serial = 0

    @property
    def assumed(self) -> int:
        return len(self._assumed)

    # -- what the API server tells -----------------------------------------------------------------------------------

    def changed(self, pod: Pod) -> None:
        node, uid = pod.spec.node_name, pod.metadata.uid
        if ended(pod):
            self.deleted(pod)
            return
        if not node:
            return
        load = self.by_uid.get(uid)
        if load is not None and load.node == node and load.until is not None:
            self._seen(uid, load)
        elif load is None or load.node != node or load.call.requirements != _needs(pod, held=True):
            if load is not None and load.until is not None:
                self.elsewhere += 1
            load = self._put(uid, self._call(pod, held=True), node)
        if pod.status.phase in WAITS:
            load.waited = True
        elif pod.status.phase == "Running" and load.waited and load.running_since is None:
            load.running_since = self._driver.now

    def deleted(self, pod: Pod) -> None:
        """Ended, or removed. One that was stopped may end as one that succeeded: it did not run to its end."""
        load = self.by_uid.get(pod.metadata.uid)
        if load is not None:
            since = load.running_since
            seen_s = None if since is None else self._driver.now - since
            succeeded = pod.status.phase == "Succeeded"
            self._drop(pod.metadata.uid, load, succeeded=succeeded, seconds=ran_s(pod, seen_s))

    # -- what is assumed ---------------------------------------------------------------------------------------------

    def call(self, pod: Pod) -> Task:
        """The pod as a task to ask about; nothing is assumed of it any more."""
        load = self.by_uid.get(pod.metadata.uid)
        if load is not None and load.until is not None:
            self._drop(pod.metadata.uid, load)
        return self._call(pod, held=False)

    def assume(self, uid: str, call: Task, node: str) -> None:
        """It will be there in a moment."""
        if uid not in self.by_uid:
            load = self._put(uid, call, node)
            load.waited = True
            load.until = self._driver.now + self._assume_s
            if self._heard is not None:
                load.heard = self._heard()
            self._assumed[uid] = load

    def expire(self) -> None:
        """Give up what was assumed for too long."""
        now = self._driver.now
        for uid, load in tuple(self._assumed.items()):
            if load.until is None or load.until > now or (self._heard is not None and self._heard() == load.heard):
                break
            self.expired += 1
            self._drop(uid, load)

    def _seen(self, uid: str, load: Load) -> None:
        load.until = None
        self._assumed.pop(uid, None)

    # -- nodes come and go -------------------------------------------------------------------------------------------

    def node_here(self, node: str) -> None:
        for load in self._on_node.get(node, {}).values():
            self._tell(load)

    def node_left(self, node: str) -> None:
        """Before the engine loses it."""
        for load in self._on_node.get(node, {}).values():
            self._end(load)

    # -- the engine's side -------------------------------------------------------------------------------------------

    def _put(self, uid: str, call: Task, node: str) -> Load:
        known = self.by_uid.get(uid)
        if known is not None:
            self._drop(uid, known)
        load = self.by_uid[uid] = Load(call, node)
        if known is not None:
            known.goes_on_as(load)
        self._functions.called(call.function)
        self._on_node.setdefault(node, {})[uid] = load
        self._tell(load)
        return load

    def _drop(self, uid: str, load: Load, *, succeeded: bool = False, seconds: float | None = None) -> None:
        del self.by_uid[uid]
        self._assumed.pop(uid, None)
        there = self._on_node[load.node]
        del there[uid]
        if not there:
            del self._on_node[load.node]
        self._end(load, succeeded=succeeded, seconds=seconds)
        self._functions.left(load.call.function)

    def _tell(self, load: Load) -> None:
        if self._knows(load.node):
            self._serial += 1
            task = msgspec.structs.replace(load.call, id=f"{load.call.id}~{self._serial}")
            if self._driver.tell(ev.TaskFound(self._driver.now, task, load.node)):
                load.task = task.id

    def _end(self, load: Load, *, succeeded: bool = False, seconds: float | None = None) -> None:
        if not load.task:
            return
        now = self._driver.now
        if succeeded:
            self._driver.tell(ev.TaskFinished(now, load.task, 1, seconds))
        else:
            self._driver.tell(ev.TaskRemoved(now, load.task, "it left"))
        load.task = ""
        self._freed(load.node)

    def _call(self, pod: Pod, *, held: bool) -> Task:
        function = shared_name(function_of(pod), pod)
        define(self._driver, function, pod)
        self._functions.asked(function)
        told = wishes_of(pod)
        wishes = NONE if isinstance(told, Unsupported) else told
        meta = pod.metadata
        return Task(
            id=f"{meta.namespace}/{meta.name}",
            function=function,
            requirements=_needs(pod, held=held),
            energy_weight=wishes.energy_weight,
        )


def _needs(pod: Pod, *, held: bool) -> Requirements:
    try:
        cpu = min((held_by(pod) if held else asked_by(pod)).cpu, MOST_CPU)
    except InputError:  # no node has as much: kube-scheduler offers none
        cpu = 0
    return Requirements(cpu=cpu / MILLI)
