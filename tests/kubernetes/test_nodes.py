"""Nodes: what they give out, and by which labels they are looked at alone."""

from typing import Any

import msgspec

from wattloom.kubernetes.model.nodes import node_of, own_labels
from wattloom.kubernetes.model.objects import Node
from wattloom.workload.constraints import Taint


def node(name: str = "n", allocatable: dict[str, str] | None = None, **more: Any) -> Node:
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **more.pop("labels", {})}}
    return msgspec.convert({"metadata": metadata, "spec": more, "status": {"allocatable": allocatable or {}}}, Node)


def test_a_node_gives_out_what_is_allocatable_of_all_that_is_counted() -> None:
    amounts = {"cpu": "7500m", "memory": "16G", "pods": "110", "example.com/gpu": "4", "hugepages-2Mi": "0", "x": "1"}
    made = node_of(node(allocatable=amounts), "m")
    assert (made.name, made.machine, made.cpu, made.memory) == ("n", "m", 7.5, 16 * 10**9)
    assert made.resources == {"pods": 110, "example.com/gpu": 4, "hugepages-2Mi": 0}
    assert made.problem() is None


def test_a_node_that_says_nothing_of_its_size_takes_no_pods() -> None:
    made = node_of(node(), "m")
    assert (made.resources, made.memory) == ({"pods": 0}, 0)
    assert made.problem() is None


def test_taints_that_forbid_are_kept_in_order_and_wishes_are_not() -> None:
    taints = [
        {"key": "b", "effect": "NoExecute"},
        {"key": "c", "effect": "PreferNoSchedule"},
        {"key": "a", "value": "1", "effect": "NoSchedule"},
    ]
    made = node_of(node(taints=taints, unschedulable=True), "m", cap_w=250.0)
    assert made.taints == (Taint("a", "1"), Taint("b", "", "NoExecute"))
    assert (made.closed, made.cap_w) == (True, 250.0)


def test_the_host_name_is_a_nodes_own_and_so_is_what_nearly_every_node_has_for_itself() -> None:
    fleet = [
        node(f"n{number}", labels={"serial": f"s{number}", "zone": "ab"[number % 2], "pool": f"p{number // 5}"})
        for number in range(20)
    ]
    own = own_labels(fleet)
    assert own == {"kubernetes.io/hostname", "serial"}
    made = node_of(fleet[0], "m", own)
    assert made.own == {"kubernetes.io/hostname": "n0", "serial": "s0"}
    assert made.labels == {"zone": "a", "pool": "p0"}


def test_a_few_nodes_are_not_enough_to_call_a_label_their_own() -> None:
    assert own_labels([node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"})]) == {"kubernetes.io/hostname"}
