"""A first solution from prices; where they leave no room to repair, from prices of a little less room.

Owns the second tries.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from wattloom.planning.instance import Deadline, Instance, Numbers, Solution
from wattloom.planning.relaxation import Prices, ascend, reduced
from wattloom.planning.repair import repaired

SHARES: Final = (0.997, 0.985, 0.95)
"""Of each server's room, for prices that make rows use less of it."""


def first_solution(instance: Instance, prices: Prices, costs: Numbers, deadline: Deadline) -> Solution | None:
    """None: none was found, which does not mean that there is none."""
    found = repaired(instance, costs, costs.argmin(axis=1), deadline)
    for share in SHARES:
        if found is not None or deadline.over:
            break
        smaller = replace(instance, room=np.floor(share * instance.room).astype(np.int64))
        dearer = ascend(smaller, deadline, replace(prices, bound=-np.inf))
        costs = reduced(instance, dearer.cores, dearer.memory)
        found = repaired(instance, costs, costs.argmin(axis=1), deadline)
    return found
