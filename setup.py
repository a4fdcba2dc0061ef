"""Adds compiled modules to the wheel when WATTLOOM_COMPILE=1; everything else is in pyproject.toml.

The compiled wheel comes from the same source through mypyc. mypy must then be importable by the build:
`make compiled` sees to that, or install the `dev` extra and build with `--no-build-isolation`.
"""

import os

from setuptools import setup

COMPILED_MODULES = [
    "src/wattloom/cluster/crowd.py",
    "src/wattloom/cluster/crowds.py",
    "src/wattloom/cluster/fit.py",
    "src/wattloom/cluster/index.py",
    "src/wattloom/cluster/machine.py",
    "src/wattloom/cluster/matching.py",
    "src/wattloom/cluster/node_class.py",
    "src/wattloom/cluster/places.py",
    "src/wattloom/cluster/roll.py",
    "src/wattloom/cluster/rules.py",
    "src/wattloom/cluster/site.py",
    "src/wattloom/cluster/standing.py",
    "src/wattloom/cluster/topology.py",
    "src/wattloom/local/books.py",
    "src/wattloom/local/carrying.py",
    "src/wattloom/local/dispatcher.py",
    "src/wattloom/local/energy_desk.py",
    "src/wattloom/local/hearing.py",
    "src/wattloom/local/job.py",
    "src/wattloom/local/workforce.py",
    "src/wattloom/attribution/tariff.py",
    "src/wattloom/attribution/worker.py",
    "src/wattloom/policies/answers.py",
    "src/wattloom/policies/view.py",
    "src/wattloom/prediction/intensity.py",
    "src/wattloom/prediction/outlook.py",
    "src/wattloom/prediction/readings.py",
    "src/wattloom/prediction/runtimes.py",
    "src/wattloom/prediction/sizes.py",
    "src/wattloom/scheduling/asking.py",
    "src/wattloom/scheduling/engine.py",
    "src/wattloom/scheduling/leases.py",
    "src/wattloom/scheduling/ledger.py",
    "src/wattloom/scheduling/placing.py",
    "src/wattloom/scheduling/queue.py",
    "src/wattloom/scheduling/rest.py",
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
