"""Random nodes and tasks with rules, out of so few names that rules meet tasks and nodes they were made for."""

import random

from wattloom.cluster.node import Node
from wattloom.workload.constraints import (
    AffinityTerm,
    Constraints,
    Expression,
    NodeTerm,
    Operator,
    Port,
    Spread,
    Taint,
    Toleration,
)
from wattloom.workload.requirements import Requirements

ZONES = ("a", "b", "c")
APPS = ("web", "db", "cache")
NAMESPACES = ("", "prod")
KEYS = ("zone", "host", "rack")
MANY = 40
"""Wishes to be apart, of so few kinds that many are about one label: they are counted together."""
TAINTS = (
    Taint("spot", "yes"),
    Taint("spot", "no", "NoExecute"),
    Taint("wish", "", "PreferNoSchedule"),
    Taint("node.kubernetes.io/unschedulable"),
)


def some_node(draw: random.Random, name: str) -> Node:
    """Its host name is its own; a rack is sometimes its own, sometimes its class's."""
    labels = {"zone": draw.choice(ZONES)} if draw.random() < 0.85 else {}
    own = {"host": name} if draw.random() < 0.9 else {}
    (labels if draw.random() < 0.5 else own)["rack"] = draw.choice(("1", "2", "10", "x"))
    taints = tuple(draw.sample(TAINTS, draw.choice((0, 0, 0, 1, 2))))
    return Node(name, "linear", cpu=100.0, labels=labels, taints=taints, closed=draw.random() < 0.1, own=own)


def some_needs(draw: random.Random, cpu: float = 0.5) -> Requirements:
    task_labels = {"app": draw.choice(APPS)} if draw.random() < 0.9 else {}
    if draw.random() < 0.2:
        task_labels["tier"] = "front"
    constraints = some_constraints(draw) if draw.random() < 0.85 else None
    labels = (("rack", "1"),) if draw.random() < 0.05 else ()
    namespace = draw.choice(NAMESPACES)
    return Requirements(
        cpu, labels=labels, constraints=constraints, task_labels=tuple(sorted(task_labels.items())), namespace=namespace
    )


def some_constraints(draw: random.Random) -> Constraints:
    def maybe(chance: float) -> int:
        return draw.choice((1, 1, 2)) if draw.random() < chance else 0

    return Constraints(
        selector=(("zone", draw.choice(ZONES)),) if draw.random() < 0.1 else (),
        terms=tuple(some_term(draw) for _ in range(maybe(1.0))) if draw.random() < 0.25 else None,
        volumes=tuple((some_term(draw), some_term(draw)) for _ in range(maybe(0.1))),
        tolerations=tuple(some_toleration(draw) for _ in range(maybe(0.5))),
        ports=tuple(some_port(draw) for _ in range(maybe(0.2))),
        spread=tuple(some_spread(draw) for _ in range(maybe(0.35))),
        affinity=tuple(some_affinity_term(draw) for _ in range(maybe(0.25))),
        anti_affinity=tuple(
            some_affinity_term(draw) for _ in range(maybe(0.3) or (MANY if draw.random() < 0.04 else 0))
        ),
    )


def some_term(draw: random.Random) -> NodeTerm:
    labels = tuple(some_expression(draw) for _ in range(draw.choice((0, 1, 1, 2))))
    names = tuple(f"n{draw.randrange(6)}" for _ in range(2))
    by_name = draw.choice(((), (), (), (Expression("metadata.name", draw.choice(("In", "NotIn")), names),)))
    return NodeTerm(labels, by_name)


def some_expression(draw: random.Random) -> Expression:
    key = draw.choice(KEYS)
    operators: tuple[Operator, ...] = ("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    operator = draw.choice(operators)
    if operator in ("Gt", "Lt"):
        return Expression("rack", operator, (draw.choice(("1", "2", "5")),))
    if operator in ("Exists", "DoesNotExist"):
        return Expression(key, operator)
    values = {"zone": ZONES, "host": ("n0", "n1", "n2"), "rack": ("1", "2", "x")}[key]
    return Expression(key, operator, tuple(draw.sample(values, draw.choice((1, 2)))))


def some_toleration(draw: random.Random) -> Toleration:
    return draw.choice(
        (
            Toleration("spot", "Exists"),
            Toleration("spot", "Equal", "yes", "NoSchedule"),
            Toleration("", "Exists"),
            Toleration("", "Exists", "", "NoExecute"),
            Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),
        )
    )


def some_port(draw: random.Random) -> Port:
    return Port(draw.choice((80, 443)), draw.choice(("TCP", "TCP", "UDP")), draw.choice(("0.0.0.0", "10.0.0.1", "::1")))


def some_selector(draw: random.Random) -> tuple[Expression, ...] | None:
    return draw.choice(
        (
            None,
            (),
            (Expression("app", "In", (draw.choice(APPS),)),),
            (Expression("app", "In", (draw.choice(APPS),)),),
            (Expression("app", "In", ("web", "db")),),
            (Expression("tier", "Exists"),),
            (Expression("app", "NotIn", (draw.choice(APPS),)), Expression("tier", "DoesNotExist")),
            (Expression("app", "In", ("cache", "db")), Expression("tier", draw.choice(("Exists", "DoesNotExist")))),
        )
    )


def some_spread(draw: random.Random) -> Spread:
    return Spread(
        draw.choice(KEYS),
        draw.choice((1, 1, 2)),
        some_selector(draw),
        draw.choice((None, None, 1, 2, 4)),
        draw.random() < 0.7,
        draw.random() < 0.3,
    )


def some_affinity_term(draw: random.Random) -> AffinityTerm:
    return AffinityTerm(draw.choice(KEYS), some_selector(draw), draw.choice(((), ("",), ("prod",), ("", "prod"))))
