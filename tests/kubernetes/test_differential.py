"""Our filters against kube-scheduler's own, on the same cluster: random pods and nodes, no difference.

`WATTLOOM_DIFFERENTIAL_CASES` sets how many pods are compared (`make differential`: 2,000), `WATTLOOM_DIFFERENTIAL_SEED`
the first of the seeds. A difference tells its seed, and what is known of it becomes a test with a name in
`test_feasible.py`.
"""

import os
from collections.abc import Iterator

import pytest
from tests.beds.kubernetes import ControlPlane, Part
from tests.beds.kubernetes.differential import Differential, Tried
from tests.beds.kubernetes.reference import Reference
from tests.kubernetes.conftest import programs_or_skip

CASES = int(os.environ.get("WATTLOOM_DIFFERENTIAL_CASES", "150"))
SEED = int(os.environ.get("WATTLOOM_DIFFERENTIAL_SEED", "1"))
PODS = 50
"""In each cluster."""


@pytest.fixture
def differential(empty_cluster: ControlPlane) -> Iterator[Differential]:
    programs_or_skip("kube-scheduler")
    with Reference() as reference:
        yield Differential(empty_cluster, reference)
        empty_cluster.stop_part(Part.SCHEDULER)


def test_random_pods_may_go_to_the_very_nodes_that_kube_scheduler_finds(differential: Differential) -> None:
    tried: list[Tried] = []
    while sum(each.cases for each in tried) < CASES:
        left = CASES - sum(each.cases for each in tried)
        tried.append(differential.random_cluster(SEED + len(tried), min(PODS, left)))
    differences = [each for cluster in tried for each in cluster.differences]
    cases, nowhere, everywhere = (sum(column) for column in zip(*(each[:3] for each in tried), strict=True))
    print(f"{cases} pods in {len(tried)} clusters: {nowhere} fit nowhere, {everywhere} everywhere")
    assert not differences, f"{len(differences)} of {cases}\n" + "\n".join(map(str, differences[:5]))
    # Pods that fit on some nodes, and not on others, are those that can tell two schedulers apart.
    assert cases - nowhere - everywhere > cases / 4
