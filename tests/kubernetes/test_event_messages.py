"""Why a pod waits, in kube-scheduler's words."""

import pytest

from wattloom.cluster.fit import Terms
from wattloom.cluster.node import Node
from wattloom.cluster.reasons import Reason
from wattloom.kubernetes.model.event_messages import unavailable
from wattloom.testing.builders import LINEAR
from wattloom.testing.harness import Harness
from wattloom.units import GIB
from wattloom.workload.requirements import Requirements

GPU = "example.com/gpu"


def said(needs: Requirements, *, guarantee: float = 1.0) -> str:
    """Two nodes, one of them in use in part."""
    h = Harness()
    for name, gpus in (("a", 4), ("b", 0)):
        h.join(Node(name, "linear", 4.0, 8 * GIB, resources={"pods": 3, GPU: gpus}), LINEAR)
    h.submit("x", needs=Requirements(cpu=2.0, memory=4 * GIB, resources=((GPU, 2), ("pods", 1))))
    assert h.where("x") == "a"
    h.submit("t", needs=needs)
    record = h.engine.ledger.tasks["t"]
    return unavailable(record.shape, h.engine.ledger.view, Reason.NEVER_FITS, terms=Terms(guarantee))


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (Requirements(cpu=9.0), "2 Insufficient cpu"),
        (Requirements(cpu=1.0, memory=9 * GIB), "2 Insufficient memory"),
        (Requirements(cpu=9.0, memory=9 * GIB), "2 Insufficient cpu, 2 Insufficient memory"),
        (Requirements(cpu=9.0, memory=5 * GIB), "2 Insufficient cpu, 1 Insufficient memory"),
        (Requirements(resources=((GPU, 8),)), f"2 Insufficient {GPU}"),
        (Requirements(resources=((GPU, 3),)), f"2 Insufficient {GPU}"),
        (Requirements(resources=(("pods", 4),)), "2 Too many pods"),
    ],
)
def test_the_resource_is_named_whether_a_node_is_too_small_or_full(needs: Requirements, words: str) -> None:
    assert said(needs) == f"0/2 nodes are available: {words}."


def test_what_the_policy_does_not_ask_for_is_not_said_to_be_missing() -> None:
    assert "cpu" not in said(Requirements(cpu=4.5, memory=9 * GIB), guarantee=0.4)
