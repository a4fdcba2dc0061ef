"""The test bed itself, on the real programs: what it starts works, what it breaks comes back, what it ends is gone."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.beds.kubernetes import (
    Api,
    ApiRefused,
    ControlPlane,
    Part,
    add_nodes,
    add_pods,
    eventually,
    fake_node,
    fake_pod,
)
from tests.beds.kubernetes.client import names
from tests.beds.kubernetes.fleet import add_namespace
from tests.beds.kubernetes.processes import PartFailed, Process

MakePlane = Callable[..., ControlPlane]
WORD = {"WORD": "here", "PATH": os.environ["PATH"]}


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def _pod(api: Api, namespace: str, name: str) -> Any:
    return api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")


def _phase(api: Api, namespace: str, name: str) -> str:
    return str(_pod(api, namespace, name)["status"]["phase"])


def test_a_bound_pod_runs_on_a_fake_node(played: ControlPlane, fresh_namespace: str) -> None:
    api = played.api
    add_nodes(api, [fake_node("here", resources={"wattloom.dev/milliwatts": "90000"})])
    add_pods(api, fresh_namespace, [fake_pod("at-once", node="here"), fake_pod("nowhere")])
    eventually(lambda: _phase(api, fresh_namespace, "at-once") == "Running")
    assert _phase(api, fresh_namespace, "nowhere") == "Pending"
    assert api.get("/api/v1/nodes/here")["status"]["allocatable"]["wattloom.dev/milliwatts"] == "90k"


def test_a_deleted_pod_of_a_fake_node_is_gone(played: ControlPlane, fresh_namespace: str) -> None:
    api = played.api
    add_nodes(api, [fake_node("there")])
    add_pods(api, fresh_namespace, [fake_pod("short", node="there")])
    eventually(lambda: _phase(api, fresh_namespace, "short") == "Running")
    api.delete(f"/api/v1/namespaces/{fresh_namespace}/pods/short")
    eventually(lambda: not api.items(f"/api/v1/namespaces/{fresh_namespace}/pods"))


def test_many_objects_are_made_and_listed_page_by_page(empty_cluster: ControlPlane, fresh_namespace: str) -> None:
    api = empty_cluster.api
    made = add_nodes(api, (fake_node(f"n-{number:04}") for number in range(60)))
    assert [node["metadata"]["name"] for node in made] == [f"n-{number:04}" for number in range(60)]
    assert sorted(names(api.items("/api/v1/nodes", page=25))) == [f"n-{number:04}" for number in range(60)]


def test_a_user_without_roles_is_refused_and_one_with_a_role_may(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    api = control_plane.api
    nobody = Api(control_plane.access_of_user("nobody-special"))
    path = f"/api/v1/namespaces/{fresh_namespace}/pods"
    with pytest.raises(ApiRefused, match="Forbidden") as refused:
        nobody.get(path)
    assert refused.value.status == 403
    _allow(api, fresh_namespace, {"kind": "User", "name": "nobody-special", "apiGroup": "rbac.authorization.k8s.io"})
    assert eventually(lambda: nobody.get(path))["items"] == []
    with pytest.raises(ApiRefused, match="Forbidden"):
        nobody.post(path, fake_pod("not-allowed"))


def test_a_service_account_has_exactly_its_roles_and_its_kubeconfig_works(
    control_plane: ControlPlane, fresh_namespace: str
) -> None:
    api = control_plane.api
    accounts = f"/api/v1/namespaces/{fresh_namespace}/serviceaccounts"
    api.post(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    _allow(api, fresh_namespace, {"kind": "ServiceAccount", "name": "reader", "namespace": fresh_namespace})
    access = control_plane.access_of_account(fresh_namespace, "reader")
    reader = Api(access)
    assert eventually(lambda: reader.get(f"/api/v1/namespaces/{fresh_namespace}/pods"))["items"] == []
    with pytest.raises(ApiRefused, match="Forbidden"):
        reader.get("/api/v1/nodes")
    written = control_plane.kubeconfig_of(access, "reader").read_text()
    assert f"token: {access.token}" in written
    assert f"server: {control_plane.url}" in written


def _allow(api: Api, namespace: str, who: dict[str, str]) -> None:
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "get"]}
    api.post(f"{base}/roles", {"metadata": {"name": "reads"}, "rules": [rule]})
    role = {"kind": "Role", "name": "reads", "apiGroup": "rbac.authorization.k8s.io"}
    api.post(f"{base}/rolebindings", {"metadata": {"name": "reads"}, "roleRef": role, "subjects": [who]})


@pytest.mark.slow
def test_all_five_parts_place_and_run_a_pod_and_nothing_is_left(make_plane: MakePlane) -> None:
    plane = make_plane(controllers=True, scheduler=True, kwok=True)
    add_nodes(plane.api, [fake_node("small", cpu="1"), fake_node("big", cpu="64")])
    add_namespace(plane.api, "work")
    eventually(lambda: plane.api.get("/api/v1/namespaces/work/serviceaccounts/default"))
    add_pods(plane.api, "work", [fake_pod("needs-room", cpu="8")])
    eventually(lambda: _phase(plane.api, "work", "needs-room") == "Running", 60)
    assert _pod(plane.api, "work", "needs-room")["spec"]["nodeName"] == "big"
    pids = plane.pids()
    assert len(pids) == 5
    plane.stop_part(Part.KWOK)
    plane.mend()
    assert plane.pid(Part.KWOK) is None  # it was ended, not broken
    plane.stop()
    assert [pid for pid in pids if _alive(pid)] == []


@pytest.mark.slow
def test_objects_outlive_a_killed_api_server_and_a_killed_etcd_and_all_can_be_mended(breakable: ControlPlane) -> None:
    plane = breakable
    add_nodes(plane.api, [fake_node("kept")])
    before = plane.pid(Part.ETCD)
    plane.restart(Part.ETCD)
    assert plane.pid(Part.ETCD) != before
    assert eventually(lambda: list(names(plane.api.items("/api/v1/nodes")))) == ["kept"]
    plane.kill(Part.API_SERVER)
    assert plane.pid(Part.API_SERVER) is None
    assert not plane.api.ready()
    plane.pause(Part.ETCD)
    plane.mend()
    assert list(names(plane.api.items("/api/v1/nodes"))) == ["kept"]


@pytest.mark.slow
def test_a_part_that_cannot_start_shows_the_end_of_its_log_and_leaves_nothing(
    tmp_path: Path, make_plane: MakePlane
) -> None:
    with pytest.raises(PartFailed, match=r"(?s)kube-apiserver ended before it was ready.*authorization-mode"):
        make_plane(flags={Part.API_SERVER: {"authorization-mode": "Nonsense"}})
    words = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert [each for each in words if os.fsencode(tmp_path) in each] == []


PARENT = """
import sys, time
from pathlib import Path
from tests.beds.kubernetes.processes import Process
part = Process("a part", ["sleep", "600"], Path(sys.argv[1]) / "log")
part.start()
print(part.pid, flush=True)
time.sleep(600)
"""


def test_parts_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        part = int(parent.stdout.readline())
        assert _alive(part)
        parent.send_signal(signal.SIGKILL)
    eventually(lambda: not _alive(part))


COUNTS = "import sys, threading, time\nfor _ in range(8): threading.Thread(target=lambda: time.sleep(600)).start()\n"


def test_a_part_that_is_paused_has_stopped_with_all_its_threads_and_goes_on_later(tmp_path: Path) -> None:
    part = Process("a part", [sys.executable, "-c", f"{COUNTS}print('begun', flush=True)"], tmp_path / "log")
    part.start()
    try:
        part.wait_until(lambda: "begun" in part.tail(), 30)
        for _ in range(3):
            part.pause()
            assert _states(part) == {"T"}
            part.signal(signal.SIGCONT)
            eventually(lambda: "T" not in _states(part))
    finally:
        part.kill()
    assert part.wait(1) == -signal.SIGKILL


def _states(part: Process) -> set[str]:
    tasks = Path(f"/proc/{part.pid}/task").glob("*/stat")
    return {task.read_text().rpartition(") ")[2][0] for task in tasks}


def test_a_part_that_does_not_end_is_said_so_with_the_end_of_its_log(tmp_path: Path) -> None:
    part = Process(
        "a part", ["sh", "-c", "echo $WORD in $PWD; exec sleep 600"], tmp_path / "log", cwd=tmp_path, env=WORD
    )
    part.start()
    try:
        part.wait_until(lambda: f"here in {tmp_path}" in part.tail(), 30)
        with pytest.raises(PartFailed, match=r"(?s)did not end within.*here in"):
            part.wait(0.01)
    finally:
        assert part.stop() == -signal.SIGTERM


def test_a_part_started_by_a_thread_outlives_the_thread(tmp_path: Path) -> None:
    part = Process("a part", ["sleep", "600"], tmp_path / "log")
    thread = Thread(target=part.start)
    thread.start()
    thread.join()
    try:
        with pytest.raises(PartFailed, match="not ready within"):
            part.wait_until(lambda: False, 0.3)
        assert part.pid is not None
    finally:
        part.kill()
    assert part.pid is None
