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


# -- settings of the working folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["wattloom.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('policy = "notes.py:P"', "names a file of Python. Nothing"),
        ('journal = "left.journal"', "names a journal, which holds calls to be made. Nothing"),
        ('keys = "left.keys"', "names a file of keys, which holds pickled results. Nothing"),
    ],
)
def test_what_settings_of_the_working_folder_name_is_not_run(folder: Path, file: str, setting: str, said: str) -> None:
    table = "local" if file == "wattloom.toml" else "tool.wattloom.local"
    (folder / file).write_text(f"[{table}]\n{setting}\n")
    done = wattloom("run", "--meter", "off", "--", "true")
    assert done.returncode == 2
    assert said in done.stderr
    assert f"WATTLOOM_TRUSTED_FOLDERS={folder}" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(["notes.py", "run.log", file])


def test_a_journal_that_came_with_a_checkout_is_not_opened_to_run_what_is_in_it(folder: Path, tmp_path: Path) -> None:
    """Its files belong to whoever checked it out."""
    evil = tmp_path / "evil.py"
    evil.write_text(
        "import os, time, wattloom\n"
        "def spring(where): open(where, 'w').close()\n"
        "if __name__ == '__main__':\n"
        "    executor = wattloom.Executor(1, journal='left.journal', meter='off', lease=None)\n"
        f"    executor.submit(time.sleep, 60); executor.submit(spring, {str(tmp_path / 'sprung')!r})\n"
        "    executor.sync(); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, evil], check=False, timeout=60)
    (folder / "wattloom.toml").write_text('[local]\njournal = "left.journal"\n')
    assert wattloom("run", "--meter", "off", "--", "true").returncode == 2
    assert not (tmp_path / "sprung").exists()
    assert wattloom("run", "--meter", "off", "--journal", "own.journal", "--", "true").returncode == 0


def test_installed_policies_may_be_named_by_anybody_and_what_is_given_goes_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "wattloom.toml").write_text('[local]\npolicy = "pack"\n')
    assert wattloom("run", "--meter", "off", "--", "true").returncode == 0
    (folder / "wattloom.toml").write_text('[local]\npolicy = "notes.py:P"\n')
    assert wattloom("run", "--meter", "off", "--policy", "fifo", "--", "true").returncode == 0
    monkeypatch.setenv("WATTLOOM_LOCAL__POLICY", "fifo")
    assert wattloom("run", "--meter", "off", "--", "true").returncode == 0
    assert not (folder / "ran").exists()


def test_settings_beside_a_program_are_as_good_as_the_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "wattloom.toml").write_text('[local]\npolicy = "notes.py:P"\njournal = "own.journal"\n')
    (folder / "program.py").write_text(
        "import wattloom\n"
        "if __name__ == '__main__':\n"
        "    with wattloom.Executor(1, meter='off') as executor: print(executor.submit(abs, -1).result())\n"
    )
    done = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "1\n", done.stderr
    assert (folder / "ran").exists()
    (folder / "ran").unlink()
    monkeypatch.setenv("WATTLOOM_TRUSTED_FOLDERS", str(folder))
    assert wattloom("run", "--meter", "off", "--", "true").returncode == 0
    assert (folder / "ran").exists()
