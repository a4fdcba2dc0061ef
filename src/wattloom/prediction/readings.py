"""What meters said of nodes, and each function's usual draw: Escheduler's bookkeeping (S2).

Owns the last reading of each node, the moving average per function, and what was placed but is not yet measured.
"""

HALF = 0.5


class Readings:
    """Measured draw of nodes, corrected by what is on its way."""

    def __init__(self) -> None:
        self.draws: dict[str, float] = {}
        """Measured watts and those of what was placed since, by node; a node that was never measured is not in it."""
        self._watts: dict[str, float] = {}
        self._average: dict[str, float] = {}
        self._unmeasured: dict[str, dict[str, float]] = {}

    def arrived(self, node: str, watts: float, tasks: dict[str, float]) -> None:
        """A node was measured, with the draw of each task on it that the meter could tell."""
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

    def placed(self, node: str, task: str, function: str) -> None:
        """It will draw before a meter says so."""
        self._unmeasured.setdefault(node, {})[task] = self._average.get(function, 0.0)
        self._expect(node)

    def gone(self, node: str, task: str) -> None:
        waiting = self._unmeasured.get(node)
        if waiting is not None and waiting.pop(task, None) is not None:
            self._expect(node)

    def node_lost(self, node: str) -> None:
        self._watts.pop(node, None)
        self._unmeasured.pop(node, None)
        self.draws.pop(node, None)

    def _expect(self, node: str) -> None:
        watts = self._watts.get(node)
        if watts is not None:
            self.draws[node] = watts + sum(self._unmeasured.get(node, {}).values())

    def expected(self, node: str) -> float | None:
        """Measured watts and those of what was placed since; None if the node was never measured."""
        return self.draws.get(node)

    def usual(self, function: str) -> float | None:
        """What a task of this function usually draws."""
        return self._average.get(function)
