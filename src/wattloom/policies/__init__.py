"""Policies: where a task goes. One file each, all through the one protocol in `protocol`.

Called, as `wattloom.policies()`, the package lists them: the same name as the command's.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wattloom.policies.listing import PolicyInfo


class _Package(ModuleType):
    """A package that answers when it is called."""

    def __call__(self) -> "list[PolicyInfo]":
        from wattloom.policies.listing import policies

        return policies()


sys.modules[__name__].__class__ = _Package
