"""Pods per second of an unmodified kube-scheduler, alone and with Wattloom's extender, on the same cluster, in turns.

    python benchmarks/kubernetes_extender.py --nodes 1000 --pods 3000 --rounds 3

Everything is real: etcd, API server, kube-scheduler, and fake nodes that kwok plays. Pods are created first, then
kube-scheduler is started on them; the rate is that between the first and the last tenth of them. Absolute figures
depend on the machine and on what else it does: only the ratio within a round counts.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import NamedTuple
from urllib.request import urlopen

from wattloom.kubernetes.extender_config import scheduler_config
from wattloom.testing.kubernetes import (
    Api,
    ApiRefused,
    ControlPlane,
    Part,
    add_nodes,
    add_pods,
    eventually,
    fake_node,
    fake_pod,
)
from wattloom.testing.kubernetes.fleet import add_namespace
from wattloom.testing.kubernetes.processes import free_ports

PROFILE = "wattloom.dev/machine-profile"
MACHINES = tuple(
    json.dumps({"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, full]], "provenance": "measured"})
    for full in (90, 150)
)
SCHEDULED = re.compile(r'scheduler_schedule_attempts_total\{profile="[^"]*",result="scheduled"\} (\S+)')
PATIENCE_S = 600.0
TICKS = os.sysconf("SC_CLK_TCK")


class Run(NamedTuple):
    """One kube-scheduler on one burst of pods."""

    mode: str
    pods_per_s: float
    scheduler_cpu_ms: float
    """Of kube-scheduler, per pod."""
    extender_cpu_ms: float
    answer_ms: float
    """Of the extender, per question."""
    load: float
    """Of the machine, when it ended."""


# -- the parts --------------------------------------------------------------------------------------------------------


@contextmanager
def extender(plane: ControlPlane, log: Path, *words: str) -> Iterator[tuple[str, str, int]]:
    """`wattloom kubernetes extender` as a process: the addresses for kube-scheduler and for health, and its id."""
    listen, http = (f"127.0.0.1:{port}" for port in free_ports(2))
    command = [sys.executable, "-m", "wattloom.cli.main", "kubernetes", "extender"]
    command += ["--kubeconfig", str(plane.kubeconfig), "--listen", listen, "--http", http, "--no-publish-watts", *words]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file)
    try:
        eventually(lambda: _page(http, "readyz"), 60)
        yield listen, http, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _page(http: str, name: str) -> str:
    with urlopen(f"http://{http}/{name}", timeout=5) as answer:
        return str(answer.read().decode())


def config_with(plane: ControlPlane, listen: str = "") -> str:
    """kube-scheduler's configuration as it is shipped, without its limit of requests; with `listen` it asks there."""
    text = scheduler_config(listen) if listen else "\n".join(scheduler_config().splitlines()[:2]) + "\n"
    kubeconfig = plane.folder / "kubeconfigs" / "kube-scheduler.yaml"
    unlimited = f"clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}"
    return f"{text}{unlimited}\nleaderElection: {{leaderElect: false}}\n"


# -- one run ----------------------------------------------------------------------------------------------------------


def burst(
    plane: ControlPlane, namespace: str, pods: int, listen: str = "", *, cpu: str = "100m"
) -> tuple[float, float]:
    """Pods per second, and kube-scheduler's CPU seconds, for so many pods that wait when it starts."""
    add_namespace(plane.api, namespace)
    add_pods(plane.api, namespace, [fake_pod(f"{namespace}-{number}", cpu=cpu) for number in range(pods)])
    config = plane.folder / f"{namespace}.yaml"
    config.write_text(config_with(plane, listen))
    plane.start_part(Part.SCHEDULER, {"config": str(config)})
    try:
        rate = _rate(_Scheduler(plane), pods)
        return rate, cpu_s(plane.pid(Part.SCHEDULER) or 0)
    finally:
        plane.stop_part(Part.SCHEDULER)
        eventually(lambda: _removed(plane.api, f"/api/v1/namespaces/{namespace}/pods"), PATIENCE_S)


def _removed(api: Api, path: str) -> bool:
    """Asked again where the API server took too long for all at once."""
    if api.get(f"{path}?limit=1")["items"]:
        api.delete(path, gracePeriodSeconds=0)
    return not api.get(f"{path}?limit=1")["items"]


