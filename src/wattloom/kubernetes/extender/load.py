"""What pods load their nodes with, as the extender counts it: those that are there, and those that soon will be.

Owns what is assumed: kube-scheduler knows of a pod's place before the API server tells anybody else, so the pod counts
where it was sent, until the watch says where it is, or for a while. And the form of a pod here: memory, ports and
affinity are kube-scheduler's business, so it is its cores, for as long as it runs. The pods are `state.pod_cache`'s.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from wattloom.errors import InputError
from wattloom.kubernetes.model.annotations import NONE, annotations_of
from wattloom.kubernetes.model.objects import Pod
from wattloom.kubernetes.model.pods import MOST_CPU, function_of
from wattloom.kubernetes.model.requests import held_by
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.kubernetes.state.functions import Functions
from wattloom.kubernetes.state.pod_cache import PodCache
from wattloom.units import MILLI
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task

MOST_ENDED: Final = 1_000
"""Names of tasks that ended: here none comes back."""


class Assumed(NamedTuple):
    """A pod on the node it was sent to, until when, and the last word of the API server about pods before that."""

    pod: Pod
    until: float
    heard: int


class Loads:
    """Pods on nodes. `knows` says whether the engine has a node; `freed` is told of nodes that load has left.

    `heard` goes up with every word of the API server about pods. What is assumed does not expire before one has come
    since: that a pod is not seen on its node means nothing while nothing is seen."""

    def __init__(
        self,
        driver: TimedDriver,
        knows: Callable[[str], bool],
        *,
        assume_s: float,
        freed: Callable[[str], None] = lambda node: None,
        heard: Callable[[], int],
    ) -> None:
        self.elsewhere = 0
        """Pods that went to another node than was assumed."""
        self.expired = 0
        """Pods that went nowhere while that was assumed."""
        self._driver = driver
        self._knows, self._freed, self._heard = knows, freed, heard
        self._form: Final = CoresOnly()
        self._functions: Final = Functions(driver, forgets=True)
        self.pods: Final = PodCache(
            driver, self._form, functions=self._functions, node_counts=knows, settled=self._settled
        )
        self._assumed: dict[str, Assumed] = {}
        """By uid, in the order in which they expire."""
        self._assume_s = assume_s

    @property
    def assumed(self) -> int:
        return len(self._assumed)

    # -- what the API server tells -----------------------------------------------------------------------------------

    def changed(self, pod: Pod) -> None:
        """It is on a node, where it was sent or elsewhere."""
        assumed = self._assumed.pop(pod.metadata.uid, None)
        if assumed is not None and assumed.pod.spec.node_name != pod.spec.node_name:
            self.elsewhere += 1
        self.pods.changed(pod)

    def deleted(self, pod: Pod) -> None:
        self._assumed.pop(pod.metadata.uid, None)
        self.pods.deleted(pod)

    def _settled(self, node: str) -> None:
        if self._knows(node):
            self._freed(node)

    # -- what is assumed ---------------------------------------------------------------------------------------------

    def call(self, pod: Pod) -> Task:
        """The pod as a task to ask about; nothing is assumed of it any more."""
        assumed = self._assumed.get(pod.metadata.uid)
        if assumed is not None:
            self.deleted(assumed.pod)
        task = self._form.found(pod)
        function = self._functions.define(task.function, pod)
        self._functions.asked(function)
        return msgspec.structs.replace(task, function=function)

    def assume(self, pod: Pod, node: str) -> None:
        """It will be there in a moment. Undo: `deleted`."""
        uid = pod.metadata.uid
        if uid not in self.pods.by_uid:
            there = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
            self.pods.changed(there)
            self._assumed[uid] = Assumed(there, self._driver.now + self._assume_s, self._heard())

    def expire(self) -> None:
        """Give up what was assumed for too long."""
        now, heard = self._driver.now, self._heard()
        for assumed in tuple(self._assumed.values()):
            if assumed.until > now or assumed.heard == heard:
                break
            self.expired += 1
            self.deleted(assumed.pod)


class CoresOnly:
    """Tasks of pods, each under a name of its own: a pod may be assumed, given up and assumed again."""

    def __init__(self) -> None:
        self._serial = 0

    def waiting(self, pod: Pod) -> Task:
        return self.found(pod)

    def found(self, pod: Pod) -> Task:
        self._serial += 1
        meta, annotations = pod.metadata, annotations_of(pod)
        return Task(
            id=f"{meta.namespace}/{meta.name}#{self._serial}",
            function=function_of(pod),
            requirements=Requirements(cpu=_millicores(pod) / MILLI),
            energy_weight=(NONE if isinstance(annotations, Unsupported) else annotations).energy_weight,
        )


def _millicores(pod: Pod) -> int:
    try:
        return min(held_by(pod).cpu, MOST_CPU)
    except InputError:  # no node has as much: kube-scheduler offers none
        return 0
