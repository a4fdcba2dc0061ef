"""Where a task may go, beyond how much it needs: expressions over labels, tolerations, ports, spreading, affinity.

Owns these rules as values. They mean what the fields of the same names mean in Kubernetes, for every backend. Knows no
node, and decides nothing.
"""

from typing import Final, Literal

import msgspec

from wattloom.bounds import MOST_COUNT, MOST_RULES

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""]
MOST_PORT: Final = 65_535
Labels = tuple[tuple[str, str], ...]
"""Labels, sorted by name."""


class Expression(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One condition on labels."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


class NodeTerm(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Conditions that must all hold for a node. One without any holds for no node."""

    labels: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()
    """On the node's name (`metadata.name`), In or NotIn."""


class Taint(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Keeps tasks away from a node that do not tolerate it."""

    key: str
    value: str = ""
    effect: Effect = "NoSchedule"


class Toleration(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A taint that does not keep the task away. An empty key with `Exists` is every taint, an empty effect every
    effect."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Effect = ""


class Port(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A port of the node that only one task can have."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"


class Spread(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """How unevenly tasks may be spread over the domains of a topology. Only rules that forbid; wishes are not here."""

    key: str
    """Label whose values are the domains."""
    most: int
    """By how much a domain may be ahead of the emptiest (`maxSkew`)."""
    selector: tuple[Expression, ...] | None
    """Which tasks count, of the same namespace; None: none, empty: all."""
    least_domains: int | None = None
    honor_affinity: bool = True
    """Whether nodes that the task's own selector and affinity refuse are left out."""
    honor_taints: bool = False


class AffinityTerm(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename={"namespaces": "spaces"},
):
    """Other tasks that must be, or must not be, in the same domain."""

    key: str
    selector: tuple[Expression, ...] | None
    """None: no task, empty: every task."""
    namespaces: tuple[str, ...] = ()
    """In which namespaces they are looked for, sorted; empty: in all."""


class Constraints(
    msgspec.Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename={"affinity": "near", "anti_affinity": "apart"},
):
    """All such rules of a task. Hashable, as part of its requirements."""

    selector: Labels = ()
    """Labels the node must carry."""
    terms: tuple[NodeTerm, ...] | None = None
    """One of them must hold; None: no condition."""
    volumes: tuple[tuple[NodeTerm, ...], ...] = ()
    """Of each volume that is bound: one of its terms must hold."""
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[Port, ...] = ()
    spread: tuple[Spread, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    """All must be there."""
    anti_affinity: tuple[AffinityTerm, ...] = ()
    """None may be there, and such tasks keep others away in turn."""


def rules_in(constraints: Constraints) -> int:
    """How many rules there are: each is looked at for every kind of node, and kept in mind as long as its task."""
    terms = sum(
        max(1, len(term.labels) + len(term.fields))
        for terms in (constraints.terms or (), *constraints.volumes)
        for term in terms
    )
    return (
        terms
        + len(constraints.tolerations)
        + len(constraints.ports)
        + len(constraints.spread)
        + len(constraints.affinity)
        + len(constraints.anti_affinity)
    )


def constraints_problem(constraints: Constraints) -> tuple[str, str] | None:
    """The first wrong field and what is wrong with it."""
    if rules_in(constraints) > MOST_RULES:
        return "rules", f"are {rules_in(constraints)}; at most {MOST_RULES} are followed"
    for port in constraints.ports:
        if not 1 <= port.port <= MOST_PORT:
            return "ports", f"must be between 1 and {MOST_PORT}, not {port.port}"
    for spread in constraints.spread:
        if not 1 <= spread.most <= MOST_COUNT:
            return "spread.most", f"must be at least 1, not {spread.most}"
        if spread.least_domains is not None and not 1 <= spread.least_domains <= MOST_COUNT:
            return "spread.least_domains", f"must be at least 1, not {spread.least_domains}"
        if not spread.key:
            return "spread.key", "must name the label whose values are the domains"
    if not all(term.key for term in (*constraints.affinity, *constraints.anti_affinity)):
        return "near.key or apart.key", "must name the label whose values are the domains"
    return None