class _Scheduler:
    """Reads how many pods kube-scheduler has placed."""

    def __init__(self, plane: ControlPlane) -> None:
        port = int(plane.url_of(Part.SCHEDULER).rpartition(":")[2])
        self._api = Api(plane.api.access._replace(port=port))

    def placed(self) -> float:
        try:
            return sum(float(count) for count in SCHEDULED.findall(self._api.text("/metrics")))
        except ApiRefused:  # it has just started, and does not know yet whose certificates it trusts
            self._api.close()
            return 0.0


def _rate(scheduler: _Scheduler, pods: int) -> float:
    """Between a tenth and nine tenths."""
    seen: list[tuple[float, float]] = []
    until = monotonic() + PATIENCE_S
    while not seen or seen[-1][1] < pods:
        assert monotonic() < until, f"only {seen[-1][1]} of {pods} pods were placed"
        sleep(0.25)
        seen.append((monotonic(), scheduler.placed()))
    begun, ended = (_when(seen, pods * share) for share in (0.1, 0.9))
    return 0.8 * pods / (ended - begun)


def _when(seen: list[tuple[float, float]], count: float) -> float:
    """When so many were placed, by a straight line between two looks."""
    before = next((each for each in reversed(seen) if each[1] <= count), seen[0])
    after = next(each for each in seen if each[1] >= count)
    if after[1] == before[1]:
        return after[0]
    return before[0] + (after[0] - before[0]) * (count - before[1]) / (after[1] - before[1])


def cpu_s(process: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# -- all runs ---------------------------------------------------------------------------------------------------------


def compare(plane: ControlPlane, *, pods: int, rounds: int, modes: dict[str, tuple[str, ...]]) -> Iterator[Run]:
    """Rounds of kube-scheduler alone and with the extender in each mode (its words), in turns."""
    for number in range(rounds):
        rate, own = burst(plane, f"alone-{number}", pods)
        yield Run("alone", rate, 1e3 * own / pods, 0.0, 0.0, os.getloadavg()[0])
        for mode, words in modes.items():
            with extender(plane, plane.folder / "logs" / f"extender-{mode}-{number}.log", *words) as (
                listen,
                http,
                pid,
            ):
                before = cpu_s(pid)
                rate, own = burst(plane, f"{mode}-{number}", pods, listen)
                ours = cpu_s(pid) - before
                answer = _answer_s(_page(http, "metrics"))
            yield Run(mode, rate, 1e3 * own / pods, 1e3 * ours / pods, 1e3 * answer, os.getloadavg()[0])


def _answer_s(metrics: str) -> float:
    total, count = (
        float(re.search(rf"^wattloom_extender_answer_seconds_{part} (\S+)", metrics, re.M)[1])  # type: ignore[index]
        for part in ("sum", "count")
    )
    return total / count if count else 0.0


MODES: dict[str, tuple[str, ...]] = {"keep-1": (), "keep-3": ("--keep", "3"), "keep-all": ("--keep", "all")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--no-kwok", action="store_true")
    asked = parser.parse_args()
    modes = {name: MODES[name] for name in asked.modes.split(",")}
    with TemporaryDirectory() as folder, ControlPlane(Path(folder) / "plane", kwok=not asked.no_kwok) as plane:
        nodes = [
            fake_node(f"node-{number:05}", annotations={PROFILE: MACHINES[number % 2]}) for number in range(asked.nodes)
        ]
        add_nodes(plane.api, nodes)
        print(f"{asked.nodes} nodes, {asked.pods} pods a run; load {os.getloadavg()[0]:.1f}", flush=True)
        print(f"{'mode':<10}{'pods/s':>8}{'share':>8}{'kube ms':>9}{'ours ms':>9}{'answer':>9}{'load':>6}")
        alone = 0.0
        for run in compare(plane, pods=asked.pods, rounds=asked.rounds, modes=modes):
            alone = run.pods_per_s if run.mode == "alone" else alone
            print(
                f"{run.mode:<10}{run.pods_per_s:>8.0f}{run.pods_per_s / alone:>8.0%}{run.scheduler_cpu_ms:>9.2f}"
                f"{run.extender_cpu_ms:>9.2f}{run.answer_ms:>9.3f}{run.load:>6.1f}",
                flush=True,
            )
    print(f"memory of the measuring process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
