"""The suite as a list: each function with what it needs, and whether it can run here.

Owns the rows. How they are printed is the command's business.
"""

import msgspec

from wattloom.suite.catalogue import Category, Language, chosen
from wattloom.suite.needs import MODULES, Need, missing


class WorkloadInfo(msgspec.Struct, frozen=True):
    """One function of the suite, as it stands on this machine."""

    name: str
    category: Category
    runtime: Language
    summary: str
    libraries: tuple[str, ...]
    needs: tuple[str, ...]
    """Packages and programs, beyond what Wattloom itself needs."""
    missing: tuple[Need, ...]
    """What of it is not here; empty: it can run."""
    can_run: bool


def workloads(what: str = "all") -> list[WorkloadInfo]:
    """The functions of the suite: all, or those of a category or family, or one."""
    found = []
    for one in chosen(what):
        lacks = missing(one.name)
        modules = tuple(MODULES[module].partition(">")[0] for module in one.modules)
        needs = (*modules, *one.programs, *one.packages)
        found.append(
            WorkloadInfo(one.name, one.category, one.runtime, one.summary, one.libraries, needs, lacks, not lacks)
        )
    return found
