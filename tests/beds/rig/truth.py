"""What every call on the rig really cost.

Owns the rule: in each small step of time the active joules belong to those who ran, in proportion to CPU seconds times
intensity. Reads the rig's records when all is over.
"""

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.functions import Burnt
from tests.beds.rig.silicon import COLUMNS, MOST_WORKERS

Floats = npt.NDArray[np.float64]


class Truth:
    """The records of a run."""

    def __init__(self, records: Floats, workers: list[int], conditions: Conditions) -> None:
        self.conditions: Final = conditions
        self.workers: Final = workers
        self.time, self.active_j, self.price, self.meter_j, self.busy_s = (records[:, n] for n in range(len(COLUMNS)))
        self._clocks: Final = records[:, len(COLUMNS) :]
        self._costs: Final[dict[int, tuple[Floats, Floats]]] = {}

    @staticmethod
    def read(folder: Path, conditions: Conditions) -> "Truth":
        raw = np.fromfile(folder / "records")
        records = raw[: len(raw) // (len(COLUMNS) + MOST_WORKERS) * (len(COLUMNS) + MOST_WORKERS)]
        workers = [int(word) for word in (folder / "workers").read_text().split()]
        return Truth(records.reshape(-1, len(COLUMNS) + MOST_WORKERS), workers, conditions)

    def clock(self, worker: int) -> Floats:
        """The CPU clock of a worker at each moment."""
        found: Floats = self._clocks[:, self.workers.index(worker)]
        return found

    def joules(self, call: Burnt, packing_s: float = 0.0) -> float:
        """What a call really cost above idle. `packing_s`: CPU seconds beside those of its function, for unpacking its
        arguments and packing its result."""
        if call.worker not in self._costs:
            self._costs[call.worker] = self._cost(call.worker)
        clock, cost = self._costs[call.worker]
        began, ended = np.interp((call.cpu_began, call.cpu_ended), clock, cost)
        packing = packing_s / (call.cpu_ended - call.cpu_began)
        return (self.conditions.intensities[call.function] + packing * self.conditions.rest) * float(ended - began)

    def _cost(self, worker: int) -> tuple[Floats, Floats]:
        """The worker's CPU clock, and what its seconds up to there would have cost at an intensity of 1."""
        clock = self.clock(worker)
        seen = clock > 0.0
        clock, price = clock[seen], self.price[seen]
        # In a step in which a worker was writing, its work was not weighed: the price is that of the step before.
        known = np.maximum.accumulate(np.where(price > 0.0, np.arange(len(price)), 0))
        price = price[known]
        return clock, np.concatenate(([0.0], np.cumsum(np.diff(clock) * price[1:])))
