"""The scene of which golden logs are made plays to its end under a policy that fills one node after the other."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.beds.kubernetes import ControlPlane
from tests.golden import kubernetes_log as scene
from tests.kubernetes.running import nodes_of, scheduling, told

from wattloom.cli.main import cli


def test_a_pod_whose_only_node_is_full_waits_for_a_true_reason_and_has_the_first_room(
    empty_cluster: ControlPlane, fresh_namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`marginal-energy` gives the six pods before it all eight cores of the one arm64 node."""
    monkeypatch.setattr(scene, "SPACE", fresh_namespace)
    api, log = empty_cluster.api, tmp_path / "decisions.log"
    scene.prepare(api)
    with scheduling(empty_cluster, log=log, policy="marginal-energy"):
        scene.happen(api)
        assert nodes_of(api, fresh_namespace)["arm"] == "arm-1"
        told(api, fresh_namespace, "arm", "FailedScheduling", "1 Insufficient cpu")
    assert CliRunner().invoke(cli, ["replay", str(log)]).exit_code == 0
