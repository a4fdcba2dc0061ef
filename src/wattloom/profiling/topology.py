"""Which CPUs a level of load goes to: physical cores first, then their siblings.

Owns the order. Reads the kernel's description of the CPUs; loads nothing.
"""

from collections.abc import Collection
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final

from wattloom.bounds import MOST_FILED_CORES
from wattloom.errors import InputError
from wattloom.machines.own_profile import SYSTEM, text

FEW: Final = 16
"""Up to so many threads every level is measured."""


def loading_order(cpus: Collection[int], system: Path = SYSTEM) -> list[int]:
    """The CPUs in the order in which levels take them.

    One of each core before any core's second; the faster cores first where they differ; packages in turn, as the
    kernel spreads tasks. Where the kernel does not describe its CPUs, by number.
    """
    packages: dict[str, dict[str, list[int]]] = {}
    for cpu in sorted(cpus):
        topology = system / f"cpu{cpu}" / "topology"
        package = text(topology / "physical_package_id") or "0"
        core = text(topology / "core_id") or str(cpu)
        packages.setdefault(package, {}).setdefault(core, []).append(cpu)
    lanes = [sorted(cores.values(), key=lambda core: -_capacity(core[0], system)) for cores in packages.values()]
    in_turn = [core for core in chain.from_iterable(zip_longest(*lanes)) if core is not None]
    deepest = max(map(len, in_turn), default=0)
    return [core[depth] for depth in range(deepest) for core in in_turn if len(core) > depth]


def usual_levels(cores: int, threads: int) -> list[int]:
    """All levels of a small machine; of a large one those that show its bends: few, the cores, the threads."""
    if threads <= FEW:
        return list(range(1, threads + 1))
    steps = {1, 2, 3, 4, 6, 8, cores, threads}
    steps |= {round(cores * share / 8) for share in range(1, 9)}
    steps |= {cores + round((threads - cores) * share / 4) for share in range(1, 5)}
    return sorted(step for step in steps if 1 <= step <= threads)


def levels_of(wanted: str, cores: int, threads: int) -> list[int]:
    """From `all`, numbers and ranges as `1-4,8`; empty: the usual ones. InputError if there are not so many threads."""
    if wanted.strip() in ("", "all"):
        return list(range(1, threads + 1)) if wanted.strip() else usual_levels(cores, threads)
    found: set[int] = set()
    for part in wanted.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise InputError("levels", f"{part.strip()!r} is no level: give numbers and ranges, as 1-4,8, or all")
        found |= set(range(int(first), min(int(last or first), MOST_FILED_CORES) + 1))
    if not found or min(found) < 1 or max(found) > threads:
        raise InputError("levels", f"{wanted!r} must be between 1 and {threads}, the threads that can be used here")
    return sorted(found)


def _capacity(cpu: int, system: Path) -> int:
    """How much a CPU can do against the others, where some are smaller."""
    found = text(system / f"cpu{cpu}" / "cpu_capacity")
    return int(found) if found.isdigit() else 0
