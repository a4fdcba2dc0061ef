"""Experiments: what a published study found, run again with ours, and both held side by side.

One experiment is one class behind one protocol (`protocol`), found by the entry-point group `wattloom.experiments`.
What comes of it is an `Outcome`: published figures and facts with their place in the source, ours, and a verdict that
follows from both. Draws nothing and prints nothing.

Called, as `wattloom.experiments()`, the package lists them.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wattloom.experiments.running import ExperimentInfo


class _Package(ModuleType):
    """A package that answers when it is called."""

    def __call__(self) -> "list[ExperimentInfo]":
        from wattloom.experiments.running import experiments

        return experiments()


sys.modules[__name__].__class__ = _Package
