"""What is wrong with a task, if anything.

Owns the validation of a task's values. Apart from the task because every task passes here, and this can be compiled.
"""

from wattloom.bounds import LONGEST_S, MOST_COUNT, MOST_SIZE_CLASS
from wattloom.workload.task import LEAST_PRIORITY, MOST_PRIORITY, Task


def task_problem(task: Task) -> tuple[str, str] | None:
    """The first wrong field and what is wrong with it."""
    if not task.id:
        return "id", "must not be empty"
    if not 0.0 <= task.energy_weight <= 1.0:
        return "energy_weight", f"must be between 0 and 1, not {task.energy_weight}"
    if not LEAST_PRIORITY <= task.priority <= MOST_PRIORITY:
        return "priority", f"must be between {LEAST_PRIORITY} and {MOST_PRIORITY}, not {task.priority}"
    if task.deadline_s is not None and not 0.0 < task.deadline_s <= LONGEST_S:
        return "deadline_s", f"must be positive, at most {LONGEST_S:g} s, not {task.deadline_s}"
    if not 0.0 <= task.defer_s <= LONGEST_S:
        return "defer_s", f"must not be negative, at most {LONGEST_S:g} s, not {task.defer_s}"
    if not 0 <= task.retries <= MOST_COUNT:
        return "retries", f"must not be negative, at most {MOST_COUNT}, not {task.retries}"
    if not 0 <= task.infrastructure_retries <= MOST_COUNT:
        words = f"must not be negative, at most {MOST_COUNT}, not {task.infrastructure_retries}"
        return "infrastructure_retries", words
    if not 0 <= task.size <= MOST_SIZE_CLASS:
        return "size", f"must not be negative, at most {MOST_SIZE_CLASS}, not {task.size}"
    if task.id in task.after:
        return "after", "names the task itself"
    for preference in task.prefers:
        unclear = preference.problem()
        if unclear is not None:
            return f"prefers.{unclear[0]}", unclear[1]
    wrong = task.requirements.problem() if task.requirements is not None else None
    return None if wrong is None else (f"requirements.{wrong[0]}", wrong[1])
