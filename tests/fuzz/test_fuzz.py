"""Every command and every kind of file that commands read, made wrong; and that the fuzzer sees what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.calling import Outcome
from tests.fuzz.cases import USUAL, Case, draw, tree
from tests.fuzz.judging import wrong
from tests.fuzz.seeds import FORMATS

ROOT = Path(__file__).parents[2]
CASES = 2 * max(len(FORMATS), len(tree()))
"""Each command and each kind of file once at least."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_commands_end_in_words_whatever_they_are_given(seed: int, tmp_path: Path) -> None:
    words = ("--seed", str(seed), "--cases", str(CASES), "--seconds", "600", "--keep", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "tests.fuzz", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert f"{len(tree())} of {len(tree())} commands" in done.stdout


def test_a_seed_and_a_number_are_one_case() -> None:
    assert [draw(7, number) for number in range(50)] == [draw(7, number) for number in range(50)]
    assert [draw(7, number) for number in range(50)] != [draw(8, number) for number in range(50)]


def test_the_tables_of_the_fuzzer_name_commands_that_there_are() -> None:
    from tests.fuzz import calling, cases, judging

    assert {*USUAL, *calling.SERVES, *judging.MAY_FAIL, *judging.PASSED_ON, *cases.NEVER} <= set(tree())


TABLE = " energy\n 1.37 mJ\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "/x/wattloom/cli/tasks.py", line 3, in f\nValueError: no\n'


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (Outcome(0, TABLE, "", 0.1), ""),
        (Outcome(2, "", "error: s.toml: nodes: must not be empty\n", 0.1), ""),
        (Outcome(1, "", TRACEBACK, 0.1), "traceback: wattloom/cli/tasks.py:3 ValueError"),
        (Outcome(70, "", "error: this is a defect of Wattloom: ValueError: no\n", 0.1), "exit 70"),
        (Outcome(1, "", "error: s.toml: no\n", 0.1), "exit 1"),
        (Outcome(2, "", "", 0.1), "exit 2 without a sentence"),
        (Outcome(2, "", "error: something is wrong\n", 0.1), "does not name the file"),
        (Outcome(0, " watts\n  nan W\n", "", 0.1), "prints nan"),
        (Outcome(0, "slowdown 1.0, inf\n", "", 0.1), "prints inf"),
        (Outcome(0, "information, infinite, nano\n", "", 0.1), ""),
        (
            Outcome(0, TABLE, "/x/y.py:85: RuntimeWarning: overflow\n", 0.1),
            "a warning of Python's: .py:85: RuntimeWarning",
        ),
        (Outcome(-9, "", "", 90.0, hung=True), "does not end"),
    ],
)
def test_the_judge_knows_what_is_wrong(outcome: Outcome, problem: str) -> None:
    assert wrong(Case(("simulate", "s.toml"), "s.toml", command="simulate"), outcome) == problem


PLANTED = {
    "traceback": "raise ZeroDivisionError",
    "does not end": "\n    while True: pass",
    "MemoryError": "return [0] * 10**12",
    "prints inf": "print('slowdown inf')",
}


@pytest.mark.parametrize("problem", PLANTED)
def test_a_defect_that_is_planted_is_found(problem: str, tmp_path: Path) -> None:
    """In a process of its own, since every call is a child of it."""
    (tmp_path / "seeds").mkdir()
    program = f"""
import wattloom.cli.policies
from pathlib import Path
from tests.fuzz import calling
from tests.fuzz.cases import Case
from tests.fuzz.judging import wrong
def planted(as_json): {PLANTED[problem]}
wattloom.cli.policies.policies.callback = planted
calling.CPU_S = 1
case = Case(("policies",), command="policies")
print(wrong(case, calling.call(case, Path({str(tmp_path / "seeds")!r}), Path({str(tmp_path / "here")!r}))))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert problem in done.stdout, done.stdout + done.stderr
