"""Solving: the best assignment that can be found in the time given, and a bound that holds in any case.

Owns which way an instance is solved by its size. Small ones go to HiGHS whole.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from wattloom.planning.exact import everything, solve_exactly
from wattloom.planning.instance import Deadline, Instance, Outcome

SHORT_S: Final = 1.0


def solve(instance: Instance, deadline: Deadline) -> Outcome:
    """The best solution and its bound. A bound without end: there is no solution."""
    return solve_exactly(instance, everything(instance), deadline)


def fits(instance: Instance) -> bool:
    """Whether there is any solution, as far as a short search finds one."""
    free = replace(instance, cost=np.where(instance.allowed, 0.0, np.inf), on_cost=np.zeros(instance.kinds))
    free = replace(free, cost=np.where(free.cores <= free.room, free.cost, np.inf))
    return solve(free, Deadline(lambda: 0.0, SHORT_S)).solution is not None
