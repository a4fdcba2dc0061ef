"""Kubernetes' filters written down once more, node by node and task by task, with nothing kept: what masks must equal.

Everything is worked out from the specs of nodes and the list of who is where, after the descriptions of the filters
NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, VolumeBinding, PodTopologySpread and InterPodAffinity.
"""

import re
from dataclasses import dataclass

from wattloom.cluster.node import Node
from wattloom.workload.requirements import Requirements
from wattloom.workload.where import Company, Expression, NodeTerm, Port, Spread, Taint, Toleration, Where


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
    where = needs.where or Where()
    return {
        node.name
        for node in nodes
        if open_to(where, node)
        and not untolerated(where, node)
        and chosen(needs, where, node)
        and ports_free(where, node, there)
        and reaches_volumes(where, node)
        and evenly_spread(needs, where, node, nodes, there)
        and in_good_company(needs, where, node, nodes, there)
    }


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    return (
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
    )


def open_to(where: Where, node: Node) -> bool:
    taint = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    return not node.closed or any(tolerates(toleration, taint) for toleration in where.tolerations)


def untolerated(where: Where, node: Node) -> bool:
    forbidding = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return any(not any(tolerates(toleration, taint) for toleration in where.tolerations) for taint in forbidding)


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


def chosen(needs: Requirements, where: Where, node: Node) -> bool:
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (*needs.labels, *where.selector)):
        return False
    return where.terms is None or any(term_holds(term, labels, node.name) for term in where.terms)


def reaches_volumes(where: Where, node: Node) -> bool:
    return all(any(term_holds(term, labels_of(node), "") for term in terms) for terms in where.volumes)


def ports_free(where: Where, node: Node, there: list[There]) -> bool:
    taken = [port for task in there if task.node == node.name and task.needs.where for port in task.needs.where.ports]
    return not any(clash(wanted, other) for wanted in where.ports for other in taken)


def clash(one: Port, other: Port) -> bool:
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.address == other.address or "0.0.0.0" in (one.address, other.address))


def selected(selector: tuple[Expression, ...] | None, needs: Requirements) -> bool:
    return selector is not None and all(matches(expression, dict(needs.tags)) for expression in selector)


def evenly_spread(needs: Requirements, where: Where, node: Node, nodes: list[Node], there: list[There]) -> bool:
    return all(spread_allows(spread, needs, where, node, nodes, there) for spread in where.spread)


def spread_allows(
    spread: Spread, needs: Requirements, where: Where, node: Node, nodes: list[Node], there: list[There]
) -> bool:
    if spread.key not in labels_of(node):
        return False
    counts: dict[str, int] = {}
    for other in nodes:
        if any(each.key not in labels_of(other) for each in where.spread):
            continue
        if spread.honor_affinity and not chosen(needs, where, other):
            continue
        if spread.honor_taints and untolerated(where, other):
            continue
        domain = labels_of(other)[spread.key]
        counts[domain] = counts.get(domain, 0) + sum(
            task.node == other.name
            and not task.leaving
            and task.needs.space == needs.space
            and spread.selector != ()
            and selected(spread.selector, task.needs)
            for task in there
        )
    least = 2**31 - 1 if not counts else min(counts.values())
    if len(counts) < (1 if spread.least_domains is None else spread.least_domains):
        least = 0
    itself = 1 if selected(spread.selector, needs) else 0
    return counts.get(labels_of(node)[spread.key], 0) + itself - least <= spread.most


def is_company(company: Company, needs: Requirements) -> bool:
    return (not company.spaces or needs.space in company.spaces) and selected(company.selector, needs)


def in_good_company(needs: Requirements, where: Where, node: Node, nodes: list[Node], there: list[There]) -> bool:
    labels = {each.name: labels_of(each) for each in nodes}
    here = labels[node.name]
    return (
        has_company(needs, where, here, labels, there)
        and not any(
            company.key in here and labels[task.node].get(company.key) == here[company.key]
            for company in where.apart
            for task in there
            if is_company(company, task.needs)
        )
        and not any(
            company.key in here and labels[task.node].get(company.key) == here[company.key]
            for task in there
            if task.needs.where
            for company in task.needs.where.apart
            if is_company(company, needs)
        )
    )


def has_company(
    needs: Requirements, where: Where, here: dict[str, str], labels: dict[str, dict[str, str]], there: list[There]
) -> bool:
    if any(company.key not in here for company in where.near):
        return False
    friends = [task for task in there if where.near and all(is_company(company, task.needs) for company in where.near)]
    pairs = {
        (company.key, labels[friend.node][company.key])
        for friend in friends
        for company in where.near
        if company.key in labels[friend.node]
    }
    if all((company.key, here[company.key]) in pairs for company in where.near):
        return True
    return not pairs and all(is_company(company, needs) for company in where.near)
