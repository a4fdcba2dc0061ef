"""Budgets of joules in tests, tried by running pytest as a user would: once, on a file with every case."""

import subprocess
import sys
from xml.etree import ElementTree

import pytest

CASES = """
import time
import pytest
from wattloom.energy.forecast import Unknown
from wattloom.metering.estimate import Estimate

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.mark.max_joules(0.001)
def test_over():
    burn(0.3)

@pytest.mark.max_joules(1e6)
def test_within():
    burn(0.01)

def test_without():
    pass

def test_block(joules):
    with joules(at_most=1e6):
        burn(0.01)
    with joules(at_most=0.001):
        burn(0.3)

@pytest.mark.max_joules(0.0001)
def test_that_fails_by_itself():
    assert 1 == 2

@pytest.mark.max_joules(-3)
def test_with_a_budget_that_is_none():
    pass

def test_unknown(joules, monkeypatch):
    with joules(at_most=1e6, meter="estimate"):
        monkeypatch.setattr(Estimate, "read", lambda self, now: Unknown("it was taken away"))
"""
Told = dict[str, str]
"""By test: what was wrong with it. Empty: it passed."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("budgets")
    (folder / "test_it.py").write_text(CASES)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--strict-markers", "--junitxml=told.xml"]
    subprocess.run([*words, "test_it.py"], cwd=folder, capture_output=True, check=False)
    return {case.attrib["name"]: _problem(case) for case in ElementTree.parse(folder / "told.xml").iter("testcase")}


def _problem(case: ElementTree.Element) -> str:
    return "\n".join(f"{each.get('message', '')}\n{each.text}" for each in case if each.tag in ("failure", "error"))


def test_a_test_over_its_budget_fails_and_one_within_passes(told: Told) -> None:
    assert "the test took" in told["test_over"]
    assert "more than its budget of 0.001 J" in told["test_over"]
    assert told["test_within"] == told["test_without"] == ""


def test_a_block_over_its_budget_fails_and_says_what_it_took(told: Told) -> None:
    assert "the block took" in told["test_block"]
    assert "more than its budget of 0.001 J" in told["test_block"]


def test_a_test_that_fails_by_itself_shows_its_own_failure(told: Told) -> None:
    assert "assert 1 == 2" in told["test_that_fails_by_itself"]
    assert "budget" not in told["test_that_fails_by_itself"]


def test_a_budget_that_is_none_is_said(told: Told) -> None:
    assert "give the budget in joules, a number above 0" in told["test_with_a_budget_that_is_none"]


def test_joules_that_are_unknown_are_no_permission(told: Told) -> None:
    assert "it was taken away" in told["test_unknown"]
