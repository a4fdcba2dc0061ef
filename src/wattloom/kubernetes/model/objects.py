"""Kubernetes objects, as far as they are read here.

Owns their shape and nothing else: only the fields that somebody looks at, so that decoding a watch stays cheap. What
the API server sends beside them is skipped. What the fields mean for scheduling is the business of the readers.
"""

import msgspec

from wattloom.kubernetes.model.object_parts import (
    Amounts,
    InTree,
    LabelSelector,
    Meta,
    NodeSelector,
    NodeSelectorTerm,
    Part,
    Present,
    Requirement,
)
from wattloom.kubernetes.model.storage_objects import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

__all__ = [
    "Affinity",
    "Amounts",
    "CSIDriver",
    "CSINode",
    "ClaimSource",
    "Condition",
    "Container",
    "ContainerPort",
    "ContainerStatus",
    "LabelSelector",
    "MachineProfile",
    "Meta",
    "Namespace",
    "Node",
    "NodeSelector",
    "NodeSelectorTerm",
    "NodeStatus",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinityTerm",
    "PodSpec",
    "PodStatus",
    "Requirement",
    "Resources",
    "SpreadConstraint",
    "StorageClass",
    "Toleration",
    "Volume",
]

# -- pods ------------------------------------------------------------------------------------------------------------


class Resources(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    requests: Amounts | None = None


class ContainerPort(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    host_port: int = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class RestartRule(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    action: str = ""


class VolumeMount(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    bind_mount_options: tuple[str, ...] = ()


class Container(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class Toleration(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodAffinityTerm(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class NodeAffinity(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class PodAffinity(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ClaimSource(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    claim_name: str = ""


class Volume(InTree, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None


class Gate(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""


class ResourceClaim(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Amounts | None = None
    resources: Resources | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[Gate, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    scheduling_group: Present | None = None
    workload_ref: Present | None = None
    """What 1.35 called the scheduling group."""
    host_network: bool = False
    host_users: bool | None = None


class Condition(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""


class Terminated(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    terminated: Terminated | None = None


class ContainerStatus(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""
    state: ContainerState = ContainerState()
    restart_count: int = 0
    allocated_resources: Amounts | None = None
    resources: Resources | None = None


class PodStatus(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: Amounts | None = None
    resources: Resources | None = None


class Pod(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# -- nodes -----------------------------------------------------------------------------------------------------------


class NodeTaint(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    key: str
    effect: str
    value: str = ""


class NodeSpec(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()


class NodeInfo(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    architecture: str = ""


class NodeStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    capacity: Amounts = {}
    allocatable: Amounts = {}
    node_info: NodeInfo = NodeInfo()


class Node(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# -- the rest --------------------------------------------------------------------------------------------------------


class Namespace(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta


class MachineProfile(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Our own custom resource (wattloom.dev/v1alpha1, cluster-scoped)."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    """Read by `profiles`, so that one that is wrong does not keep the others from being read."""
