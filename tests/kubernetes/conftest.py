"""A real API server for the tests of Kubernetes: one for each worker of pytest, started when first asked for.

Its programs are found or built (`make kubernetes-binaries`). Without them and without Go the tests are skipped.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.kubernetes.running import Running, scheduling

from wattloom.kubernetes import event_loop
from wattloom.testing.kubernetes import Api, BinariesMissing, ControlPlane, binaries
from wattloom.testing.kubernetes.fleet import add_namespace, clear

_numbers = count(1)


def programs_or_skip(*names: str) -> None:
    """Have the programs, or skip the test and say how to get them."""
    try:
        binaries(names)
    except BinariesMissing as missing:
        pytest.skip(f"KUBERNETES IS MISSING: {missing}")


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, kube-apiserver and kwok, shared by all tests of a worker. Who wants to break parts takes `make_plane`."""
    programs_or_skip("etcd", "kube-apiserver", "kwok")
    with ControlPlane(tmp_path_factory.mktemp("plane"), kwok=True) as plane:
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
def make_plane(tmp_path: Path) -> Iterator[Callable[..., ControlPlane]]:
    """Starts a control plane for this test alone, with ControlPlane's options: one that may be broken."""
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


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver for the tests of one module. Without kwok: pods stay as the scheduler leaves them."""
    programs_or_skip("etcd", "kube-apiserver")
    with ControlPlane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    """Its API, without any node or pod before and after the test."""
    clear(plane.api)
    yield plane.api
    clear(plane.api)


@pytest.fixture
def space(api: Api) -> str:
    """A namespace that no other test has."""
    return add_namespace(api, f"space-{next(_numbers)}")


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
