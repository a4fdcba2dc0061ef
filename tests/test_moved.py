"""Former names of modules still import, say so, and are the same modules."""

import subprocess
import sys
from importlib import import_module

import pytest

from wattloom.moved import MOVED


@pytest.mark.parametrize(("former", "now"), MOVED.items())
def test_a_former_name_imports_the_module_of_today_with_a_warning(former: str, now: str) -> None:
    sys.modules.pop(former, None)
    with pytest.warns(DeprecationWarning, match=f"{former} has moved: import {now} instead"):
        module = import_module(former)
    assert module is import_module(now)
    assert module.__name__ == now
    assert module.__spec__ is not None
    assert module.__spec__.name == now


def test_a_program_that_imports_by_a_former_name_runs() -> None:
    program = (
        "from wattloom.cluster.profile import MachineProfile as former\n"
        "from wattloom.machines.profile import MachineProfile as now\n"
        "assert former is now"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_no_module_that_is_there_is_said_to_have_moved() -> None:
    assert not [name for name in MOVED if name in MOVED.values()]
