"""A real Kubernetes for tests and contributors: etcd, kube-apiserver and their fellows as processes of this machine.

No container registry and no mock. `control_plane.ControlPlane` starts and ends them, `binaries` finds or builds them,
`client.Api` talks to them, `fleet` makes nodes and pods by the thousand, `real_node.RealNode` adds a kubelet.
"""

from tests.beds.kubernetes.binaries import BinariesMissing, binaries
from tests.beds.kubernetes.client import Api, ApiRefused, eventually
from tests.beds.kubernetes.control_plane import ControlPlane, Part
from tests.beds.kubernetes.fleet import add_nodes, add_pods, fake_node, fake_pod
from tests.beds.kubernetes.real_node import RealNode

__all__ = [
    "Api",
    "ApiRefused",
    "BinariesMissing",
    "ControlPlane",
    "Part",
    "RealNode",
    "add_nodes",
    "add_pods",
    "binaries",
    "eventually",
    "fake_node",
    "fake_pod",
]
