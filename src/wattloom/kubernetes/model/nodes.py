"""Nodes of Kubernetes as the engine's nodes.

Owns what a node gives out, its labels and taints. Which machine it is and what that draws is `profiles`' business.
"""

from collections import Counter
from collections.abc import Iterable, Set
from typing import Final, cast

from wattloom.bounds import MOST_CORES, MOST_COUNT
from wattloom.cluster.node import Node as EngineNode
from wattloom.kubernetes.model.objects import Node
from wattloom.kubernetes.model.quantity import milli, nanos, value
from wattloom.kubernetes.model.requests import counted
from wattloom.units import MILLI
from wattloom.workload.constraints import Effect, Taint

HOSTNAME: Final = "kubernetes.io/hostname"
ALWAYS_OWN: Final = frozenset({HOSTNAME})
FEWEST_CARRIERS: Final = 8
"""Nodes with a label from which its values tell whether every node has its own."""
MOST_IN_CLASS: Final = 2
"""Nodes per value, on average, up to which a label makes classes that are not worth having."""
NO_CPU: Final = 1e-9
"""So little that it is no millicore: the engine has no nodes without CPU."""


def node_of(node: Node, machine: str, own: Set[str] = ALWAYS_OWN, cap_w: float | None = None) -> EngineNode:
    """The node as it joins. `own`: the labels by which it is looked at alone (see `own_labels`)."""
    labels, allocatable = node.metadata.labels, node.status.allocatable
    return EngineNode(
        name=node.metadata.name,
        machine=machine,
        cpu=min(milli(nanos(allocatable.get("cpu", "0"))), MOST_CORES * MILLI) / MILLI or NO_CPU,
        memory=min(value(nanos(allocatable.get("memory", "0"))), MOST_COUNT),
        labels={key: text for key, text in labels.items() if key not in own},
        own={key: text for key, text in labels.items() if key in own},
        cap_w=cap_w,
        resources=_resources(allocatable),
        taints=_taints(node),
        closed=node.spec.unschedulable,
    )


def own_labels(nodes: Iterable[Node]) -> frozenset[str]:
    """Labels that nearly every node has a value of its own for. As part of a class they would make every node one."""
    carriers: Counter[str] = Counter()
    values: dict[str, set[str]] = {}
    for node in nodes:
        for key, text in node.metadata.labels.items():
            carriers[key] += 1
            values.setdefault(key, set()).add(text)
    scattered = {
        key for key, count in carriers.items() if count >= FEWEST_CARRIERS and count <= MOST_IN_CLASS * len(values[key])
    }
    return ALWAYS_OWN | scattered


def _resources(allocatable: dict[str, str]) -> dict[str, int]:
    """Counted amounts beside CPU and memory. A node that does not say how many pods it takes takes none."""
    told = {name: value(nanos(text)) for name, text in allocatable.items() if name == "pods" or counted(name)}
    found = {name: min(amount, MOST_COUNT) for name, amount in told.items()}
    found.setdefault("pods", 0)
    return found


def _taints(node: Node) -> tuple[Taint, ...]:
    """Those that forbid; what a node would rather not have is no filter."""
    found = [each for each in node.spec.taints if each.effect in ("NoSchedule", "NoExecute")]
    taints = [Taint(each.key, each.value, cast(Effect, each.effect)) for each in found]
    return tuple(sorted(taints, key=lambda one: (one.key, one.value, one.effect)))
