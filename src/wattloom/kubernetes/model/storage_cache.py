"""What pods refer to beside nodes: namespaces and storage.

Owns these objects as they are at the moment. Whoever watches the API server puts them in; a pod that was read before
a change must be read again.
"""

from wattloom.kubernetes.model.objects import Namespace
from wattloom.kubernetes.model.storage_objects import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)


class StorageCache:
    """Objects by name."""

    def __init__(self) -> None:
        self.namespaces: dict[str, Namespace] = {}
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        """By namespace and name."""
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.csi_drivers: dict[str, CSIDriver] = {}

    def limits(self, driver: str) -> bool:
        """Whether any node has a limit on the volumes of this storage driver."""
        return any(
            each.name == driver and each.allocatable is not None and each.allocatable.count is not None
            for node in self.csi_nodes.values()
            for each in node.spec.drivers or ()
        )
