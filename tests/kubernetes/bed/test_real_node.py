"""One real kubelet with containerd: a pod of busybox really runs. Needs root and Debian's packages."""

from pathlib import Path
from typing import Any

import pytest
from tests.beds.kubernetes import BinariesMissing, ControlPlane, RealNode, binaries, eventually, fake_pod
from tests.beds.kubernetes.real_node import IMAGE, problem

SCRIPT = "echo counted to $((6 * 7)); test $(id -u) = 0"


@pytest.mark.slow
def test_a_pod_of_busybox_runs_to_its_end_on_a_real_node(
    control_plane: ControlPlane, fresh_namespace: str, tmp_path: Path
) -> None:
    if (why := problem()) is not None:
        pytest.skip(f"NO REAL NODE: {why}")
    try:
        binaries(["kubelet"])
    except BinariesMissing as missing:
        pytest.skip(f"KUBELET IS MISSING: {missing}")
    api = control_plane.api
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", SCRIPT]}
    spec = {"containers": [container], "restartPolicy": "Never"}
    path = f"/api/v1/namespaces/{fresh_namespace}/pods"
    with RealNode(control_plane.authority, api.access, tmp_path / "node", name="real") as node:
        first = node.pid
        api.post(path, fake_pod("counts", node="real", spec=spec))
        done = eventually(lambda: _ended(api.get(f"{path}/counts")), 90)
        assert done["status"]["phase"] == "Succeeded", done["status"]
        assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        logs = list((tmp_path / "node" / "pod-logs").rglob("*.log"))
        assert "counted to 42" in logs[0].read_text()
    api.delete("/api/v1/nodes/real")
    api.delete("/apis/storage.k8s.io/v1/csinodes/real")  # which goes with its node only where there are controllers
    assert first is not None
    assert not Path(f"/proc/{first}").exists()
    left = [each for each in Path("/proc").glob("[0-9]*/cmdline") if _speaks_of(each, tmp_path)]
    assert left == []
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{node.cgroup}"))
    assert not (tmp_path / "node" / "left.json").exists()


def _ended(pod: Any) -> Any:
    return pod if pod["status"]["phase"] in ("Succeeded", "Failed") else None


def _speaks_of(path: Path, folder: Path) -> bool:
    try:
        return str(folder).encode() in path.read_bytes()
    except OSError:
        return False
