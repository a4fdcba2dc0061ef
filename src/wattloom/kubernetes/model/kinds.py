"""The kinds of objects that a scheduler follows.

Owns their paths and types in one list, and which pods count. What is done with the objects is their listeners'
business.
"""

from typing import Final

from wattloom.kubernetes.client.reflector import Living
from wattloom.kubernetes.client.resource import Resource
from wattloom.kubernetes.model.objects import (
    CSIDriver,
    CSINode,
    MachineProfile,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from wattloom.kubernetes.model.pods import ended

PODS: Final = Resource("", "v1", "pods", Pod)
NODES: Final = Resource("", "v1", "nodes", Node, namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", Namespace, namespaced=False)
CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", PersistentVolumeClaim)
VOLUMES: Final = Resource("", "v1", "persistentvolumes", PersistentVolume, namespaced=False)
CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", StorageClass, namespaced=False)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", CSINode, namespaced=False)
CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "csidrivers", CSIDriver, namespaced=False)
PROFILES: Final = Resource("wattloom.dev", "v1alpha1", "machineprofiles", MachineProfile, namespaced=False)

_UNENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
UNENDED: Final = Living(_UNENDED, "", ended)
"""Pods that take a part of their node, or may. One that ends is told as deleted, with the phase it ended in."""
ON_NODES: Final = Living(f"spec.nodeName!=,{_UNENDED}", "spec.nodeName!=", ended)
"""Those of them that have a node."""
