"""pagerank-python: the rank of each vertex of a graph, by igraph."""

from typing import Any

import igraph


def handler(event: dict[str, Any]) -> dict[str, Any]:
    graph = igraph.Graph(n=event["vertices"], edges=event["edges"], directed=True)
    return {"ranks": graph.pagerank(damping=0.85)}
