"""What the programs of a real node read: configurations of containerd, its network and kubelet.

Owns their text. Everything lies in the node's own folder, so nothing of this machine's own containerd is touched.
"""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from tests.beds.kubernetes.image import NAME

PLUGINS: Final = Path("/usr/lib/cni")
CRI: Final = 'plugins."io.containerd.grpc.v1.cri"'
CONTAINERD: Final = """version = 2
root = "{folder}/containerd"
state = "{run}/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{socket}"
[{cri}]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  disable_apparmor = true
[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{cri}.cni]
  bin_dir = "{plugins}"
  conf_dir = "{folder}/network"
"""
# restrict_oom_score_adj: without it sandboxes fail where root lacks CAP_SYS_RESOURCE, as in many containers.


class NodePlaces(NamedTuple):
    """Where a node has its files. `run` is short, since the paths of sockets may not be long."""

    folder: Path
    run: Path
    bridge: str
    cgroup: str
    port: int
    health_port: int
    authority: Path

    @property
    def socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def containerd_config(self) -> Path:
        return self.folder / "containerd.toml"

    @property
    def kubelet_config(self) -> Path:
        return self.folder / "kubelet.json"


def write_configs(places: NodePlaces) -> None:
    """Write all three."""
    (places.folder / "network").mkdir(parents=True, exist_ok=True)
    text = CONTAINERD.format(
        folder=places.folder, run=places.run, socket=places.socket, cri=CRI, image=NAME, plugins=PLUGINS
    )
    places.containerd_config.write_text(text)
    (places.folder / "network" / "10-bridge.conflist").write_bytes(msgspec.json.encode(_network(places)))
    places.kubelet_config.write_bytes(msgspec.json.encode(_kubelet(places)))


def _network(places: NodePlaces) -> dict[str, object]:
    """A bridge of its own with addresses that nobody routes: pods reach each other and this machine, no further."""
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": "10.244.77.0/24"}]],
        "dataDir": str(places.folder / "addresses"),
    }
    bridge = {"type": "bridge", "bridge": places.bridge, "isGateway": True, "ipMasq": False, "ipam": ipam}
    return {"cniVersion": "0.4.0", "name": "test-bed", "plugins": [bridge]}


def _kubelet(places: NodePlaces) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": places.port,
        "readOnlyPort": 0,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": places.health_port,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(places.authority)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        # A cgroup of its own: below the usual one kubelet would end what another kubelet of this machine runs.
        "cgroupRoot": f"/{places.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{places.socket}",
        "podLogsDir": str(places.folder / "pod-logs"),
        "volumePluginDir": str(places.folder / "volume-plugins"),
        "resolvConf": "",
        "imageMinimumGCAge": "24h",
        "evictionHard": {},
        # So that a test sees its pod's state soon.
        "nodeStatusUpdateFrequency": "2s",
        "fileCheckFrequency": "5s",
        "syncFrequency": "5s",
    }
