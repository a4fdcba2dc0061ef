"""What of a pod we do not know how to schedule: such a pod waits, it is never placed wrongly.

Owns the list of fields that kube-scheduler looks at and we do not, and how that is told. Wishes (preferred affinity,
`ScheduleAnyway`, `PreferNoSchedule`, image locality, a nominated node) are no filters and are not here.
"""

from typing import Final

import msgspec

from wattloom.kubernetes.model.objects import Container, LabelSelector, Pod, PodSpec

POD_OWN_LABELS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that controllers put on pods to tell them apart. They are left out of a task's labels, so that equal pods are
of one shape."""
DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
INSTEAD: Final = "use kube-scheduler with the Wattloom extender for this pod"


class Unsupported(msgspec.Struct, frozen=True):
    """Why a pod cannot be scheduled here."""

    field: str
    why: str
    passing: bool = False
    """Whether it can pass by itself, as with a claim that is not bound yet."""
    mistake: bool = False
    """Whether its owner has to correct it. If it is neither this nor passing, another scheduler is needed."""

    @property
    def message(self) -> str:
        """For an event on the pod."""
        words = f"{self.field}: {self.why}"
        return words if self.passing or self.mistake else f"{words}; {INSTEAD}"


def unsupported(pod: Pod) -> Unsupported | None:
    """The first field of the pod's own that we cannot follow."""
    spec = pod.spec
    if spec.resource_claims:
        return Unsupported("spec.resourceClaims", "dynamic resource allocation is not implemented")
    if spec.scheduling_group is not None or spec.workload_ref is not None:
        field = "spec.schedulingGroup" if spec.scheduling_group is not None else "spec.workloadRef"
        return Unsupported(field, "scheduling a group of pods at once is not implemented")
    return _declared_features(spec) or _tolerations(spec) or _volumes(spec) or _selectors(spec)


def _declared_features(spec: PodSpec) -> Unsupported | None:
    """What kube-scheduler grants only to nodes that declare the feature in their status."""
    if spec.host_network and spec.host_users is False:
        return Unsupported("spec.hostUsers", "user namespaces with the host's network need a feature of the node")
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for number, container in enumerate(containers):
            wrong = _container(container)
            if wrong is not None:
                return Unsupported(
                    f"spec.{kind}[{number}].{wrong}", "needs a feature of the node that is not looked at"
                )
    return None


def _container(container: Container) -> str | None:
    if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules):
        return "restartPolicyRules"
    if any(mount.bind_mount_options for mount in container.volume_mounts):
        return "volumeMounts.bindMountOptions"
    requests = container.resources.requests
    if requests and any(name.startswith(DEVICE_CLASS) for name in requests):
        return "resources.requests"
    return None


def _tolerations(spec: PodSpec) -> Unsupported | None:
    for number, toleration in enumerate(spec.tolerations):
        if toleration.operator not in ("", "Equal", "Exists"):
            return Unsupported(f"spec.tolerations[{number}].operator", f"{toleration.operator} is not implemented")
    return None


def _volumes(spec: PodSpec) -> Unsupported | None:
    for number, volume in enumerate(spec.volumes):
        kind = volume.in_tree()
        if kind:
            return Unsupported(
                f"spec.volumes[{number}].{kind}", "limits and conflicts of such volumes are not looked at"
            )
    return None


def _selectors(spec: PodSpec) -> Unsupported | None:
    """Selectors over labels that are left out of the task's."""
    for number, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == "DoNotSchedule":
            key = names_own_label(constraint.label_selector) or _own_among(constraint.match_label_keys)
            if key:
                return _own_label(f"spec.topologySpreadConstraints[{number}]", key)
    affinity = spec.affinity
    if affinity is None:
        return None
    for kind, rules in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        for term in rules.required if rules is not None else ():
            key = names_own_label(term.label_selector)
            if key:
                return _own_label(f"spec.affinity.{kind}", key)
    return None


def names_own_label(selector: LabelSelector | None) -> str:
    """A label of single pods that the selector is about; empty: none."""
    if selector is None:
        return ""
    return _own_among((*selector.match_labels, *(each.key for each in selector.match_expressions)))


def _own_among(keys: tuple[str, ...]) -> str:
    return next((key for key in keys if key in POD_OWN_LABELS), "")


def _own_label(field: str, key: str) -> Unsupported:
    return Unsupported(field, f"selects pods by {key}, a label that only single pods have, which is not looked at")
