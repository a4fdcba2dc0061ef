"""The executors that the conformance tests run against, and what every test of them gets.

What CPython tests of its own executors is said here anew, in our words, and holds for two executors: the standard
library's ProcessPoolExecutor, which shows that a test is fair, and wattloom.Executor, which has to pass. Where ours
differs on purpose, the test is marked `only("wattloom", why=...)` or `only("process-pool", why=...)`.

ProcessPoolExecutor starts its workers through the fork server: forking this process itself would be unfair, because
the other executor's threads live in it, and a fresh interpreter for every worker would take minutes.
"""

import multiprocessing
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import pytest
from tests.local.conformance.observing import Surroundings
from tests.local.conformance.tasks import Gate, answer

import wattloom

ROOT = str(Path(__file__).parents[3])
if ROOT not in sys.path:  # workers get our path, and import the tasks by their name
    sys.path.insert(0, ROOT)

TOO_LONG_S = 30


class MakeExecutor(Protocol):
    """Gives a fresh executor; the test need not shut it down."""

    kind: str

    def __call__(
        self,
        max_workers: int | None = 2,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **options: Any,
    ) -> Executor: ...


NewGate = Callable[[], Gate]


multiprocessing.set_forkserver_preload(["__main__", "pytest", "tests.local.conformance.trouble"])


def process_pool(**options: Any) -> Executor:
    return ProcessPoolExecutor(mp_context=multiprocessing.get_context("forkserver"), **options)


def ours(**options: Any) -> Executor:
    executor: Executor = wattloom.Executor(**options)
    return executor


KINDS: dict[str, Callable[..., Executor]] = {
    "process-pool": process_pool,
    "thread-pool": ThreadPoolExecutor,
    "wattloom": ours,
}


class Maker:
    """Makes executors of one kind, and shuts down those that a test left open, without keeping any alive."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._made: list[weakref.ref[Executor]] = []

    def __call__(
        self,
        max_workers: int | None = 2,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **options: Any,
    ) -> Executor:
        executor = KINDS[self.kind](max_workers=max_workers, initializer=initializer, initargs=initargs, **options)
        self._made.append(weakref.ref(executor))
        return executor

    def shut_down_all(self) -> None:
        for reference in self._made:
            if (executor := reference()) is not None:
                executor.shutdown(wait=True, cancel_futures=True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "only(*kinds, why): holds for these executors on purpose; why says the difference"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that takes `kind`, mostly through `make`, runs once for each executor it holds for."""
    if "kind" not in metafunc.fixturenames:
        return
    only = metafunc.definition.get_closest_marker("only")
    kinds = list(only.args) if only else ["process-pool", "wattloom"]
    metafunc.parametrize("kind", kinds)


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """A hang is a failure, with the traceback of where it hangs."""

    def give_up(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"the test hangs: more than {TOO_LONG_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TOO_LONG_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def make(kind: str, in_time: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeExecutor]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    maker = Maker(kind)
    yield maker
    maker.shut_down_all()


@pytest.fixture
def executor(make: MakeExecutor) -> Executor:
    """Two workers, nothing special."""
    return make()


@pytest.fixture
def new_gate(tmp_path: Path) -> Iterator[NewGate]:
    """Gives gates, shut. All are opened when the test ends, also when it fails, so that no task waits for ever."""
    gates: list[Gate] = []

    def new() -> Gate:
        gates.append(Gate(str(tmp_path / f"gate-{len(gates)}")))
        return gates[-1]

    yield new
    for gate in gates:
        gate.open()


@pytest.fixture
def gate(new_gate: NewGate) -> Gate:
    return new_gate()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A folder in which tasks leave marks."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def surroundings(make: MakeExecutor) -> Surroundings:
    """What there was before the test made its executor. A first executor has started what is shared by all later."""
    with make(max_workers=1) as first:
        first.submit(answer).result()
    del first
    return Surroundings.now()
