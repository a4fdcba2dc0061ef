"""The parts of a control plane: which program each one is, and the words it is started with.

Owns flags. Knows nothing of processes or of what is running.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from tests.beds.kubernetes.certificates import Authority, Certificate

HOST: Final = "127.0.0.1"
STAGES: Final = Path(__file__).with_name("stages.yaml")
PLAYED: Final = ("kwok.x-k8s.io/node", "fake")
"""The annotation of nodes that kwok plays. Others, such as a real one, it leaves alone."""
ISSUER: Final = "https://kubernetes.default.svc"
SCHEDULER_CONFIG: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: false}}
"""
"""Without these rates kube-scheduler waits for its own limit, which is not what anybody wants to measure."""


class Part(StrEnum):
    """A process of the control plane; its value is the program's name."""

    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLERS = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    KWOK = "kwok"


class Layout(NamedTuple):
    """Where a control plane keeps its files, which ports it has, and who signs for it."""

    folder: Path
    ports: Mapping[str, int]
    authority: Authority
    programs: Mapping[str, Path]

    def words(self, part: Part, flags: Mapping[str, str]) -> list[str]:
        """The command line of a part: its flags, and then the caller's, which win."""
        own = {**FLAGS[part](self), **flags}
        return [str(self.programs[part]), *(f"--{name}={value}" for name, value in own.items())]


def ports_needed() -> list[str]:
    return [*Part, "etcd-peer"]


def _etcd(layout: Layout) -> dict[str, str]:
    client, peer = (f"http://{HOST}:{layout.ports[name]}" for name in (Part.ETCD, "etcd-peer"))
    return {
        "name": "test-bed",
        "data-dir": str(layout.folder / "etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"test-bed={peer}",
        # A process killed with -9 loses nothing by it; only a machine that loses power does.
        "unsafe-no-fsync": "true",
        "quota-backend-bytes": str(4 << 30),
        "log-level": "warn",
    }


def _api_server(layout: Layout) -> dict[str, str]:
    authority = layout.authority
    server = authority.server("kube-apiserver", [f"IP:{HOST}", "IP:10.0.0.1", "DNS:localhost", "DNS:kubernetes"])
    private, public = authority.signing_key("service-accounts")
    return {
        "etcd-servers": f"http://{HOST}:{layout.ports[Part.ETCD]}",
        "bind-address": HOST,
        "secure-port": str(layout.ports[Part.API_SERVER]),
        "client-ca-file": str(authority.own.certificate),
        **_served_with(server),
        "cert-dir": str(layout.folder / "api-server"),
        "service-account-key-file": str(public),
        "service-account-signing-key-file": str(private),
        "service-account-issuer": ISSUER,
        "service-cluster-ip-range": "10.0.0.0/24",
        "authorization-mode": "Node,RBAC",
        "endpoint-reconciler-type": "none",
        "max-requests-inflight": "3000",
        "max-mutating-requests-inflight": "1000",
        # A kill must not wait for open watches.
        "shutdown-watch-termination-grace-period": "0s",
    }


def _controllers(layout: Layout) -> dict[str, str]:
    private, _ = layout.authority.signing_key("service-accounts")
    return {
        **_connected(layout, "kube-controller-manager"),
        "service-account-private-key-file": str(private),
        "root-ca-file": str(layout.authority.own.certificate),
        # Else nodes keep the taint not-ready.
        "use-service-account-credentials": "true",
        # Thousands of nodes that nobody plays stay ready.
        "node-monitor-grace-period": "2h",
        "leader-elect": "false",
        **_serving(layout, Part.CONTROLLERS),
    }


def _scheduler(layout: Layout) -> dict[str, str]:
    config = layout.folder / "scheduler.yaml"
    config.write_text(SCHEDULER_CONFIG.format(kubeconfig=_kubeconfig(layout, "kube-scheduler")))
    connected = _connected(layout, "kube-scheduler")
    del connected["kubeconfig"]
    return {"config": str(config), **connected, **_serving(layout, Part.SCHEDULER)}


def _kwok(layout: Layout) -> dict[str, str]:
    return {
        "kubeconfig": _kubeconfig(layout, "admin"),
        "config": str(STAGES),
        "manage-all-nodes": "false",
        "manage-nodes-with-annotation-selector": "=".join(PLAYED),
        "node-lease-duration-seconds": "1200",
        "server-address": f"{HOST}:{layout.ports[Part.KWOK]}",
    }


def _connected(layout: Layout, user: str) -> dict[str, str]:
    kubeconfig = _kubeconfig(layout, user)
    names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return dict.fromkeys(names, kubeconfig)


def _kubeconfig(layout: Layout, user: str) -> str:
    return str((layout.folder / "kubeconfigs" / f"{user}.yaml").absolute())


def _serving(layout: Layout, part: Part) -> dict[str, str]:
    certificate = layout.authority.server(part, [f"IP:{HOST}", "DNS:localhost"])
    return {"bind-address": HOST, "secure-port": str(layout.ports[part]), **_served_with(certificate)}


def _served_with(certificate: Certificate) -> dict[str, str]:
    return {"tls-cert-file": str(certificate.certificate), "tls-private-key-file": str(certificate.key)}


FLAGS: Final = {
    Part.ETCD: _etcd,
    Part.API_SERVER: _api_server,
    Part.CONTROLLERS: _controllers,
    Part.SCHEDULER: _scheduler,
    Part.KWOK: _kwok,
}
HEALTH: Final = {
    Part.ETCD: ("http", "/health"),
    Part.API_SERVER: ("https", "/readyz"),
    Part.CONTROLLERS: ("https", "/healthz"),
    Part.SCHEDULER: ("https", "/healthz"),
    Part.KWOK: ("http", "/healthz"),
}
"""Where each part says that it works; open to anybody on this machine."""
