"""What tests and benchmarks are made with: a real Kubernetes, the rig, guests, made power runs. Not part of the wheel.

Owns how its processes find it: they are started as ours are, without the working folder, and told where it lies.
"""

import os
from pathlib import Path
from typing import Final

from wattloom.interpreter import PATH, own_environment

ROOT: Final = str(Path(__file__).parents[2])


def beds_environment() -> dict[str, str]:
    """For a process that runs a module of this package (`own_module`)."""
    found = own_environment()
    return found | {PATH: os.pathsep.join((found[PATH], ROOT))}
