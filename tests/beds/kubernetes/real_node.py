"""One real node: kubelet, containerd and runc of this machine, with pods that really run.

All of it lives in a PID and a mount namespace of its own: when its first process ends, the kernel ends every process
in it and forgets every mount, whatever happened to us. Needs root, and Debian's packages named in `problem`.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Final, Self

import msgspec
from tests.beds.kubernetes.binaries import binaries
from tests.beds.kubernetes.certificates import Authority
from tests.beds.kubernetes.client import Access, Api
from tests.beds.kubernetes.image import NAME, busybox, write_image
from tests.beds.kubernetes.kubeconfigs import write_kubeconfig
from tests.beds.kubernetes.node_config import PLUGINS, NodePlaces, write_configs
from tests.beds.kubernetes.processes import Process, free_ports

from wattloom.errors import WattloomError

IMAGE: Final = NAME
"""The one image the node has; pods that use it say `imagePullPolicy: Never`."""
PACKAGES: Final = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "busybox": "busybox-static",
    "unshare": "util-linux",
    "ip": "iproute2",
    "openssl": "openssl",
}
"""Programs a node needs, and Debian's package of each."""
CGROUPS: Final = Path("/sys/fs/cgroup")
READY_S: Final = 120.0
LEFT: Final = "left.json"
"""The file that names what a node has in the kernel, for the one that comes after a killed one."""
FIRST: Final = """mount --make-rprivate /
config=$1 log=$2/containerd.log socket=$3 image=$4
shift 4
containerd --config "$config" >>"$log" 2>&1 &
containerd=$!
until ctr --address "$socket" --namespace k8s.io images import "$image" >/dev/null 2>&1; do
    kill -0 $containerd 2>/dev/null || { tail -n 15 "$log"; exit 1; }
    sleep 0.1
done
"$@"
"""
"""The first process of the namespace: kubelet gives up if containerd is not there yet. With kubelet all ends."""


def problem() -> str | None:
    """Why no real node can run here, and what to do. None: one can."""
    missing = sorted({package for program, package in PACKAGES.items() if shutil.which(program) is None})
    if not (PLUGINS / "bridge").exists():
        missing.append("containernetworking-plugins")
    if missing:
        return f"packages are missing (Debian: apt-get install {' '.join(missing)})"
    if os.geteuid() != 0:
        return "a node needs root: it makes cgroups, mounts and a network bridge"
    tried = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount", "true"], capture_output=True, text=True, check=False
    )
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else None


def sweep(folder: Path) -> None:
    """Remove what a node of this folder leaves in the kernel and no death removes: its bridge and its cgroups."""
    try:
        left = msgspec.json.decode((folder / LEFT).read_bytes(), type=dict[str, str])
    except OSError:
        return
    subprocess.run(["ip", "link", "delete", left["bridge"]], capture_output=True, check=False)
    for root in _cgroup_roots():
        _remove_cgroup(root / left["cgroup"])
    shutil.rmtree(left["run"], ignore_errors=True)
    (folder / LEFT).unlink()


class RealNode:
    """A kubelet that joins a control plane. Everything it writes is in `folder`, and goes when it stops."""

    def __init__(
        self,
        authority: Authority,
        server: Access,
        folder: Path,
        *,
        name: str = "real",
        say: Callable[[str], None] | None = None,
    ) -> None:
        if (why := problem()) is not None:
            raise WattloomError(f"no real node: {why}")
        self.name = name
        self.folder = folder.absolute()
        self._kubelet = binaries(["kubelet"], say)["kubelet"]
        self._authority = authority
        self._server = server
        self._process: Process | None = None
        self._places: NodePlaces

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def cgroup(self) -> str:
        """The cgroup below which its pods are."""
        return self._places.cgroup

    def start(self) -> Self:
        """Start containerd and kubelet, import the image, and wait until the API server calls the node ready."""
        self._prepare()
        self._process = Process("the real node", self._words(), self.folder / "logs" / "kubelet.log")
        try:
            self._process.start()
            self._process.wait_until(self._ready, READY_S)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the node with all that runs on it, and remove its cgroups and bridge."""
        if self._process is None:
            return
        first = self._first_process()
        # unshare takes the first process of the namespace with it, and that one everybody.
        self._process.kill()
        _await_end(first)
        sweep(self.folder)
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        sweep(self.folder)
        for name in ("containerd", "network", "addresses", "pod-logs", "logs"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("logs", "kubelet-certificates"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        port, health_port = free_ports(2)
        # Kubelet and containerd have sockets in it, whose paths may have 107 letters.
        run = Path(tempfile.mkdtemp(prefix="wattloom-node-", dir="/tmp"))
        own = f"wattloom-{os.getpid()}-{port}"
        self._places = NodePlaces(self.folder, run, f"wl{port}", own, port, health_port, self._server.authority)
        left = msgspec.json.encode({"bridge": self._places.bridge, "cgroup": own, "run": str(run)})
        (self.folder / LEFT).write_bytes(left)
        write_configs(self._places)
        program = busybox()
        assert program is not None, "`problem` looked for it"
        write_image(run / "image.tar", program)
        certificate = self._authority.client(f"system:node:{self.name}", ["system:nodes"])
        write_kubeconfig(self.folder / "kubeconfig.yaml", self._server._replace(certificate=certificate, token=None))
        self._api = Api(self._server)
        for root in _cgroup_roots():
            _make_cgroup(root / own)

    def _words(self) -> list[str | Path]:
        kubelet: list[str | Path] = [
            self._kubelet,
            f"--config={self._places.kubelet_config}",
            f"--kubeconfig={self.folder / 'kubeconfig.yaml'}",
            f"--root-dir={self._places.run / 'kubelet'}",
            f"--cert-dir={self.folder / 'kubelet-certificates'}",
            f"--hostname-override={self.name}",
        ]
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
        places = self._places
        first: list[str | Path] = ["sh", "-c", FIRST, "node", places.containerd_config, self.folder / "logs"]
        first += [places.socket, places.run / "image.tar"]
        return [*apart, *first, *kubelet]

    def _first_process(self) -> int | None:
        pid = self.pid
        if pid is None:
            return None
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else None

    def _ready(self) -> bool:
        found = [node for node in self._api.items("/api/v1/nodes") if node["metadata"]["name"] == self.name]
        conditions = found[0].get("status", {}).get("conditions", []) if found else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _await_end(pid: int | None) -> None:
    """Until a process is gone, or only its name is left. The first of a namespace goes last."""
    end = monotonic() + 10.0
    while pid is not None and monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                return
        except OSError:
            return
        sleep(0.02)


def _cgroup_roots() -> list[Path]:
    """Every hierarchy of version 1, or the one of version 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [folder for folder in sorted(CGROUPS.iterdir()) if folder.is_dir() and not folder.is_symlink()]


def _make_cgroup(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    root = folder.parent
    if (root / "cgroup.controllers").exists():
        for controller in (root / "cgroup.controllers").read_text().split():
            try:
                (root / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:
                continue
    elif root.name == "cpuset":
        # A cpuset without CPUs takes no process: it has those of its parent.
        for name in ("cpuset.cpus", "cpuset.mems"):
            (folder / name).write_text((root / name).read_text())


def _remove_cgroup(folder: Path) -> None:
    """A cgroup goes by rmdir, the innermost first; one that is still busy stays."""
    for path, _, _ in os.walk(folder, topdown=False):
        try:
            os.rmdir(path)
        except OSError:
            continue
