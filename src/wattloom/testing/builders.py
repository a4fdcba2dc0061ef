"""Machines, nodes, functions and tasks for tests: canned where it does not matter, exact where it does.

Owns the canned machines and the short forms. Everything it returns is what a user would have written out in full.
"""

from typing import Final

from wattloom.cluster.node import Node
from wattloom.machines.profile import MachineProfile
from wattloom.units import GIB
from wattloom.workload.function import DEFAULT_VARIANT, Function, Variant
from wattloom.workload.requirements import Requirements
from wattloom.workload.task import Task


def machine(
    name: str = "linear",
    *,
    cores: int = 4,
    threads: int | None = None,
    watts: tuple[tuple[float, float], ...] = ((0.0, 20.0), (4.0, 60.0)),
    arch: str = "x86_64",
    memory: int = 8 * GIB,
    sleep_w: float | None = None,
    wake_s: float = 0.0,
    wake_j: float = 0.0,
    tdp_w: float | None = None,
    speed: float = 1.0,
) -> MachineProfile:
    """Four cores, 8 GiB, 20 W idle and 10 W per core, unless told otherwise."""
    return MachineProfile(
        name=name,
        arch=arch,
        cores=cores,
        threads=cores if threads is None else threads,
        memory=memory,
        watts=watts,
        sleep_w=sleep_w,
        wake_s=wake_s,
        wake_j=wake_j,
        tdp_w=tdp_w,
        quantity="wall" if tdp_w is None else "package",
        speed=speed,
    )


LINEAR: Final = machine()
"""Every core adds 10 W."""
CONCAVE: Final = machine("concave", watts=((0.0, 20.0), (1.0, 40.0), (2.0, 50.0), (4.0, 60.0)))
"""The first core is dear, the last ones are cheap: filling it up pays."""
CONVEX: Final = machine("convex", watts=((0.0, 20.0), (2.0, 30.0), (3.0, 40.0), (4.0, 60.0)))
"""The first cores are cheap, the last ones dear: spreading pays."""
SMT: Final = machine("smt", threads=8, watts=((0.0, 20.0), (4.0, 60.0), (8.0, 70.0)))
"""Two hardware threads per core."""
ARM: Final = machine("arm", arch="aarch64", watts=((0.0, 5.0), (4.0, 13.0)), speed=0.5)
"""Half as fast, 2 W per core."""
WITHOUT_CURVE: Final = machine("without-curve", watts=())
"""Nobody knows what it draws."""
SLEEPER: Final = machine("sleeper", sleep_w=2.0, wake_s=10.0, wake_j=500.0)
"""As LINEAR, but it can sleep."""

MACHINES: Final = (LINEAR, CONCAVE, CONVEX, SMT, ARM, WITHOUT_CURVE, SLEEPER)


def node(
    name: str,
    machine: MachineProfile = LINEAR,
    *,
    cpu: float | None = None,
    memory: int | None = None,
    labels: dict[str, str] | None = None,
    devices: dict[str, int] | None = None,
    cap_w: float | None = None,
    asleep: bool = False,
) -> Node:
    """A node of some machine."""
    return Node(name, machine.name, cpu, memory, labels or {}, devices or {}, cap_w, asleep)


def requirements(
    cpu: float = 1.0,
    memory: int = 0,
    *,
    arch: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
    devices: dict[str, float] | None = None,
) -> Requirements:
    """What a task needs; labels and devices as mappings."""
    return Requirements(cpu, memory, arch, tuple((labels or {}).items()), tuple((devices or {}).items()))


def variant(
    name: str = "default",
    *,
    arch: tuple[str, ...] = (),
    devices: dict[str, float] | None = None,
    seconds: dict[str, float] | None = None,
) -> Variant:
    """One build, with its declared run time by machine."""
    return Variant(name, arch, tuple((devices or {}).items()), seconds or {})


def function(
    name: str = "f",
    needs: Requirements | None = None,
    *,
    seconds: dict[str, float] | None = None,
    variants: tuple[Variant, ...] = (),
) -> Function:
    """A function with one build, unless `variants` says otherwise."""
    if seconds is not None:
        variants = (*variants, variant(seconds=seconds))
    return Function(name, Requirements() if needs is None else needs, variants or (DEFAULT_VARIANT,))


def task(
    id: str,
    function: str = "f",
    needs: Requirements | None = None,
    *,
    priority: int = 0,
    energy_weight: float = 0.5,
    deadline_s: float | None = None,
    defer_s: float = 0.0,
    after: tuple[str, ...] = (),
    idempotent: bool = False,
    retries: int = 0,
    infrastructure_retries: int = 3,
) -> Task:
    """One call of a function."""
    return Task(
        id, function, needs, priority, energy_weight, deadline_s, defer_s, after, idempotent, retries,
        infrastructure_retries,
    )  # fmt: skip
