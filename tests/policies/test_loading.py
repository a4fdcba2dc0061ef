import subprocess
import sys
from pathlib import Path

import pytest

from wattloom.errors import PolicyError
from wattloom.policies.arch_first import ArchFirst
from wattloom.policies.loading import available, load_policy
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.random_choice import RandomChoice
from wattloom.policies.spread import Spread
from wattloom.policies.weighted import Weighted

MINE = """
from dataclasses import dataclass
from typing import Literal

from wattloom.policies.fifo import Fifo


@dataclass
class Note:
    text: "str"


class Mine(Fifo):
    name = "mine"
    summary = "one of mine"

    def __init__(self, level: int = 1, mode: Literal["low", "high"] = "low", plain="x") -> None:
        self.level, self.mode, self.plain = level, mode, plain


class Breaks(Fifo):
    def __init__(self) -> None:
        raise RuntimeError("out of order")


class Other:
    pass


class Quits(Fifo):
    def __init__(self) -> None:
        raise SystemExit(7)


class Nameless(Fifo):
    name = ""
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_a_name_is_enough() -> None:
    policies = available()
    assert {"fifo", "round-robin", "spread", "marginal-energy"} <= set(policies)
    for name, cls in policies.items():
        assert type(load_policy(name)) is cls
        assert cls.name == name


def test_options_become_values_of_the_types_the_constructor_names() -> None:
    policy = load_policy("marginal-energy:tdp=true,guarantee=0.8")
    assert isinstance(policy, MarginalEnergy)
    assert (policy.terms.tdp, policy.terms.guarantee) == (True, 0.8)
    spread, weighted, drawn = (
        load_policy(s) for s in ("spread:ignore_requests=True", "weighted:energy_weight=none", "random:seed=3")
    )
    assert isinstance(spread, Spread)
    assert spread.ignore_requests is True
    assert isinstance(weighted, Weighted)
    assert weighted.energy_weight is None
    assert isinstance(drawn, RandomChoice)
    assert drawn.seed == 3
    assert isinstance(load_policy("arch-first: first = aarch64"), ArchFirst)


def test_a_file_and_a_class_are_a_policy_too(file: Path) -> None:
    path = list(sys.path)
    policy = load_policy(f"{file}:Mine:level=3,mode=high,plain=y")
    assert (vars(policy), policy.name) == ({"level": 3, "mode": "high", "plain": "y"}, "mine")
    assert vars(load_policy(f"{file}:Mine"))["level"] == 1
    assert sys.path == path


WRONG = [
    ("fifi", r"'fifi' is not known; did you mean fifo\? the policies are .*fifo, .*weighted"),
    ("", "'' is not known; the policies are"),
    ("fifo:speed=1", r"fifo.speed: is not an option of fifo; did you mean sleep\? its options are sleep"),
    ("weighted:energy_wait=1", r"did you mean energy_weight\? its options are energy_weight"),
    ("weighted:0.5", "'0.5' is not an option: write key=value"),
    ("weighted:energy_weight=1,energy_weight=0", "is given twice"),
    ("weighted:energy_weight=much", "weighted.energy_weight: must be a number, not 'much'"),
    ("weighted:energy_weight=2", "weighted.energy_weight: must be between 0 and 1, not 2.0"),
    ("random:seed=0.5", "random.seed: must be a whole number, not '0.5'"),
    ("spread:ignore_requests=maybe", "must be true or false, not 'maybe'"),
    ("nowhere.py:Mine", "there is no file nowhere.py"),
    ("{file}", "name the class too: .*mine.py:Mine, .*mine.py:Breaks"),
    ("{file}:Mime", r"has no class 'Mime'; did you mean Mine\? its policies are Breaks, Mine, Nameless, Quits"),
    ("{file}:Other", "is not a policy: it must be a subclass of"),
    ("{file}:Breaks", "cannot be made: RuntimeError: out of order"),
    ("{file}:Quits", "cannot be made: SystemExit: 7"),
    ("{file}:Nameless", "Nameless: class Nameless has no name: give it a class attribute `name`"),
    ("{file}:Mine:mode=middle", "Mine.mode: must be low or high, not 'middle'"),
]


@pytest.mark.parametrize(("spec", "message"), WRONG)
def test_a_mistake_is_named_with_what_would_be_right(file: Path, spec: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        load_policy(spec.replace("{file}", str(file)))


def test_a_file_that_cannot_be_run_is_named_with_its_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import no_such_module_at_all\n")
    with pytest.raises(PolicyError, match=r"broken\.py cannot be loaded: ModuleNotFoundError"):
        load_policy(f"{path}:Mine")
    path.write_text("raise SystemExit(7)\n")
    with pytest.raises(PolicyError, match=r"broken\.py cannot be loaded: SystemExit: 7"):
        load_policy(f"{path}:Mine")


def test_a_file_loads_where_warnings_are_errors(file: Path) -> None:
    code = f"from wattloom.policies.loading import load_policy; print(load_policy({f'{file}:Mine'!r}).name)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("mine\n", "")
