"""Selectors of Kubernetes as the engine's expressions.

Owns the translation of label selectors, node selectors, tolerations and ports. Which pods or nodes they hold for is
the engine's business; only namespaces are looked up here, because the engine knows them by name alone.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, cast

from wattloom.cluster.matching import selects
from wattloom.kubernetes.model.objects import (
    Container,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    Requirement,
)
from wattloom.kubernetes.model.objects import Toleration as PodToleration
from wattloom.kubernetes.model.storage_cache import StorageCache
from wattloom.workload.constraints import AffinityTerm, Effect, Expression, NodeTerm, Operator, Port, Toleration

_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_ONE_VALUE: Final = ("Gt", "Lt")
_VALUES: Final = ("In", "NotIn")
_NO_VALUE: Final = ("Exists", "DoesNotExist")
NO_CONSTRAINTS: Final = NodeTerm()


def expressions(selector: LabelSelector | None) -> tuple[Expression, ...] | None:
    """A label selector, sorted. None selects nothing, an empty one everything."""
    if selector is None:
        return None
    labels = [Expression(key, "In", (value,)) for key, value in selector.match_labels.items()]
    return in_order((*labels, *map(expression, selector.match_expressions)))


def in_order(each: Iterable[Expression]) -> tuple[Expression, ...]:
    """The same conditions in one order, each once, so that equal selectors are equal values."""
    return tuple(sorted(set(each), key=lambda one: (one.key, one.operator, one.values)))


def expression(requirement: Requirement) -> Expression:
    return Expression(requirement.key, cast(Operator, requirement.operator), tuple(sorted(requirement.values)))


def node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """One of them must hold."""
    return tuple(map(node_term, selector.node_selector_terms))


def node_term(term: NodeSelectorTerm) -> NodeTerm:
    """Kubernetes lets a term hold for no node if any part of it cannot be read."""
    if not all(map(_readable, term.match_expressions)) or not all(map(_readable_field, term.match_fields)):
        return NO_CONSTRAINTS
    return NodeTerm(
        in_order(map(expression, term.match_expressions)),
        in_order(map(expression, term.match_fields)),
    )


def _readable(each: Requirement) -> bool:
    count = len(each.values)
    if each.operator in _ONE_VALUE:
        return count == 1 and _NUMBER.fullmatch(each.values[0]) is not None and _fits(each.values[0])
    right = (each.operator in _VALUES and count > 0) or (each.operator in _NO_VALUE and count == 0)
    return right and all(map(_VALUE.fullmatch, each.values))


def _fits(number: str) -> bool:
    """A number below zero is no value of a label, and one of more than 64 bits none for Kubernetes."""
    return _VALUE.fullmatch(number) is not None and -(2**63) <= int(number) < 2**63


def _readable_field(each: Requirement) -> bool:
    return each.operator in _VALUES and len(each.values) == 1


@lru_cache(maxsize=4_096)
def tolerations(each: tuple[PodToleration, ...]) -> tuple[Toleration, ...]:
    """Sorted, each once; for how long they tolerate does not matter here."""
    found = {
        Toleration(one.key, "Exists" if one.operator == "Exists" else "Equal", one.value, cast(Effect, one.effect))
        for one in each
    }
    return tuple(sorted(found, key=lambda one: (one.key, one.operator, one.value, one.effect)))


def ports(containers: Iterable[Container], init_containers: Iterable[Container]) -> tuple[Port, ...]:
    """Of the host, by all containers that stay."""
    staying = (*containers, *(each for each in init_containers if each.restart_policy == "Always"))
    found = {
        Port(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")
        for container in staying
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(sorted(found, key=lambda one: (one.port, one.protocol, one.address)))


# -- other pods ------------------------------------------------------------------------------------------------------


def affinity_term(term: PodAffinityTerm, namespace: str, storage: StorageCache) -> AffinityTerm:
    """An affinity term; its label keys to match have become part of its selector in the API server."""
    if term.namespace_selector is None:
        namespaces = term.namespaces or (namespace,)
    elif not term.namespace_selector.match_labels and not term.namespace_selector.match_expressions:
        return AffinityTerm(term.topology_key, expressions(term.label_selector))
    else:
        wanted = expressions(term.namespace_selector)
        chosen = (name for name, each in storage.namespaces.items() if selects(wanted, each.metadata.labels))
        namespaces = (*term.namespaces, *chosen)
    if not namespaces:  # an empty tuple would be all of them
        return AffinityTerm(term.topology_key, None)
    return AffinityTerm(term.topology_key, expressions(term.label_selector), tuple(sorted(set(namespaces))))
