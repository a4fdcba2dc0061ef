"""Wattloom runs functions and tasks where they cost the least energy, and shows the saving.

Owns the public names. They are loaded when first used, so that `import wattloom` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wattloom import moved

if TYPE_CHECKING:
    from wattloom.api import (
        attribute,
        compare,
        functions,
        logs,
        machine_curve,
        machine_match,
        measure,
        measure_command,
        meters,
        plan,
        profile_cpu,
        profile_functions,
        prune,
        replay,
        run,
        run_workload,
        scenarios,
        simulate,
        tasks,
        validate_attribution,
        why,
        workloads,
    )
    from wattloom.energy.forecast import Unknown
    from wattloom.energy.measured import Energy
    from wattloom.errors import InputError, WattloomError
    from wattloom.experiments.outcome import Outcome
    from wattloom.experiments.running import experiment
    from wattloom.history.explanation import Explanation
    from wattloom.history.why import Why
    from wattloom.local.decorator import function
    from wattloom.local.errors import OutcomeUnknown, RemoteError, TaskTimeout, WorkerLost
    from wattloom.local.executor import Executor
    from wattloom.local.future import TaskFuture
    from wattloom.local.loading import load
    from wattloom.local.nodes import VirtualNode
    from wattloom.policies.protocol import Policy, Proposal, RankingPolicy, Refusal
    from wattloom.scheduling.lease_terms import LeaseTerms
    from wattloom.simulation.comparison import Comparison
    from wattloom.simulation.replay import Replay
    from wattloom.simulation.result import Result
    from wattloom.simulation.scenario import Scenario

    __version__: str

moved.remember()

_HOME = {
    "Energy": "wattloom.energy.measured",
    "Executor": "wattloom.local.executor",
    "LeaseTerms": "wattloom.scheduling.lease_terms",
    "OutcomeUnknown": "wattloom.local.errors",
    "RemoteError": "wattloom.local.errors",
    "TaskFuture": "wattloom.local.future",
    "TaskTimeout": "wattloom.local.errors",
    "Unknown": "wattloom.energy.forecast",
    "VirtualNode": "wattloom.local.nodes",
    "WorkerLost": "wattloom.local.errors",
    "function": "wattloom.local.decorator",
    "load": "wattloom.local.loading",
    "attribute": "wattloom.api",
    "compare": "wattloom.api",
    "experiment": "wattloom.experiments.running",
    "Outcome": "wattloom.experiments.outcome",
    "functions": "wattloom.api",
    "logs": "wattloom.api",
    "machine_curve": "wattloom.api",
    "machine_match": "wattloom.api",
    "measure": "wattloom.api",
    "measure_command": "wattloom.api",
    "meters": "wattloom.api",
    "plan": "wattloom.api",
    "profile_cpu": "wattloom.api",
    "profile_functions": "wattloom.api",
    "prune": "wattloom.api",
    "replay": "wattloom.api",
    "run": "wattloom.api",
    "run_workload": "wattloom.api",
    "scenarios": "wattloom.api",
    "simulate": "wattloom.api",
    "tasks": "wattloom.api",
    "validate_attribution": "wattloom.api",
    "why": "wattloom.api",
    "workloads": "wattloom.api",
    "InputError": "wattloom.errors",
    "WattloomError": "wattloom.errors",
    "Policy": "wattloom.policies.protocol",
    "Proposal": "wattloom.policies.protocol",
    "RankingPolicy": "wattloom.policies.protocol",
    "Refusal": "wattloom.policies.protocol",
    "Explanation": "wattloom.history.explanation",
    "Comparison": "wattloom.simulation.comparison",
    "Replay": "wattloom.simulation.replay",
    "Result": "wattloom.simulation.result",
    "Scenario": "wattloom.simulation.scenario",
    "Why": "wattloom.history.why",
}

_LISTS = ("experiments", "machines", "policies")
"""Packages that list what is in them when they are called."""

__all__ = [
    "Comparison",
    "Energy",
    "Executor",
    "Explanation",
    "InputError",
    "LeaseTerms",
    "Outcome",
    "OutcomeUnknown",
    "Policy",
    "Proposal",
    "RankingPolicy",
    "Refusal",
    "RemoteError",
    "Replay",
    "Result",
    "Scenario",
    "TaskFuture",
    "TaskTimeout",
    "Unknown",
    "VirtualNode",
    "WattloomError",
    "Why",
    "WorkerLost",
    "__version__",
    "attribute",
    "compare",
    "experiment",
    "experiments",
    "function",
    "functions",
    "load",
    "logs",
    "machine_curve",
    "machine_match",
    "machines",
    "measure",
    "measure_command",
    "meters",
    "plan",
    "policies",
    "profile_cpu",
    "profile_functions",
    "prune",
    "replay",
    "run",
    "run_workload",
    "scenarios",
    "simulate",
    "tasks",
    "validate_attribution",
    "why",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("wattloom")
    if name in _LISTS:
        return import_module(f"wattloom.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'wattloom' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Our names, and what every module has; not what is imported here, nor which parts were loaded."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
