"""Modules that have moved: their former names still import for one release, with a warning.

Owns the table of former names, as far as documentation showed them or pickles of journals hold them. A former name is
the very same module as the new one, so that classes are equal whichever way they were reached.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final
from warnings import warn

MOVED: Final = {
    "wattloom.attribution.gpu_calls": "wattloom.attribution.gpu",
    "wattloom.cluster.listing": "wattloom.api",
    "wattloom.cluster.power_from_cpu": "wattloom.machines.power_from_cpu",
    "wattloom.cluster.profile": "wattloom.machines.profile",
    "wattloom.cluster.profile_curve": "wattloom.machines.profile_curve",
    "wattloom.journal.questions": "wattloom.api",
    "wattloom.local.many": "wattloom.local.chunking",
    "wattloom.local.named": "wattloom.local.import_path",
    "wattloom.local.packing": "wattloom.runtimes.packing",
    "wattloom.local.python_runtime": "wattloom.runtimes.python",
    "wattloom.local.runtime": "wattloom.runtimes.protocol",
    "wattloom.metering.patience": "wattloom.metering.timeout",
    "wattloom.metering.this_machine": "wattloom.machines.this_machine",
    "wattloom.scheduling.explanation": "wattloom.history.explanation",
    "wattloom.simulation.why": "wattloom.history.why",
}


class _FormerNames(MetaPathFinder, Loader):
    """Asked only when no module of that name is there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        now = MOVED[spec.name]
        warn(f"{spec.name} has moved: import {now} instead", DeprecationWarning, stacklevel=2)
        module = import_module(now)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been run under its own name; what the import system wrote on it is put right again."""
        module.__spec__ = self._own


def remember() -> None:
    """From now on former names import."""
    if not any(isinstance(finder, _FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(_FormerNames())
