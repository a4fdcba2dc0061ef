"""A real API server for the tests of Kubernetes: one for each worker of pytest, started when first asked for.

Its programs are found or built (`make kubernetes-binaries`). Without them and without Go the tests are skipped.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.beds.kubernetes import Api, ApiRefused, BinariesMissing, ControlPlane, Part, binaries, eventually
from tests.beds.kubernetes.applying import PATHS, apply
from tests.beds.kubernetes.fleet import add_namespace, clear
from tests.kubernetes.running import Running, scheduling

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.manifests import manifest
from wattloom.kubernetes.scheduler import status_reporter

CRD = PATHS["CustomResourceDefinition"]
PROFILES = "/apis/wattloom.dev/v1alpha1/machineprofiles"
_numbers = count(1)


def programs_or_skip(*names: str) -> None:
    """Have the programs, or skip the test and say how to get them."""
    try:
        binaries(names)
    except BinariesMissing as missing:
        pytest.skip(f"KUBERNETES IS MISSING: {missing}")


# Starting a control plane costs four seconds of CPU time, and pytest-xdist gives a module's tests to several workers:
# so one lasts a worker's whole life. Tests that run beside others leave namespaces behind, but no node, pod or part.


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver, shared by all tests of a worker. No kwok: pods stay as the scheduler leaves them."""
    programs_or_skip("etcd", "kube-apiserver")
    with ControlPlane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture
def empty_cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane without any node or pod, before and after the test."""
    clear(control_plane.api)
    yield control_plane
    clear(control_plane.api)


@pytest.fixture
def fresh_namespace(control_plane: ControlPlane) -> str:
    """The name of a namespace that no other test has."""
    return add_namespace(control_plane.api, f"test-{next(_numbers)}")


@pytest.fixture
def breakable(empty_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane for a test that kills or pauses parts of it; all is mended afterwards."""
    yield empty_cluster
    empty_cluster.mend()


@pytest.fixture(scope="module")
def played(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane with kwok, for the tests of one module: pods on fake nodes run."""
    programs_or_skip("kwok")
    clear(control_plane.api)
    control_plane.start_part(Part.KWOK)
    yield control_plane
    clear(control_plane.api)
    control_plane.stop_part(Part.KWOK)


@pytest.fixture
def make_plane(tmp_path: Path) -> Iterator[Callable[..., ControlPlane]]:
    """Starts a control plane for this test alone, with ControlPlane's options: for flags of its own."""
    planes: list[ControlPlane] = []

    def make(**options: object) -> ControlPlane:
        extra = {"controllers": "kube-controller-manager", "scheduler": "kube-scheduler", "kwok": "kwok"}
        programs_or_skip("etcd", "kube-apiserver", *(name for option, name in extra.items() if options.get(option)))
        planes.append(ControlPlane(tmp_path / f"plane-{len(planes)}", **options))  # type: ignore[arg-type]
        return planes[-1].start()

    yield make
    for plane in planes:
        plane.stop()


# -- for the tests of the scheduler ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """The shared control plane."""
    return control_plane


@pytest.fixture
def api(empty_cluster: ControlPlane) -> Api:
    """Its API, without any node or pod before and after the test."""
    return empty_cluster.api


@pytest.fixture
def space(api: Api) -> str:
    """A namespace that no other test has."""
    return add_namespace(api, f"space-{next(_numbers)}")


@pytest.fixture
def profiles(api: Api) -> Iterator[Api]:
    """The API with the custom resource `MachineProfile`, which goes with the test."""
    apply(api, manifest("crd"))
    eventually(lambda: api.get(PROFILES) is not None)
    yield api
    api.delete(f"{CRD}/machineprofiles.wattloom.dev")
    eventually(lambda: _unknown(api, PROFILES))


def _unknown(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ApiRefused as refused:
        return refused.status == 404
    return False


@pytest.fixture(autouse=True)
def looked_after_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners of pods that wait are told ten times as soon as users': most tests of the scheduler wait for it."""
    monkeypatch.setattr(status_reporter, "LOOK_EVERY_S", 0.1)


@pytest.fixture
def running(plane: ControlPlane, api: Api) -> Iterator[Running]:
    """A scheduler that decides."""
    with scheduling(plane) as running:
        yield running


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which loop the test runs in; uvloop is part of the development environment, but not on Windows."""
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    elif event_loop.fastest() is None:
        pytest.skip("uvloop is missing: pip install uvloop")
    return str(request.param)
