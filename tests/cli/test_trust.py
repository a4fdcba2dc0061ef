"""What is run and who is told a secret: never because of what merely lies in a log or in the working folder."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from wattloom import api
from wattloom.errors import PolicyError

COMMAND: Final = Path(sys.executable).with_name("wattloom")
NOTES: Final = """
open("ran", "w").close()
from wattloom.policies.fifo import Fifo
class P(Fifo):
    name = "p"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a log in it, and the file of Python that the log names beside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    api.simulate("hsc-cpu", "fifo", log=work / "run.log")
    header, _, rest = (work / "run.log").read_text().partition("\n")
    (work / "run.log").write_text(json.dumps(json.loads(header) | {"policy": "notes.py:P"}) + "\n" + rest)
    (work / "notes.py").write_text(NOTES)
    return work


def wattloom(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=120, check=False)


READERS: Final = [
    ["why", "t1", "--log", "run.log"],
    ["replay", "run.log"],
    ["replay", "run.log", "--policy", "fifo"],
    ["tasks", "--journal", "run.log"],
    ["functions", "--journal", "run.log"],
    ["logs", "t1", "--journal", "run.log"],
]


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_no_command_that_reads_a_log_runs_the_file_it_names(folder: Path, words: list[str]) -> None:
    done = wattloom(*words)
    assert not (folder / "ran").exists()
    assert "Traceback" not in done.stderr


def test_a_log_decided_by_a_file_is_explained_and_replayed_if_that_is_trusted(folder: Path) -> None:
    for words in (["why", "t1", "--log", "run.log"], ["replay", "run.log"]):
        refused = wattloom(*words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "run.log was decided by notes.py:P" in refused.stderr
        assert "--trust-policy" in refused.stderr
        assert wattloom(*words, "--trust-policy").returncode == 0
        assert (folder / "ran").exists()
        (folder / "ran").unlink()


def test_with_another_policy_a_log_is_costed_and_nobody_says_that_it_would_decide_the_same(folder: Path) -> None:
    found = json.loads(wattloom("replay", "run.log", "--policy", "fifo", "--json").stdout)
    assert found["same_decisions"] is None
    assert found["recorded"]["tasks"]["finished"] == found["counterfactual"]["tasks"]["finished"] > 0
    assert any("notes.py:P would decide was not asked" in each for each in found["assumptions"])
    assert "notes.py:P was not asked again" in wattloom("replay", "run.log", "--policy", "fifo").stdout
    trusted = api.replay("run.log", "fifo", trust_policy=True)
    assert trusted.same_decisions is True
    assert trusted.recorded.makespan_s == found["recorded"]["makespan_s"]


def test_the_python_functions_ask_for_trust_too(folder: Path) -> None:
    with pytest.raises(PolicyError, match="trust"):
        api.why("t1", "run.log")
    with pytest.raises(PolicyError, match="trust"):
        api.replay("run.log")
    assert api.why("t1", "run.log", trust_policy=True).same_decisions
