"""`wattloom profile functions`, `show`, `export`, `import`: what is typed and what is printed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.affinity.test_exchange import put, row

from wattloom.cli.main import cli

HERE = "tests.affinity.functions"


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, beds_are_found: None) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("COLUMNS", raising=False)


def wattloom(*words: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], prog_name="wattloom", catch_exceptions=False)


def test_functions_are_profiled_shown_and_carried_to_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--bags", 2, "--seconds", 0.2, "--meter", "estimate", "--json")
    taken = wattloom("profile", "functions", f"{HERE}:short", f"{HERE}:raises", *words)
    assert taken.exit_code == 0, taken.output
    assert f"warning: {HERE}:raises is left out: ValueError: no such thing" in taken.stderr
    assert "bag 1 of 2" in taken.stderr
    found = json.loads(taken.stdout)
    assert [each["function"] for each in found["rows"]] == [f"{HERE}.short"]
    assert found["rows"][0]["watt_hours"] == pytest.approx(found["rows"][0]["joules"]["value"] / 3600.0)
    shown = wattloom("profile", "show", "--functions").stdout
    for part in (f"{HERE}.short", "E /s/core", "○ estimated", "nine times out of ten"):
        assert part in shown
    assert wattloom("profile", "export", tmp_path / "out.json").exit_code == 0
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert "1 rows of" in wattloom("profile", "import", tmp_path / "out.json").stdout
    assert "known already" in wattloom("profile", "import", tmp_path / "out.json").stdout


def test_what_functions_print_is_not_in_the_json(tmp_path: Path) -> None:
    (tmp_path / "talks.py").write_text("import os\ndef talks():\n    print('heard')\n    os.write(1, b'heard')\n")
    words = [sys.executable, "-m", "wattloom.cli.main", "profile", "functions", f"{tmp_path / 'talks.py'}:talks"]
    more = ["--bags", "1", "--size", "1", "--least", "1", "--seconds", "0.2", "--meter", "estimate", "--json"]
    done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
    assert "heard" not in done.stdout
    assert json.loads(done.stdout)["rows"]


def test_a_file_is_shown_against_one_machine_and_drawn(tmp_path: Path) -> None:
    file = put(
        tmp_path / "two.json", row("f", "x86"), row("g", "x86", 5.0), row("f", "arm", 12.0, 1.0), row("h", "arm")
    )
    shown = wattloom("profile", "show", file, "--plot", tmp_path / "two.png")
    assert shown.exit_code == 0
    assert "Of 1 function that both have, 1 is faster on arm than on x86, and 1 of 1 cost less." in shown.stdout
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")
    other = wattloom("profile", "show", file, "--plot", tmp_path / "arm.svg", "--reference", "arm")
    assert "0 are faster on x86 than on arm" in other.stdout
    assert "Against arm" in (tmp_path / "arm.svg").read_text() or (tmp_path / "arm.svg").stat().st_size > 1000
    wrong = wattloom("profile", "show", file, "--plot", tmp_path / "no.svg", "--reference", "vax")
    assert wrong.exit_code == 2
    assert "vax has no profiles; there are x86, arm" in wrong.stderr


@pytest.mark.parametrize("columns", [80, 120])
def test_a_narrow_terminal_gets_a_narrow_table(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = wattloom("profile", "show", put(tmp_path / "t.json", row("app.resize", "x86"))).stdout
    assert max(map(len, shown.splitlines())) <= columns
    assert "app.resize" in shown


def test_contradictions_are_refused_with_what_to_do(tmp_path: Path) -> None:
    wattloom("profile", "import", put(tmp_path / "a.json", row("f", "a")))
    wrong = wattloom("profile", "import", put(tmp_path / "b.json", row("f", "a", 30.0)))
    assert wrong.exit_code == 2
    assert "nothing was imported. --replace takes the file's" in wrong.stderr
    assert wattloom("profile", "import", tmp_path / "b.json", "--replace").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("functions", "json:nothing"), "json has no nothing"),
        (("functions", "--journal", "x"), "--journal is for --from-journal"),
        (("functions", "--from-journal"), "No function has finished a call"),
        (("functions", "json:dumps=[1]", "--seconds", "nan"), "finite"),
        (("show", "--functions"), "`wattloom profile functions` takes some"),
        (("export", "x.json"), "`wattloom profile functions` takes some"),
        (("import", "nowhere.json"), "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    found = wattloom("profile", *words)
    assert found.exit_code == 2, found.output
    assert said in found.stderr
