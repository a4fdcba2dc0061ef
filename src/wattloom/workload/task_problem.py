"""What is wrong with a task, if anything.

Owns the validation of a task's values. Apart from the task because every task passes here, and this can be compiled.
"""

from wattloom.workload.task import LEAST_PRIORITY, MOST_PRIORITY, Task


def task_problem(task: Task) -> tuple[str, str] | None:
    """The first wrong field and what is wrong with it."""
    if not task.id:
        return "id", "must not be empty"
    if not 0.0 <= task.energy_weight <= 1.0:
        return "energy_weight", f"must be between 0 and 1, not {task.energy_weight}"
    if not LEAST_PRIORITY <= task.priority <= MOST_PRIORITY:
        return "priority", f"must be between {LEAST_PRIORITY} and {MOST_PRIORITY}, not {task.priority}"
    if task.deadline_s is not None and not 0.0 < task.deadline_s < float("inf"):
        return "deadline_s", f"must be positive, not {task.deadline_s}"
    if not 0.0 <= task.defer_s < float("inf"):
        return "defer_s", f"must not be negative, not {task.defer_s}"
    if task.retries < 0:
        return "retries", f"must not be negative, not {task.retries}"
    if task.infrastructure_retries < 0:
        return "infrastructure_retries", f"must not be negative, not {task.infrastructure_retries}"
    if task.size < 0:
        return "size", f"must not be negative, not {task.size}"
    if task.id in task.after:
        return "after", "names the task itself"
    wrong = task.requirements.problem() if task.requirements is not None else None
    return None if wrong is None else (f"requirements.{wrong[0]}", wrong[1])
