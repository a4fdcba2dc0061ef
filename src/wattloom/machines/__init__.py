"""What is known of machines: profiles, power curves, the catalogue, and the machine we run on. Knowledge, not state.

Called, as `wattloom.machines()`, the package lists the catalogue: the same name as the command's.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wattloom.machines.catalogue import MachineInfo


class _Package(ModuleType):
    """A package that answers when it is called."""

    def __call__(self) -> "list[MachineInfo]":
        from wattloom.machines.catalogue import machine_list

        return machine_list()


sys.modules[__name__].__class__ = _Package
