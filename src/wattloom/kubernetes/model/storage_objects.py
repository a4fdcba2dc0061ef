"""Objects of storage, as far as they are read here.

Owns their shape and nothing else, as `objects` does for the rest.
"""

from wattloom.kubernetes.model.object_parts import InTree, Meta, NodeSelector, Part


class ClaimSpec(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()


class ClaimStatus(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    phase: str = ""


class PersistentVolumeClaim(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeNodeAffinity(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    required: NodeSelector | None = None


class CsiSource(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    driver: str = ""


class PersistentVolumeSpec(InTree, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None


class PersistentVolume(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class StorageClass(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    volume_binding_mode: str = ""


class DriverAllocatable(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    count: int | None = None


class NodeDriver(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""
    allocatable: DriverAllocatable | None = None


class CSINodeSpec(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    drivers: tuple[NodeDriver, ...] | None = ()
    """A kubelet without drivers writes null."""


class CSINode(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    metadata: Meta
    spec: CSIDriverSpec = CSIDriverSpec()
