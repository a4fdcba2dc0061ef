"""What became of the calls of a run, out of its log: where each ran, how long it took, how long it waited.

Owns the fold over records, which is the same for this machine and for the simulator.
"""

from collections.abc import Iterable
from math import ceil
from statistics import fmean, stdev

from wattloom.energy.forecast import Forecast
from wattloom.history.records import Record
from wattloom.scheduling import events as ev
from wattloom.scheduling.instructions import Conclude, Place


class Observed:
    """One function's calls."""

    __slots__ = ("ended_otherwise", "ends", "joules", "latencies", "nodes", "seconds", "submitted")

    def __init__(self) -> None:
        self.submitted: int = 0
        self.ended_otherwise: int = 0
        self.latencies: list[float] = []
        """Seconds from the time a call was due to its end, in the order of the ends."""
        self.ends: list[float] = []
        """When each ended, by the log's clock."""
        self.seconds: list[float] = []
        """That executions took."""
        self.joules: list[float] = []
        """As forecast when they were placed: the simulator's."""
        self.nodes: dict[str, int] = {}
        """Placements by node."""

    @property
    def per_core_s(self) -> float | None:
        """E: executions that one core makes in a second."""
        return 1.0 / fmean(self.seconds) if self.seconds and fmean(self.seconds) > 0.0 else None


class Calls:
    """The fold. `late`: by task, how much later than due it was submitted."""

    def __init__(self, late: dict[str, float] | None = None, counted: set[str] | None = None) -> None:
        self.functions: dict[str, Observed] = {}
        self.first: float = 0.0
        """When the first call that counts was submitted, by the log's clock."""
        self._late = late
        self._counted = counted
        """Tasks that count; None: all."""
        self._task: dict[str, tuple[str, float]] = {}
        """Function and time of submission of each open task."""
        self._forecast: dict[str, float] = {}

    def take(self, records: Iterable[Record]) -> "Calls":
        for record in records:
            if isinstance(record, ev.TaskSubmitted):
                self._submitted(record)
            elif isinstance(record, Place):
                self._placed(record)
            elif isinstance(record, ev.TaskFinished):
                self._finished(record)
            elif isinstance(record, Conclude) and record.task in self._task:
                self.functions[self._task.pop(record.task)[0]].ended_otherwise += 1
        return self

    def _submitted(self, event: ev.TaskSubmitted) -> None:
        if self._counted is not None and event.task.id not in self._counted:
            return
        if not self.functions:
            self.first = event.time
        self._task[event.task.id] = event.task.function, event.time
        self.functions.setdefault(event.task.function, Observed()).submitted += 1

    def _placed(self, place: Place) -> None:
        open_task = self._task.get(place.task)
        if open_task is None:
            return
        nodes = self.functions[open_task[0]].nodes
        nodes[place.node] = nodes.get(place.node, 0) + 1
        if isinstance(place.forecast, Forecast):
            self._forecast[place.task] = float(place.forecast.joules)

    def _finished(self, event: ev.TaskFinished) -> None:
        open_task = self._task.pop(event.task, None)
        if open_task is None:
            return
        function, submitted = open_task
        seen = self.functions[function]
        late = self._late.get(event.task, 0.0) if self._late is not None else 0.0
        seen.latencies.append(event.time - submitted + late)
        seen.ends.append(event.time)
        if event.seconds is not None:
            seen.seconds.append(event.seconds)
        joules = self._forecast.pop(event.task, None)
        if joules is not None:
            seen.joules.append(joules)


def quantile(values: Iterable[float], q: float) -> float | None:
    """Nearest rank: a value that occurred."""
    ordered = sorted(values)
    return ordered[max(0, ceil(q * len(ordered)) - 1)] if ordered else None


def spread(values: list[float]) -> float:
    """Standard error of the mean."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
