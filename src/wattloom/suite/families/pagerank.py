"""A directed graph of 500 vertices and 250 edges, and the rank of each vertex.

Owns the graph. Most vertices have no edge at all, as in the ISA study.
"""

from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect

VERTICES: Final = 500
EDGES: Final = 250
DAMPING: Final = 0.85
CLOSE: Final = 1e-7


def event(seed: int) -> dict[str, Any]:
    ends = Chance("pagerank", seed).below(VERTICES, 2 * EDGES)
    return {"vertices": VERTICES, "edges": [[ends[at], ends[at + 1]] for at in range(0, 2 * EDGES, 2)]}


def check(given: dict[str, Any], result: Any) -> None:
    """The ranks add up to 1 and are those of the power iteration."""
    import numpy as np

    ranks = np.asarray(result["ranks"], float)
    expect(ranks.shape == (VERTICES,), f"there are {ranks.size} ranks, not {VERTICES}")
    expect(abs(float(ranks.sum()) - 1.0) < CLOSE, f"the ranks add up to {ranks.sum()}, not to 1")
    away = float(np.abs(ranks - _iterated(given)).max())
    expect(away < CLOSE, f"a rank is {away:g} away from that of the power iteration")


def _iterated(given: dict[str, Any]) -> Any:
    """A vertex without a way out leads everywhere."""
    import numpy as np

    count = given["vertices"]
    edges = np.zeros((count, count))
    for source, target in given["edges"]:
        edges[target, source] += 1.0
    out = edges.sum(axis=0)
    step = np.where(out > 0.0, edges / np.where(out > 0.0, out, 1.0), 1.0 / count)
    ranks = np.full(count, 1.0 / count)
    for _ in range(200):
        ranks = (1.0 - DAMPING) / count + DAMPING * step @ ranks
    return ranks
