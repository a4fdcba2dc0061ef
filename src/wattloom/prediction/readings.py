"""What meters said of nodes, and each function's usual draw: Escheduler's bookkeeping (S2).

Owns the last reading of each node, the moving average per function, and what was placed but is not yet measured. What
was placed always counts with something: a function that was never measured with what the curve says, or the mean of all
others, or, where nothing at all is known, as much of what its node draws as it takes of its cores.
"""

HALF = 0.5

Expected = tuple[float, float]
"""Watts, or, where none are known, the share of what its node draws."""


class Readings:
    """Measured draw of nodes, corrected by what is on its way."""

    def __init__(self) -> None:
        self.draws: dict[str, float] = {}
        """Measured watts and those of what was placed since, by node; a node that was never measured is not in it."""
        self._watts: dict[str, float] = {}
        self._average: dict[str, float] = {}
        self._unmeasured: dict[str, dict[str, Expected]] = {}

    def arrived(self, node: str, watts: float, tasks: dict[str, float]) -> None:
        """A node was measured, with the draw of each task on it that the reading covers."""
        self._watts[node] = watts
        waiting = self._unmeasured.get(node)
        if waiting:
            for task in tasks:
                waiting.pop(task, None)
        self._expect(node)

    def averaged(self, function: str, watts: float) -> None:
        """One function's draw, over all its tasks on a node: half new, half old; kept when they are gone."""
        old = self._average.get(function)
        self._average[function] = watts if old is None else HALF * watts + HALF * old

    def placed(self, node: str, task: str, function: str, forecast: float | None, share: float) -> None:
        """It will draw before a meter says so: by the curve `forecast` watts, if there is one. `share`: of the node's
        cores."""
        watts = self._average.get(function)
        if watts is None:
            watts = forecast if forecast is not None else self._mean()
        self._unmeasured.setdefault(node, {})[task] = (watts, 0.0) if watts is not None else (0.0, share)
        self._expect(node)

    def handed_on(self, node: str, task: str, successor: str) -> None:
        """The same share of the node in other hands: measured or not as before."""
        waiting = self._unmeasured.get(node)
        if waiting is not None and task in waiting:
            waiting[successor] = waiting.pop(task)

    def gone(self, node: str, task: str) -> None:
        waiting = self._unmeasured.get(node)
        if waiting is not None and waiting.pop(task, None) is not None:
            self._expect(node)

    def node_lost(self, node: str) -> None:
        self._watts.pop(node, None)
        self._unmeasured.pop(node, None)
        self.draws.pop(node, None)

    def _mean(self) -> float | None:
        """Of all functions that were measured."""
        return sum(self._average.values()) / len(self._average) if self._average else None

    def _expect(self, node: str) -> None:
        measured = self._watts.get(node)
        if measured is None:
            return
        watts, shares = measured, 0.0
        for expected in self._unmeasured.get(node, {}).values():
            watts += expected[0]
            shares += expected[1]
        self.draws[node] = watts + measured * shares

    def expected(self, node: str) -> float | None:
        """Measured watts and those of what was placed since; None if the node was never measured."""
        return self.draws.get(node)

    def measured(self) -> dict[str, float]:
        """By node that was ever measured: what its meter said last."""
        return dict(self._watts)

    def covers(self, node: str, task: str) -> bool:
        """Whether the last reading of the node has the task's draw in it."""
        return node in self._watts and task not in self._unmeasured.get(node, {})

    def usual(self, function: str) -> float | None:
        """What a task of this function usually draws."""
        return self._average.get(function)
