"""Whether labels satisfy expressions, and tolerations taints.

Owns what each operator means, which is what it means in Kubernetes, and the checks that hold for every node of a class.
What only one node can answer (its name, labels of its own) counts as satisfied here: `rules` looks at it.
"""

from typing import Final

from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.workload.constraints import Constraints, Expression, NodeTerm, Taint, Toleration

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable")
"""Who tolerates this goes to closed nodes too."""
DIGITS: Final = frozenset("0123456789")
LARGEST: Final = 2**63 - 1


def holds(expression: Expression, value: str | None) -> bool:
    """Whether a label with this value satisfies the expression; None: there is no such label."""
    operator = expression.operator
    if operator == "In":
        return value is not None and value in expression.values
    if operator == "NotIn":
        return value is None or value not in expression.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    bound = whole_number(expression.values[0]) if len(expression.values) == 1 else None
    number = whole_number(value) if value is not None else None
    if bound is None or number is None:
        return False
    return number > bound if operator == "Gt" else number < bound


def whole_number(text: str) -> int | None:
    """A decimal number of 64 bits, as label values are compared; None: it is none."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not DIGITS.issuperset(digits):
        return None
    number = int(text)
    return number if -LARGEST - 1 <= number <= LARGEST else None


def selects(selector: tuple[Expression, ...] | None, labels: dict[str, str]) -> bool:
    """Whether tasks with these labels are meant; None means nobody, an empty selector everybody."""
    if selector is None:
        return False
    return all(holds(expression, labels.get(expression.key)) for expression in selector)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def tolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    """Whether none of the taints, which all forbid, keeps the task away."""
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def refusal(constraints: Constraints | None, cls: NodeClass) -> Reason | None:
    """Why no node of this class may take a task with these rules, whatever is taken of it."""
    tolerations = constraints.tolerations if constraints is not None else ()
    if cls.closed and not tolerated((UNSCHEDULABLE,), tolerations):
        return Reason.CLOSED
    if cls.taints and not tolerated(cls.taints, tolerations):
        return Reason.TAINT
    if constraints is None:
        return None
    if any(name not in cls.own and cls.labels.get(name) != value for name, value in constraints.selector):
        return Reason.AFFINITY
    if constraints.terms is not None and not any(may_hold(term, cls) for term in constraints.terms):
        return Reason.AFFINITY
    if any(not any(may_hold(term, cls) for term in terms) for terms in constraints.volumes):
        return Reason.VOLUME
    return None


def may_hold(term: NodeTerm, cls: NodeClass) -> bool:
    """Whether the term can hold for a node of this class."""
    if not term.labels and not term.fields:
        return False
    for expression in term.labels:
        if expression.key not in cls.own and not holds(expression, cls.labels.get(expression.key)):
            return False
    return True


def looks_at(constraints: Constraints, labels: tuple[tuple[str, str], ...]) -> tuple[frozenset[str], bool]:
    """The labels of nodes that a task's selectors and terms ask for, and whether a node's name is asked for."""
    keys = {name for name, _ in (*labels, *constraints.selector)}
    by_name = False
    for terms in (constraints.terms or (), *constraints.volumes):
        for term in terms:
            keys.update([expression.key for expression in term.labels])
            by_name = by_name or bool(term.fields)
    return frozenset(keys), by_name
