"""What is printed only shows: names, messages and logs of others make no terminal do anything."""

import ast
import json
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import wattloom
from wattloom import api
from wattloom.cli.options import function_names
from wattloom.cli.printing import cell, cleaned, literal, safe_json
from wattloom.cli.structured_log import JsonLines, Words

COMMAND: Final = Path(sys.executable).with_name("wattloom")
EVIL: Final = "\x1b]0;evil\x07\x1b[2J\x9b31m\x7f\u202e[red]name[/red]\rx"
"""A title, an empty screen, a colour by one character, a deletion, another direction, rich's markup, a line's start."""
CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
LOOKS: Final = re.compile(r"\x1b\[[0-9;]*m")
"""What rich itself sends to a terminal: colours and bold."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal and a log in which names, messages and output hold such things."""
    work = tmp_path_factory.mktemp("work")
    (work / "program.py").write_text(
        "import sys, wattloom\n"
        f"EVIL = {EVIL!r} + chr(10) + 'row'\n"
        "def good():\n"
        "    print(EVIL)\n"
        "def bad():\n"
        "    raise ValueError(EVIL)\n"
        "good.__qualname__ = 'good' + EVIL\n"
        "bad.__qualname__ = 'bad' + EVIL\n"
        "if __name__ == '__main__':\n"
        "    with wattloom.Executor(1, journal='evil.journal', meter='off') as executor:\n"
        "        for each in (good, bad):\n"
        "            executor.submit(each).exception()\n"
    )
    subprocess.run([sys.executable, "program.py"], cwd=work, check=True, timeout=60)
    api.simulate("hsc-cpu", "fifo", log=work / "run.log")
    text = (work / "run.log").read_text()
    function = re.search(r'"function":\{"name":"([^"]+)"', text)
    assert function is not None
    evil = json.dumps(EVIL, ensure_ascii=False)[1:-1]
    for name in (function[1], "t1"):
        text = text.replace(f'"{name}"', f'"{name}{evil}"')
    (work / "run.log").write_text(text)
    return work


def through_pipes(folder: Path, *words: str) -> str:
    done = subprocess.run([COMMAND, *words], cwd=folder, capture_output=True, timeout=60, check=False)
    return (done.stdout + done.stderr).decode()


def on_a_terminal(folder: Path, *words: str) -> str:
    """Standard output and error are a terminal's; its own ends of lines and colours are left out."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *words], cwd=folder, stdin=end, stdout=end, stderr=end, env=os.environ | {"TERM": "xterm-256color"}
    )
    os.close(end)
    found = b""
    try:
        while part := os.read(terminal, 65536):
            found += part
    except OSError:  # all have closed it
        pass
    process.wait(60)
    os.close(terminal)
    return LOOKS.sub("", found.decode().replace("\r\n", "\n"))


LISTING: Final = [
    ["tasks", "--journal", "evil.journal"],
    ["tasks", "--journal", "evil.journal", "--json"],
    ["functions", "--journal", "evil.journal"],
    ["functions", "--journal", "evil.journal", "--json"],
    ["logs", "--journal", "evil.journal"],
    ["logs", "--journal", "evil.journal", "--json"],
    ["logs", "1-2", "--journal", "evil.journal"],
    ["why", "1-1", "--journal", "evil.journal"],
    ["replay", "evil.journal"],
    ["tasks", "--journal", "run.log"],
    ["functions", "--journal", "run.log"],
    ["why", f"t1{EVIL}", "--log", "run.log"],
    ["replay", "run.log", "--policy", "pack"],
    # what was typed, and names of files
    ["why", EVIL, "--journal", "evil.journal"],
    ["tasks", "--journal", f"no{EVIL}file"],
    ["replay", f"no{EVIL}file"],
    ["simulate", f"no{EVIL}file"],
    ["simulate", "hsc-cpu", "--policy", f"no{EVIL}policy"],
    ["run", f"no{EVIL}module:f"],
    ["run", "--meter", f"no{EVIL}meter", "--", "true"],
]


@pytest.mark.parametrize("words", LISTING, ids=lambda words: cleaned(" ".join(words)))
def test_no_command_hands_control_characters_on(folder: Path, words: list[str]) -> None:
    for said in (through_pipes(folder, *words), on_a_terminal(folder, *words)):
        assert said
        assert not CONTROLS.search(said), said


def test_names_are_shown_with_their_brackets_and_in_one_row(folder: Path) -> None:
    said = through_pipes(folder, "functions", "--journal", "evil.journal", "--json")
    names = {each["function"] for each in json.loads(said)}
    assert any(EVIL in name for name in names), "in JSON nothing is lost"
    shown = subprocess.run(
        [COMMAND, "tasks", "--journal", "evil.journal"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "400"},
        check=True,
    ).stdout
    assert shown.count("[red]name[/red]") >= 2
    assert not [line for line in shown.splitlines() if line.strip().startswith("row")]


def test_output_of_a_task_is_raw_to_a_pipe_and_on_a_terminal_has_its_colours_alone(folder: Path) -> None:
    """Whoever wants the bytes has them; whoever looks is not led astray."""
    piped = subprocess.run(
        [COMMAND, "logs", "1-1", "--journal", "evil.journal"], cwd=folder, capture_output=True, check=True
    ).stdout.decode()
    assert EVIL in piped
    assert not CONTROLS.search(on_a_terminal(folder, "logs", "1-1", "--journal", "evil.journal"))


def test_completion_offers_no_such_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTLOOM_LOCAL__JOURNAL", str(folder / "evil.journal"))
    for item in function_names(None, None, ""):  # type: ignore[arg-type]
        assert item.value.isprintable()


@pytest.mark.parametrize("form", [Words("%(levelname)s %(message)s"), JsonLines()])
def test_what_long_running_commands_say_is_clean_too(form: logging.Formatter) -> None:
    record = logging.LogRecord("wattloom", logging.WARNING, "", 0, "%s", (EVIL,), None)
    assert not CONTROLS.search(form.format(record))


@pytest.mark.parametrize("text", ["", "Zürich → 3 µJ ± 26 €", "a\tb\nc", "日本 👩‍💻"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert cleaned(text) == text
    assert safe_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


def test_json_stays_json_and_says_the_same() -> None:
    everything = "".join(map(chr, range(0x300))) + "\u2028\u202e\u2069\udc80"
    assert json.loads(safe_json(json.dumps(everything, ensure_ascii=False))) == everything


def test_brackets_and_rows_are_not_for_names_to_make() -> None:
    from rich.text import Text

    assert Text.from_markup(literal("[red]x[/red]")).plain == "[red]x[/red]"
    assert "\n" not in cell("a\nb")


def test_commands_print_through_one_place() -> None:
    """Another way out would have to clean by itself."""
    found = []
    for file in sorted((Path(wattloom.__file__).parent / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in ("click.echo", "click.secho", "click.echo_via_pager", "print", "sys.stdout.write"):
                found.append(file.name)
    assert set(found) <= {"printing.py", "demo_functions.py"}
