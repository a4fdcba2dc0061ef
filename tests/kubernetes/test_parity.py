"""One engine, two backends: the same tasks and nodes in simulation and on a real API server get the same places."""

import json
import random
from typing import Any

import msgspec
import pytest
from tests.beds.kubernetes import Api, ControlPlane, add_nodes, eventually, fake_node, fake_pod
from tests.kubernetes.running import PROFILE, nodes_of, scheduling

from wattloom.history.log import LogWriter
from wattloom.kubernetes.client.reading import object_of
from wattloom.kubernetes.model.kinds import NODES, PODS
from wattloom.kubernetes.model.nodes import node_of, own_labels
from wattloom.kubernetes.model.objects import Node, Pod
from wattloom.kubernetes.model.pods import task_of
from wattloom.kubernetes.model.profiles import Profiles
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.kubernetes.model.unsupported import Unsupported
from wattloom.kubernetes.options import usable_policy
from wattloom.kubernetes.state.node_cache import REFERENCE
from wattloom.machines.profile import MachineProfile
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.simulation.loop import Simulation
from wattloom.simulation.trial import Arrival, Trial
from wattloom.workload.function import Function, Variant

POLICIES = ("least-joules", "marginal-energy", "pack", "spread", "round-robin", "random:seed=7", "weighted", "fifo")
LONG_S = 1e5
"""Nothing ends while tasks are placed."""
CURVES = ([[0, 60], [8, 120]], [[0, 30], [4, 80], [8, 200]], [[0, 90], [8, 130]])


def machines() -> list[dict[str, Any]]:
    made = []
    for number in range(12):
        profile = {"cores": 8, "threads": 8, "coresWatts": CURVES[number % 3], "speed": 1.0 + number % 2}
        about = {PROFILE: json.dumps(profile)} if number % 4 != 3 else {}
        labels = {"topology.kubernetes.io/zone": f"z{number % 3}"}
        taints = [{"key": "special", "effect": "NoSchedule"}] if number % 5 == 4 else []
        made.append(fake_node(f"n{number:02}", labels=labels, annotations=about, taints=taints))
    return made


def work(chance: random.Random, count: int) -> list[dict[str, Any]]:
    made = []
    for number in range(count):
        spec: dict[str, Any] = {}
        if chance.random() < 0.3:
            spec["nodeSelector"] = {"topology.kubernetes.io/zone": f"z{chance.randrange(3)}"}
        if chance.random() < 0.2:
            spec["tolerations"] = [{"operator": "Exists"}]
        about = {"wattloom.dev/runtime-seconds": str(chance.choice([10, 100]))} if chance.random() < 0.5 else {}
        cpu = chance.choice(["100m", "250m", "500m", "750m"])
        made.append(fake_pod(f"p{number:03}x", cpu=cpu, scheduler="wattloom", annotations=about, spec=spec))
    return made


class Placed(LogWriter):
    """Where a simulation sends its tasks."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}

    def write(self, event: ev.AnyEvent, instructions: Any) -> None:
        each: AnyInstruction
        for each in instructions:
            if isinstance(each, Place):
                self.nodes[each.task.partition("#")[0].partition("/")[2]] = each.node


def simulated(policy: str, nodes: list[Node], pods: list[Pod]) -> dict[str, str]:
    """The same objects, as the API server has them, in virtual time."""
    profiles, own, storage = Profiles(), own_labels(nodes), StorageCache()
    found = {node.metadata.name: profiles.of(node) for node in nodes}
    tasks, functions, seconds = [], {}, {}
    for pod in pods:
        task = task_of(pod, storage)
        assert not isinstance(task, Unsupported)
        tasks.append(Arrival(0.0, task))
        declared = pod.metadata.annotations.get("wattloom.dev/runtime-seconds")
        variant = Variant(seconds={REFERENCE: float(declared)} if declared else {})
        functions[task.function] = Function(task.function, variants=(variant,))
        for each in found.values():
            seconds[task.function, "default", each.machine.name] = LONG_S
    reference = MachineProfile(name=REFERENCE, arch="any", cores=1, threads=1, memory=0)
    defined = {each.machine.name: each.machine for each in found.values()} | {REFERENCE: reference}
    joined = [node_of(node, found[node.metadata.name].machine.name, own) for node in nodes]
    trial = Trial("parity", list(defined.values()), list(functions.values()), joined, tasks, seconds)
    placed = Placed()
    Simulation(trial, usable_policy(policy), placed).run()
    return placed.nodes


def read(api: Api, path: str, kind: type[Any]) -> list[Any]:
    return [object_of(msgspec.json.encode(each), kind, path) for each in api.items(path)]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_pods_and_nodes_get_the_same_places_in_simulation(
    policy: str, plane: ControlPlane, api: Api, space: str
) -> None:
    chance = random.Random(policy)
    add_nodes(api, machines(), threads=1)
    for body in work(chance, 60):
        api.post(f"/api/v1/namespaces/{space}/pods", body)
    nodes, pods = read(api, NODES.path(), Node), read(api, PODS.path(space), Pod)
    expected = simulated(policy, nodes, pods)
    assert len(expected) == 60
    assert len(set(expected.values())) > 1
    with scheduling(plane, policy=policy):
        eventually(lambda: all(nodes_of(api, space).values()))
    assert nodes_of(api, space) == expected
