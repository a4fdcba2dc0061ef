"""Budgets of joules in tests, tried by running pytest as a user would."""

import subprocess
import sys
from pathlib import Path

HEAD = """
import time
import pytest

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""


def pytest_on(folder: Path, text: str) -> str:
    (folder / "test_it.py").write_text(HEAD + text)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--strict-markers", "test_it.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_a_test_over_its_budget_fails_and_one_within_passes(tmp_path: Path) -> None:
    shown = pytest_on(
        tmp_path,
        """
@pytest.mark.max_joules(0.001)
def test_over():
    burn(0.3)

@pytest.mark.max_joules(1e6)
def test_within():
    burn(0.01)

def test_without():
    pass
""",
    )
    assert "1 failed, 2 passed" in shown
    assert "more than its budget of 0.001 J" in shown


def test_a_block_over_its_budget_fails_and_says_what_it_took(tmp_path: Path) -> None:
    shown = pytest_on(
        tmp_path,
        """
def test_block(joules):
    with joules(at_most=1e6):
        burn(0.01)
    with joules(at_most=0.001):
        burn(0.3)
""",
    )
    assert "the block took" in shown
    assert "1 failed" in shown


def test_a_test_that_fails_by_itself_shows_its_own_failure(tmp_path: Path) -> None:
    shown = pytest_on(tmp_path, "\n@pytest.mark.max_joules(0.0001)\ndef test_it():\n    assert 1 == 2\n")
    assert "assert 1 == 2" in shown
    assert "budget" not in shown


def test_a_budget_that_is_none_is_said(tmp_path: Path) -> None:
    shown = pytest_on(tmp_path, "\n@pytest.mark.max_joules(-3)\ndef test_it():\n    pass\n")
    assert "give the budget in joules, a number above 0" in shown


def test_joules_that_are_unknown_are_no_permission(tmp_path: Path) -> None:
    shown = pytest_on(
        tmp_path,
        """
def test_it(joules, monkeypatch):
    from wattloom.energy.forecast import Unknown
    from wattloom.metering.estimate import Estimate
    with joules(at_most=1e6, meter="estimate"):
        monkeypatch.setattr(Estimate, "read", lambda self, now: Unknown("it was taken away"))
""",
    )
    assert "1 failed" in shown
    assert "it was taken away" in shown
