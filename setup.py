"""Adds compiled modules to the wheel when WATTLOOM_COMPILE=1; everything else is in pyproject.toml.

The compiled wheel comes from the same source through mypyc. mypy must then be importable by the build:
`make compiled` sees to that, or install the `dev` extra and build with `--no-build-isolation`.
"""

import os

from setuptools import setup

COMPILED_MODULES = [
    "src/wattloom/cluster/task_group.py",
    "src/wattloom/cluster/task_groups.py",
    "src/wattloom/cluster/fit.py",
    "src/wattloom/cluster/index.py",
    "src/wattloom/machines/machine.py",
    "src/wattloom/cluster/matching.py",
    "src/wattloom/cluster/node_class.py",
    "src/wattloom/cluster/node_sets.py",
    "src/wattloom/cluster/node_numbering.py",
    "src/wattloom/cluster/rules.py",
    "src/wattloom/cluster/selector_index.py",
    "src/wattloom/cluster/site.py",
    "src/wattloom/cluster/shape_constraints.py",
    "src/wattloom/cluster/topology.py",
    "src/wattloom/cluster/warm_instances.py",
    "src/wattloom/driving/driver.py",
    "src/wattloom/history/digest.py",
    "src/wattloom/local/journaled_run.py",
    "src/wattloom/local/instructions.py",
    "src/wattloom/local/dispatcher.py",
    "src/wattloom/local/metered_accounting.py",
    "src/wattloom/local/worker_events.py",
    "src/wattloom/local/job.py",
    "src/wattloom/local/meter_readings.py",
    "src/wattloom/local/open_calls.py",
    "src/wattloom/local/run_clock.py",
    "src/wattloom/local/submissions.py",
    "src/wattloom/local/worker_pool.py",
    "src/wattloom/local/worker_process.py",
    "src/wattloom/attribution/worker.py",
    "src/wattloom/policies/answers.py",
    "src/wattloom/policies/ask.py",
    "src/wattloom/policies/view.py",
    "src/wattloom/prediction/intensity.py",
    "src/wattloom/prediction/placement_estimate.py",
    "src/wattloom/prediction/readings.py",
    "src/wattloom/prediction/runtimes.py",
    "src/wattloom/prediction/sizes.py",
    "src/wattloom/scheduling/policy_guard.py",
    "src/wattloom/scheduling/engine.py",
    "src/wattloom/scheduling/event_checks.py",
    "src/wattloom/scheduling/failed_instructions.py",
    "src/wattloom/scheduling/node_events.py",
    "src/wattloom/scheduling/task_ends.py",
    "src/wattloom/scheduling/task_events.py",
    "src/wattloom/scheduling/reconsideration.py",
    "src/wattloom/scheduling/moves.py",
    "src/wattloom/scheduling/evictions.py",
    "src/wattloom/scheduling/turn.py",
    "src/wattloom/scheduling/task_graph.py",
    "src/wattloom/scheduling/reservations.py",
    "src/wattloom/scheduling/queueing_hints.py",
    "src/wattloom/scheduling/allocation.py",
    "src/wattloom/scheduling/leases.py",
    "src/wattloom/scheduling/ledger.py",
    "src/wattloom/scheduling/placement.py",
    "src/wattloom/scheduling/queue.py",
    "src/wattloom/scheduling/idle_sleep.py",
    "src/wattloom/scheduling/state.py",
    "src/wattloom/scheduling/timers.py",
    "src/wattloom/simulation/host.py",
    "src/wattloom/simulation/loop.py",
    "src/wattloom/simulation/physics.py",
    "src/wattloom/simulation/power_trace.py",
    "src/wattloom/workload/shape.py",
    "src/wattloom/workload/task_problem.py",
]


def extensions() -> list:
    if os.environ.get("WATTLOOM_COMPILE") != "1":
        return []
    try:
        from mypyc.build import mypycify
    except ImportError as missing:
        raise SystemExit(
            "WATTLOOM_COMPILE=1 needs mypy (it brings mypyc) and setuptools in the building environment: "
            "run `make compiled`, or install '.[dev]' and build with --no-build-isolation."
        ) from missing
    return mypycify(COMPILED_MODULES, opt_level="3")


setup(ext_modules=extensions())
