"""Kubernetes' filters written down once more, node by node and task by task, with nothing kept: what masks must equal.

Everything is worked out from the specs of nodes and the list of who is where, after the descriptions of the filters
NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, VolumeBinding, PodTopologySpread and InterPodAffinity.
"""

import re
from dataclasses import dataclass

from wattloom.cluster.node import Node
from wattloom.workload.constraints import (
    AffinityTerm,
    Constraints,
    Expression,
    NodeTerm,
    Port,
    Spread,
    Taint,
    Toleration,
)
from wattloom.workload.requirements import Requirements


@dataclass(frozen=True)
class There:
    """A task that is on a node."""

    needs: Requirements
    node: str
    leaving: bool = False


def labels_of(node: Node) -> dict[str, str]:
    return {**node.labels, **node.own}


def feasible(needs: Requirements, nodes: list[Node], there: list[There]) -> set[str]:
    """The names of the nodes that all filters but that of resources let the task go to."""
    constraints = needs.constraints or Constraints()
    return {
        node.name
        for node in nodes
        if open_to(constraints, node)
        and not untolerated(constraints, node)
        and chosen(needs, constraints, node)
        and ports_free(constraints, node, there)
        and reaches_volumes(constraints, node)
        and evenly_spread(needs, constraints, node, nodes, there)
        and affinity_allows(needs, constraints, node, nodes, there)
    }


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    return (
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
    )


def open_to(constraints: Constraints, node: Node) -> bool:
    taint = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    return not node.closed or any(tolerates(toleration, taint) for toleration in constraints.tolerations)


def untolerated(constraints: Constraints, node: Node) -> bool:
    forbidding = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return any(not any(tolerates(toleration, taint) for toleration in constraints.tolerations) for taint in forbidding)


def matches(expression: Expression, labels: dict[str, str]) -> bool:
    has, value = expression.key in labels, labels.get(expression.key, "")
    match expression.operator:
        case "In":
            return has and value in expression.values
        case "NotIn":
            return not has or value not in expression.values
        case "Exists":
            return has
        case "DoesNotExist":
            return not has
        case "Gt" | "Lt":
            if not has or not re.fullmatch(r"[+-]?[0-9]+", value) or len(value) > 18:
                return False
            bound = int(expression.values[0])
            return int(value) > bound if expression.operator == "Gt" else int(value) < bound


def term_holds(term: NodeTerm, labels: dict[str, str], name: str) -> bool:
    if not term.labels and not term.fields:
        return False
    by_name = all((name in field.values) == (field.operator == "In") for field in term.fields)
    return by_name and all(matches(expression, labels) for expression in term.labels)


def chosen(needs: Requirements, constraints: Constraints, node: Node) -> bool:
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (*needs.labels, *constraints.selector)):
        return False
    return constraints.terms is None or any(term_holds(term, labels, node.name) for term in constraints.terms)


def reaches_volumes(constraints: Constraints, node: Node) -> bool:
    return all(any(term_holds(term, labels_of(node), "") for term in terms) for terms in constraints.volumes)


def ports_free(constraints: Constraints, node: Node, there: list[There]) -> bool:
    taken = [
        port
        for task in there
        if task.node == node.name and task.needs.constraints
        for port in task.needs.constraints.ports
    ]
    return not any(clash(wanted, other) for wanted in constraints.ports for other in taken)


def clash(one: Port, other: Port) -> bool:
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.address == other.address or "0.0.0.0" in (one.address, other.address))


def selected(selector: tuple[Expression, ...] | None, needs: Requirements) -> bool:
    return selector is not None and all(matches(expression, dict(needs.task_labels)) for expression in selector)


def evenly_spread(
    needs: Requirements, constraints: Constraints, node: Node, nodes: list[Node], there: list[There]
) -> bool:
    return all(spread_allows(spread, needs, constraints, node, nodes, there) for spread in constraints.spread)


def spread_allows(
    spread: Spread, needs: Requirements, constraints: Constraints, node: Node, nodes: list[Node], there: list[There]
) -> bool:
    if spread.key not in labels_of(node):
        return False
    counts: dict[str, int] = {}
    for other in nodes:
        if any(each.key not in labels_of(other) for each in constraints.spread):
            continue
        if spread.honor_affinity and not chosen(needs, constraints, other):
            continue
        if spread.honor_taints and untolerated(constraints, other):
            continue
        domain = labels_of(other)[spread.key]
        counts[domain] = counts.get(domain, 0) + sum(
            task.node == other.name
            and not task.leaving
            and task.needs.namespace == needs.namespace
            and spread.selector != ()
            and selected(spread.selector, task.needs)
            for task in there
        )
    least = 2**31 - 1 if not counts else min(counts.values())
    if len(counts) < (1 if spread.least_domains is None else spread.least_domains):
        least = 0
    itself = 1 if selected(spread.selector, needs) else 0
    return counts.get(labels_of(node)[spread.key], 0) + itself - least <= spread.most


def means(term: AffinityTerm, needs: Requirements) -> bool:
    return (not term.namespaces or needs.namespace in term.namespaces) and selected(term.selector, needs)


def affinity_allows(
    needs: Requirements, constraints: Constraints, node: Node, nodes: list[Node], there: list[There]
) -> bool:
    labels = {each.name: labels_of(each) for each in nodes}
    here = labels[node.name]
    return (
        has_affinity(needs, constraints, here, labels, there)
        and not any(
            term.key in here and labels[task.node].get(term.key) == here[term.key]
            for term in constraints.anti_affinity
            for task in there
            if means(term, task.needs)
        )
        and not any(
            term.key in here and labels[task.node].get(term.key) == here[term.key]
            for task in there
            if task.needs.constraints
            for term in task.needs.constraints.anti_affinity
            if means(term, needs)
        )
    )


def has_affinity(
    needs: Requirements,
    constraints: Constraints,
    here: dict[str, str],
    labels: dict[str, dict[str, str]],
    there: list[There],
) -> bool:
    if any(term.key not in here for term in constraints.affinity):
        return False
    friends = [
        task for task in there if constraints.affinity and all(means(term, task.needs) for term in constraints.affinity)
    ]
    pairs = {
        (term.key, labels[friend.node][term.key])
        for friend in friends
        for term in constraints.affinity
        if term.key in labels[friend.node]
    }
    if all((term.key, here[term.key]) in pairs for term in constraints.affinity):
        return True
    return not pairs and all(means(term, needs) for term in constraints.affinity)
