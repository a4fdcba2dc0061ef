"""Decisions among many rules between tasks, beside a plain comparison of each new task with every rule.

Twenty pods wish to be apart from a thousand others each, by labels of their own; then pods come that none of these
rules means, each with a label that nobody had before. The peer does nothing but compare each of them with every
selector that is there, by the same function: what following the rules one by one costs at the least. The engine's time
is that of the whole decision, and of a thousand rules that a hundred kinds of pods share.
"""

import argparse
import statistics
import time
from typing import Any

from reporting import Goal, finish

from wattloom.cluster.node import Node
from wattloom.cluster.task_group import Selection, is_meant
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import Place
from wattloom.testing import builders
from wattloom.workload.constraints import AffinityTerm, Constraints, Expression
from wattloom.workload.requirements import Requirements

TERMS = 1_000
CHOOSY = 20
NAMESPACE = "default"


def apart_from(labels: list[str]) -> Constraints:
    return Constraints(
        anti_affinity=tuple(
            AffinityTerm("host", (Expression("app", "In", (label,)),), (NAMESPACE,)) for label in labels
        )
    )


def pod(app: str, constraints: Constraints | None = None) -> Requirements:
    return Requirements(0.1, constraints=constraints, task_labels=(("app", app),), namespace=NAMESPACE)


def cluster(nodes: int) -> Engine:
    engine = Engine(MarginalEnergy(tdp=False, guarantee=1.0))
    engine.handle(ev.MachineDefined(0.0, builders.LINEAR))
    engine.handle(ev.FunctionDefined(0.0, builders.function("f", seconds={"linear": 10.0})))
    for number in range(nodes):
        name = f"n{number:05d}"
        engine.handle(ev.NodeJoined(0.0, Node(name, "linear", cpu=50.0, own={"host": name})))
    return engine


def decide(engine: Engine, pods: list[Requirements], first: int) -> list[float]:
    """Seconds of each decision."""
    spent = []
    for number, needs in enumerate(pods, first):
        event = ev.TaskSubmitted(1.0 + number * 1e-3, builders.task(str(number), "f", needs))
        begun = time.perf_counter()
        answer = engine.handle(event)
        spent.append(time.perf_counter() - begun)
        assert any(isinstance(each, Place) for each in answer)
    return spent


def compare_plainly(selections: list[Selection], pods: list[Requirements]) -> float:
    """Seconds that a pod takes to be compared with every selector, in the middle."""
    spent = []
    for needs in pods:
        labels = dict(needs.task_labels)
        begun = time.perf_counter()
        meant = [selection for selection in selections if is_meant(selection, labels, needs.namespace)]
        spent.append(time.perf_counter() - begun)
        assert not meant
    return statistics.median(spent)


def row(case: str, nodes: int, choosy: list[Requirements], measured: list[Requirements]) -> dict[str, Any]:
    engine = cluster(nodes)
    decide(engine, choosy, 0)
    spent = decide(engine, measured, len(choosy))
    selections: list[Selection] = [
        (term.selector, term.namespaces)
        for needs in {*choosy, *measured[:1]}
        if needs.constraints is not None
        for term in needs.constraints.anti_affinity
    ]
    plain_s = compare_plainly(selections, [pod(f"new-{number}") for number in range(20)])
    middle = statistics.median(spent)
    return {
        "case": case,
        "nodes": nodes,
        "rules": len(selections),
        "decision_ms": 1e3 * middle,
        "mean_ms": 1e3 * statistics.fmean(spent),
        "plain_ms": 1e3 * plain_s,
        "ratio": plain_s / middle,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=2_000)
    options.add_argument("--pods", type=int, default=300)
    options.add_argument("--data", help="not needed here")
    given = options.parse_args()
    own = [pod(f"p{each}", apart_from([f"x{each}-{term}" for term in range(TERMS)])) for each in range(CHOOSY)]
    shared = apart_from([f"x{term}" for term in range(TERMS)])
    rows = [
        row("rules of others", given.nodes, own, [pod(f"q{number}") for number in range(given.pods)]),
        row("rules of its own", given.nodes, [], [pod(f"p{number}", shared) for number in range(given.pods)]),
    ]
    finish(
        "placement-rules",
        rows,
        [
            Goal.at_least("ratio to comparing with 20,000 rules of others", 10.0, rows[0]["ratio"]),
            Goal.at_most("ms of a decision with 1,000 rules of its own", 5.0, rows[1]["decision_ms"]),
        ],
    )


if __name__ == "__main__":
    main()
