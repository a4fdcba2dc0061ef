"""Who is compared in the Kubernetes benchmark: kube-scheduler, Wattloom's scheduler, kube-scheduler with our extender.

Owns how each is started, when it is ready, and what its processes cost by /proc. Each starts afresh for every run, and
while one runs the others do not.
"""

import os
import re
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

import yaml
from tests.beds.kubernetes import ControlPlane, Part
from tests.beds.kubernetes.applying import apply
from tests.beds.kubernetes.processes import PartFailed, Process, free_ports

from wattloom.kubernetes.extender.config import scheduler_config
from wattloom.kubernetes.manifests import NAMESPACE, manifest

READY_S = 120.0
CHOSEN = re.compile(r'^wattloom_extender_calls_total\{result="chosen",verb="filter"\} (\S+)', re.M)
ANSWERED = 0.99
"""Of all pods: one whose question was lost is placed without us, and that is rare."""
TICK = 1.0 / os.sysconf("SC_CLK_TCK")
PROGRAM = Path(sys.executable).with_name("wattloom")
"""As a user starts it: the command of the environment that runs the benchmark."""
CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: false}}
"""
"""Without these rates kube-scheduler waits for its own limit. Ours keeps its lease, kube-scheduler need not."""


class Cost(NamedTuple):
    """What processes have taken up to now."""

    cpu_s: float
    rss_mb: float
    peak_mb: float


class Contender(Protocol):
    """A scheduler. `pods_name` is the schedulerName of the pods it takes."""

    name: str
    pods_name: str

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def pids(self) -> list[int]: ...

    def check(self, bound: int) -> None:
        """Raises where these pods were bound without the part that is measured."""


class KubeScheduler:
    """kube-scheduler as it is, with limits on its own requests that do not bind."""

    name = "kube-scheduler"
    pods_name = "default-scheduler"

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._config = _written(plane, "plain.yaml", _config(plane))

    def start(self) -> None:
        _start_kube_scheduler(self._plane, self._config)

    def stop(self) -> None:
        self._plane.stop_part(Part.SCHEDULER)

    def pids(self) -> list[int]:
        pid = self._plane.pid(Part.SCHEDULER)
        return [] if pid is None else [pid]

    def check(self, bound: int) -> None:
        """It has no part that could be left out."""


class Wattloom:
    """`wattloom kubernetes scheduler` as the shipped manifests run it: policy, lease, log, roles."""

    name = "wattloom"
    pods_name = "wattloom"

    def __init__(self, plane: ControlPlane) -> None:
        account = account_of(plane, "wattloom-scheduler", "namespace", "crd", "rbac")
        port = free_ports(1)[0]
        self._ready = f"http://127.0.0.1:{port}/readyz"
        words: list[str | Path] = [
            PROGRAM,
            "kubernetes",
            "scheduler",
            "--kubeconfig",
            account,
            "--namespace",
            NAMESPACE,
            "--log",
            plane.folder / "decisions",
        ]
        self._process = Process(
            "wattloom", [*words, "--http", f"127.0.0.1:{port}"], plane.folder / "logs" / "wattloom.log"
        )

    def start(self) -> None:
        self._process.start()
        self._process.wait_until(lambda: _says(self._ready, "leader"), READY_S)

    def stop(self) -> None:
        self._process.stop(patience_s=30.0)

    def pids(self) -> list[int]:
        return [] if self._process.pid is None else [self._process.pid]

    def check(self, bound: int) -> None:
        """It has no part that could be left out."""


class Extended:
    """kube-scheduler with `wattloom kubernetes extender` beside it, with the configuration that the command prints."""

    name = "kube-scheduler + extender"
    pods_name = "default-scheduler"

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        listen, http = (f"127.0.0.1:{port}" for port in free_ports(2))
        self._ready, self._metrics = f"http://{http}/readyz", f"http://{http}/metrics"
        account = account_of(plane, "wattloom-extender", "namespace", "crd", "extender")
        words: list[str | Path] = [PROGRAM, "kubernetes", "extender", "--kubeconfig", account]
        words += ["--listen", listen, "--http", http]
        self._process = Process("extender", words, plane.folder / "logs" / "extender.log")
        self._config = _written(plane, "extended.yaml", yaml.safe_load(scheduler_config(listen)) | _config(plane))

    def start(self) -> None:
        self._process.start()
        self._process.wait_until(lambda: _says(self._ready, ""), READY_S)
        _start_kube_scheduler(self._plane, self._config)

    def stop(self) -> None:
        if self._plane.pid(Part.SCHEDULER) is not None:
            self._plane.stop_part(Part.SCHEDULER)
        self._process.stop()

    def pids(self) -> list[int]:
        return [pid for pid in (self._plane.pid(Part.SCHEDULER), self._process.pid) if pid is not None]

    def check(self, bound: int) -> None:
        """kube-scheduler goes on without an extender that fails: such a run measures nothing."""
        with urllib.request.urlopen(self._metrics, timeout=5.0) as answer:
            chosen = sum(float(count) for count in CHOSEN.findall(answer.read().decode()))
        if chosen < ANSWERED * bound:
            raise PartFailed(
                f"kube-scheduler bound {bound:,} pods, but the extender chose only {chosen:,.0f} times: it was passed "
                f"over; the logs are {self._plane.log(Part.SCHEDULER)} and {self._process.log}"
            )


def account_of(plane: ControlPlane, name: str, *manifests: str) -> Path:
    """A kubeconfig file of an account that these manifests make, with its roles and no more."""
    path = plane.folder / "kubeconfigs" / f"{name}.yaml"
    if not path.exists():
        for what in manifests:
            apply(plane.api, manifest(what))
        path = plane.kubeconfig_of(plane.access_of_account(NAMESPACE, name, lasting_s=86_400), name)
    return path


def cost_of(pids: Sequence[int]) -> Cost:
    """Own time and that of threads, memory now and at its highest, of all these processes together."""
    cpu_s = rss_mb = peak_mb = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        cpu_s += (int(fields[11]) + int(fields[12])) * TICK
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        rss_mb += int(status["VmRSS"].split()[0]) * 1024 / 1e6
        peak_mb += int(status["VmHWM"].split()[0]) * 1024 / 1e6
    return Cost(cpu_s, rss_mb, peak_mb)


def _config(plane: ControlPlane) -> dict[str, Any]:
    kubeconfig = plane.folder / "kubeconfigs" / "kube-scheduler.yaml"
    config: dict[str, Any] = yaml.safe_load(CONFIG.format(kubeconfig=kubeconfig))
    return config


def _written(plane: ControlPlane, name: str, config: dict[str, Any]) -> Path:
    path = plane.folder / name
    path.write_text(yaml.safe_dump(config))
    return path


def _start_kube_scheduler(plane: ControlPlane, config: Path) -> None:
    """Ready is more than healthy: it has read the cluster."""
    plane.start_part(Part.SCHEDULER, {"config": str(config)})
    until = monotonic() + READY_S
    while not _says(f"{plane.url_of(Part.SCHEDULER)}/readyz", "ok"):
        if monotonic() > until:
            raise PartFailed(
                f"kube-scheduler was not ready within {READY_S:g} s; its log is {plane.log(Part.SCHEDULER)}"
            )
        sleep(0.1)


def _says(url: str, word: str) -> bool:
    # Asked whether it is ready, and nothing else: what it says is not believed in any other way.
    context = ssl._create_unverified_context() if url.startswith("https") else None
    try:
        with urllib.request.urlopen(url, timeout=5.0, context=context) as answer:
            return word in answer.read().decode(errors="replace")
    except (OSError, urllib.error.HTTPError):
        return False
