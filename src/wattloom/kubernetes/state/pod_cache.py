"""The cluster's pods, as the engine is told of them.

Owns which pod is which task of the engine, and each step of a pod's life as an event: pods of ours that wait go to
the scheduling queue, pods on nodes are found there, whoever placed them, and all are ended when they end. Pods of other
schedulers that wait are known, no more. What a pod is to the engine, and which ones are ours, is said by whoever has
the cache. Binds nothing.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from wattloom.kubernetes.model.annotations import RUNTIME
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.pods import ended, gates
from wattloom.kubernetes.model.run_time import ran_s
from wattloom.kubernetes.model.templates import depends_on_world, looks_at_namespaces
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.functions import Functions
from wattloom.kubernetes.state.pod_entry import At, PodEntry
from wattloom.scheduling import events as ev
from wattloom.workload.function import Function
from wattloom.workload.task import Task

DELETED: Final = "it was deleted"
NOT_YET: Final = ("", "Pending")
"""Phases of a pod that does not run yet."""


class PodForm(Protocol):
    """What the engine is told of a pod (`model.templates`: all of it)."""

    def waiting(self, pod: Pod, /) -> Task | Unsupported:
        """Without a node, as a task to be placed."""
        ...

    def found(self, pod: Pod, /) -> Task:
        """On a node, whoever put it there."""
        ...


class PodCache:
    """`ready` is told of pods that are `ours` and may be scheduled, `not_followed` of those whose wishes we cannot
    follow; `settled` of nodes that a pod has left, or to which a binding is known now."""

    def __init__(
        self,
        driver: TimedDriver,
        form: PodForm,
        *,
        node_counts: Callable[[str], bool],
        settled: Callable[[str], None],
        ours: Callable[[Pod], bool] = lambda pod: False,
        ready: Callable[[PodEntry], None] = lambda entry: None,
        not_followed: Callable[[PodEntry, Unsupported], None] = lambda entry, wrong: None,
        functions: Functions | None = None,
    ) -> None:
        self.by_uid: dict[str, PodEntry] = {}
        self.by_task: dict[str, PodEntry] = {}
        """Those that the engine has."""
        self.on_node: dict[str, set[PodEntry]] = {}
        """By node: pods there and on their way there."""
        self._driver = driver
        self._form = form
        self._functions = functions or Functions(driver)
        self._node_counts, self._settled = node_counts, settled
        self._ours, self._ready, self._not_followed = ours, ready, not_followed
        self._sensitive: set[PodEntry] = set()
        self._queued: dict[str, PodEntry] = {}
        """By task: all that have no place, and some that have got one since."""

    # -- what the API server tells -----------------------------------------------------------------------------------

    def changed(self, pod: Pod) -> None:
        entry = self.by_uid.get(pod.metadata.uid)
        bound_for = entry.node if entry is not None and entry.at is At.BINDING else ""
        if ended(pod):
            self.deleted(pod)
        elif pod.spec.node_name:
            self._seen_on_node(pod, entry)
        elif self._ours(pod):
            self._seen_waiting(pod, entry)
        elif entry is None:
            self.by_uid[pod.metadata.uid] = PodEntry.of_others(pod)
        if bound_for:
            self._settled(bound_for)

    def deleted(self, pod: Pod) -> None:
        """Ended, or removed. One that was stopped may end as one that succeeded: it did not run to its end."""
        entry = self.by_uid.pop(pod.metadata.uid, None)
        if entry is not None:
            since = entry.running_since
            seen_s = None if since is None else self._driver.now - since
            node = self._end(entry, pod.status.phase, ran_s(pod, seen_s))
            self._sensitive.discard(entry)
            entry.pod = None
            if node:
                self._settled(node)

    def busy(self, node: str) -> bool:
        """Whether pods are on their way there."""
        return any(entry.at is At.BINDING for entry in self.on_node.get(node, ()))

    def world_changed(self) -> None:
        """Namespaces or storage: whoever depends on them is read again."""
        for entry in tuple(self._sensitive):
            if entry.pod is not None:
                self.changed(entry.pod)

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _seen_waiting(self, pod: Pod, entry: PodEntry | None) -> None:
        if entry is None:
            entry = self.by_uid[pod.metadata.uid] = PodEntry(pod)
        if entry.at > At.BINDING:  # an older state than what is known: a node is never taken from a pod
            return
        entry.pod, entry.waited = pod, True
        if gates(pod) or pod.metadata.deletion_timestamp is not None:
            self._withdraw(entry, deleted=pod.metadata.deletion_timestamp is not None)
        elif entry.at is At.ASIDE:
            entry.priority = pod.spec.priority or 0
            self._ready(entry)
        elif entry.at is At.QUEUED and self._differs(entry, pod):
            self._withdraw(entry)
            self._ready(entry)

    def _differs(self, entry: PodEntry, pod: Pod) -> bool:
        task = self._form.waiting(pod)
        known = entry.task
        if isinstance(task, Unsupported) or known is None or _runtime(pod) != entry.runtime:
            return True
        return task.requirements != known.requirements or _wishes(task) != _wishes(known)

    def _withdraw(self, entry: PodEntry, *, deleted: bool = False) -> None:
        if entry.at is At.QUEUED:
            name, now = self._name(entry), self._driver.now
            self._tell(ev.TaskRemoved(now, name, DELETED) if deleted else ev.CancelRequested(now, name))
            self._forget(entry)
        elif entry.at is At.BINDING:
            entry.unwanted = deleted

    def submit(self, entry: PodEntry) -> bool:
        """Tell the engine of a pod that waits. False if there is none to tell of, or it cannot be followed."""
        pod = entry.pod
        if pod is None or entry.at is not At.ASIDE or self.by_uid.get(entry.reference.uid) is not entry:
            return False
        if gates(pod) or pod.metadata.deletion_timestamp is not None:
            return False
        task = self._form.waiting(pod)
        if isinstance(task, Unsupported):
            self._sensitive.add(entry)
            self._not_followed(entry, task)
            return False
        if depends_on_world(pod):
            self._sensitive.add(entry)
        task = self._as_told(entry, task, pod)
        entry.at = At.QUEUED
        self.by_task[task.id] = self._queued[task.id] = entry
        if not self._tell(ev.TaskSubmitted(self._driver.now, task)):
            self._forget(entry)
            return False
        return True

    def waiting(self) -> list[PodEntry]:
        """Pods of ours that the engine does not know, in the order in which they should go."""
        return sorted((entry for entry in self.by_uid.values() if entry.at is At.ASIDE), key=lambda each: each.order)

    def without_place(self) -> dict[str, PodEntry]:
        """Pods that the engine has and has no place for, by task."""
        there = self.by_task
        self._queued = {
            name: entry for name, entry in self._queued.items() if entry.at is At.QUEUED and there.get(name) is entry
        }
        return self._queued

    # -- on a node ---------------------------------------------------------------------------------------------------

    def _seen_on_node(self, pod: Pod, entry: PodEntry | None) -> None:
        node = pod.spec.node_name
        if entry is None:
            entry = self.by_uid[pod.metadata.uid] = PodEntry(pod)
        if entry.at is At.BINDING and entry.node == node:
            self._tell(ev.TaskStarted(self._driver.now, self._name(entry), entry.attempt))
            self._settle(entry, pod)
        elif entry.at is At.ON_NODE and entry.node == node:
            if self._holds_other(entry, pod):
                self._renew(entry, pod)
                self._settled(node)
        else:
            if entry.at is At.ON_NODE:  # somebody assumed so, and was wrong
                self._settled(self._end(entry, ""))
            self._find(entry, pod)
        self._look(entry, pod)
        self._clock(entry, pod)

    def _find(self, entry: PodEntry, pod: Pod) -> None:
        """It is there by somebody else's doing, or of an earlier life of ours."""
        node = pod.spec.node_name
        if not self._node_counts(node):
            if entry.at is not At.STRANDED:
                self._end(entry, "")
            entry.at, entry.pod = At.STRANDED, pod
            self._move(entry, node)
            return
        if entry.at not in (At.QUEUED, At.BINDING):
            self._as_told(entry, self._form.found(pod), pod)
        self._put_there(entry, node)
        self._settle(entry, pod)

    def _renew(self, entry: PodEntry, pod: Pod) -> None:
        """The same pod has other needs: it takes its part anew where it is."""
        known = entry.task
        assert known is not None
        found = self._form.found(pod)
        entry.task = msgspec.structs.replace(found, id=known.id, function=known.function)
        self._settle(entry, pod)
        self._tell(ev.TaskChanged(self._driver.now, entry.task))

    def _put_there(self, entry: PodEntry, node: str) -> None:
        task = entry.task
        assert task is not None
        if task.function not in self._driver.engine.ledger.functions:  # nobody called it when the log began
            self._tell(ev.FunctionDefined(self._driver.now, Function(task.function)))
        self._move(entry, node)
        self.by_task[task.id] = entry
        entry.leaving = False
        if self._tell(ev.TaskFound(self._driver.now, task, node)):
            entry.attempt = self._driver.engine.ledger.tasks[task.id].attempt

    def _settle(self, entry: PodEntry, pod: Pod) -> None:
        entry.at = At.ON_NODE
        if looks_at_namespaces(pod.spec.affinity):
            entry.pod = pod
            self._sensitive.add(entry)
        else:
            entry.pod = None
            self._sensitive.discard(entry)

    def _look(self, entry: PodEntry, pod: Pod) -> None:
        if entry.at is At.ON_NODE and pod.metadata.deletion_timestamp is not None and not entry.leaving:
            self._leave(entry)

    def _leave(self, entry: PodEntry) -> None:
        entry.leaving = True
        self._tell(ev.TaskLeaving(self._driver.now, self._name(entry)))

    def _clock(self, entry: PodEntry, pod: Pod) -> None:
        """Since when it runs, if its beginning was seen."""
        if pod.status.phase in NOT_YET:
            entry.waited = True
        elif pod.status.phase == "Running" and entry.waited and entry.running_since is None:
            entry.running_since = self._driver.now

    def _holds_other(self, entry: PodEntry, pod: Pod) -> bool:
        """Whether it was resized in place, or whom it keeps away or is kept away from is different now."""
        known, now = entry.task, self._form.found(pod)
        if known is None or known.requirements is now.requirements:
            return False
        return _weight(known) != _weight(now)

    # -- nodes come and go -------------------------------------------------------------------------------------------

    def node_here(self, node: str) -> None:
        """Pods that were there before it was known count from now on."""
        for entry in tuple(self.on_node.get(node, ())):
            if entry.at is not At.STRANDED:
                continue
            if entry.pod is not None:
                pod = entry.pod
                self._find(entry, pod)
                self._look(entry, pod)
            elif entry.parked is not None:
                base, leaving = entry.parked.id.partition("~")[0], entry.leaving
                entry.task = msgspec.structs.replace(entry.parked, id=f"{base}~{entry.generation}")
                entry.at, entry.parked = At.ON_NODE, None
                self._functions.called(entry.task.function)
                self._put_there(entry, node)
                if leaving:
                    self._leave(entry)

    def node_left(self, node: str) -> None:
        """Pods there no longer count, for as long as they are not deleted too.

        Nothing is told: the engine loses them with the node. Told one by one they would make room for others there."""
        for entry in tuple(self.on_node.get(node, ())):
            if entry.at is At.ON_NODE:
                entry.parked, leaving = entry.task, entry.leaving
                self._forget(entry)
                entry.at, entry.leaving = At.STRANDED, leaving
                self._move(entry, node)

    # -- the engine's side -------------------------------------------------------------------------------------------

    def placed(self, entry: PodEntry, node: str, attempt: int) -> None:
        entry.at = At.BINDING
        entry.attempt = attempt
        entry.told = entry.condition = ""
        self._move(entry, node)

    def not_bound(self, entry: PodEntry, message: str) -> None:
        """The engine is to find another place, unless nobody wants one any more."""
        if entry.at is not At.BINDING:
            return
        name, node = self._name(entry), entry.node
        if entry.unwanted:
            self._end(entry, "")
        else:
            entry.at = At.QUEUED
            self._queued[name] = entry
            self._move(entry, "")
            failed = ev.InstructionFailed(self._driver.now, "place", name, entry.attempt, message=message)
            if not self._tell(failed):  # the engine has no such task any more: it gets another
                self._forget(entry)
        self._settled(node)
        if entry.pod is not None and not entry.unwanted:  # it may have changed meanwhile
            self._seen_waiting(entry.pod, entry)

    def _end(self, entry: PodEntry, phase: str, seconds: float | None = None) -> str:
        """The node it was on, if any."""
        now, node = self._driver.now, entry.node
        on_node = entry.at in (At.BINDING, At.ON_NODE)
        if on_node and phase == "Succeeded":
            self._tell(ev.TaskFinished(now, self._name(entry), entry.attempt, seconds))
        elif on_node and phase == "Failed":
            self._tell(ev.TaskFailed(now, self._name(entry), entry.attempt, "function", "it failed"))
        elif on_node or entry.at is At.QUEUED:
            self._tell(ev.TaskRemoved(now, self._name(entry), DELETED))
        self._forget(entry)
        return node

    def _forget(self, entry: PodEntry) -> None:
        """The engine does not have it any more; under this name it never will."""
        self._move(entry, "")
        if entry.task is not None:
            self.by_task.pop(entry.task.id, None)
            self._functions.left(entry.task.function)
            entry.task = None
            entry.generation += 1
        entry.at = At.ASIDE
        entry.leaving = False
        entry.attempt = 0

    def _move(self, entry: PodEntry, node: str) -> None:
        if entry.node:
            there = self.on_node[entry.node]
            there.discard(entry)
            if not there:
                del self.on_node[entry.node]
        entry.node = node
        if node:
            self.on_node.setdefault(node, set()).add(entry)

    def _as_told(self, entry: PodEntry, task: Task, pod: Pod) -> Task:
        """Under a name that was never told, calling a function that is defined."""
        function = self._functions.define(task.function, pod)
        name = task.id if entry.generation == 1 else f"{task.id}~{entry.generation}"
        if name != task.id or function != task.function:
            task = msgspec.structs.replace(task, id=name, function=function)
        entry.task, entry.runtime = task, _runtime(pod)
        self._functions.called(function)
        return task

    def _name(self, entry: PodEntry) -> str:
        assert entry.task is not None
        return entry.task.id

    def _tell(self, event: ev.AnyEvent) -> bool:
        return self._driver.tell(event)


def _wishes(task: Task) -> tuple[object, ...]:
    """What its owner wants of us."""
    return task.energy_weight, task.deadline_s, task.defer_s


def _runtime(pod: Pod) -> str:
    return pod.metadata.annotations.get(RUNTIME, "")


def _weight(task: Task) -> tuple[object, ...]:
    """What of a task on a node matters to others."""
    needs = task.requirements
    assert needs is not None
    return (
        needs.cpu,
        needs.memory,
        needs.resources,
        needs.task_labels,
        needs.constraints.anti_affinity if needs.constraints is not None else (),
    )
