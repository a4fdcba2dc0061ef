"""What every benchmark ends with: a table for people, and one JSON line for programs.

Owns the form of that line: `bench`, `rows`, and `goals`, each with name, goal, got and met.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    """Something to reach, and whether it was."""

    name: str
    goal: float
    got: float | None
    met: bool

    @staticmethod
    def at_least(name: str, goal: float, got: float | None) -> "Goal":
        return Goal(name, goal, got, got is not None and got >= goal)

    @staticmethod
    def at_most(name: str, goal: float, got: float | None) -> "Goal":
        return Goal(name, goal, got, got is not None and got <= goal)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of equal keys as aligned text."""
    if not rows:
        return "(no rows)"
    head = list(rows[0])
    cells = [head, *[[_text(row.get(column)) for column in head] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return "-" if value is None else str(value)


def finish(bench: str, rows: Sequence[dict[str, Any]], goals: Sequence[Goal]) -> None:
    """Print the table, the goals and the closing line."""
    print(table(rows))
    print()
    for goal in goals:
        print(f"{'met   ' if goal.met else 'MISSED'}  {goal.name}: goal {_text(goal.goal)}, got {_text(goal.got)}")
    print(json.dumps({"bench": bench, "rows": list(rows), "goals": [asdict(goal) for goal in goals]}))
