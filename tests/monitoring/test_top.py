"""`wattloom top` as people and programs see it."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Wattloom, wattloom  # noqa: F401
from tests.metering.scripted import Scripted
from tests.metering.trees import machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.cli.top_view import BARS, History, as_object, joules_text, picture, rows_of
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.snapshot import DeviceUse, DeviceUser, Snapshot, TaskUse

ID = "ab" * 32


@pytest.fixture
def shown() -> Snapshot:
    census, meter = ScriptedCensus(), Scripted()
    users = (DeviceUser(ID, "", "", 3.0),)
    device = DeviceUse("GPU-1", 0, "[A100]", "nvidia", 6.0, 2.0, 1.0, users, 60.0, 0.5, None, None, "modelled")
    task = TaskUse("resize[1]", "n", "cpu", 5.0, 10, 1.0, "measured", 2.5)
    accountant = Accountant(
        census,
        meter,
        machine(provenance="measured"),
        node="n",
        devices=lambda now: (device,),
        tasks=lambda now: (task,),
        own_pid=99,
    )
    census.start(1, Place(f"/docker/{ID}", ID, "docker")).command = "/usr/bin/python3 work.py [odd]"
    census.start(2, Place("/system.slice/ssh.service", unit="ssh.service")).command = "sshd: somebody"
    census.start(3)
    accountant.sample(0.0)
    census.run(1, 0.25)
    census.run(2, 0.5)
    census.came_and_went(Place(), 0.125, "make")
    census.busy_s += 0.125
    meter.joules = 30.0
    return accountant.sample(1.0)


def printed(shown: Snapshot, width: int, by: str = "process") -> str:
    from rich.console import Console

    history = History()
    history.add(shown)
    out = Console(width=width, record=True, file=open(os.devnull, "w"), highlight=False)  # noqa: SIM115
    out.print(picture(shown, history, by, "watts", 20, width))  # type: ignore[arg-type]
    out.file.close()
    return out.export_text()


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("by", ["process", "container", "pod", "vm", "unit"])
def test_all_of_it_fits(shown: Snapshot, width: int, by: str) -> None:
    text = printed(shown, width, by)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "30.00 W ● measured, wall, by scripted" in text


def test_figures_marks_and_names_are_there(shown: Snapshot) -> None:
    text = printed(shown, 80)
    assert "somebody's 17.50 W  idle 10.00 W  nobody's 2.50 W  ours 0.00 W" in text
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if "watts▾" in line)
    assert "sshd: somebody" in lines[first + 1]
    assert "python3 work.py [" in lines[first + 2]
    assert ID[:12] in lines[first + 2]
    assert "make (came and" in lines[first + 3]
    assert "python3 work.py [odd]" in printed(shown, 120)
    assert "◐ 0 [A100]" in text
    assert "● resize[1]" in text
    assert BARS[-1] in lines[first + 1]


def test_a_silent_meter_is_said_and_no_watts_are_shown(shown: Snapshot) -> None:
    import msgspec

    silent = msgspec.structs.replace(shown, problem="unplugged", waiting_s=7.0)
    text = printed(silent, 80)
    assert "? W" in text
    assert "no reading for 7 s: unplugged" in text
    assert as_object(silent, "process", "watts", None, 0.0)["watts"] is None


def test_rows_are_sorted_by_what_was_asked_for(shown: Snapshot) -> None:
    assert [each.name for each in rows_of(shown, "process", "cpu", 2)] == ["p2", "p1"]
    assert [each.key for each in rows_of(shown, "container", "watts", None)] == [ID]


def test_joules_are_short() -> None:
    assert [joules_text(value) for value in (0.0, 0.0123, 1.0, 12.345, 1234.5, 5.5e6)] == [
        *("0 J", "12 mJ", "1 J", "12.3 J", "1.23 kJ", "5.5 MJ")
    ]


def test_json_is_one_line_whose_parts_add_up(wattloom: Wattloom) -> None:  # noqa: F811
    result = wattloom("top", "--once", "--json", "--interval", 0.3, "--meter", "estimate")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    found = json.loads(lines[0])
    assert (found["provenance"], found["by"]) == ("estimated", "process")
    assert found["watts"] > 0.0
    parts = ("entities_w", "idle_w", "overhead_w", "unattributed_w")
    assert sum(found[part] for part in parts) == pytest.approx(found["watts"])
    assert found["rows"][0].keys() >= {"pid", "name", "watts", "joules", "spread_j", "cpu_s", "container", "unit"}


def test_without_a_terminal_a_plain_table_is_printed(wattloom: Wattloom, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("COLUMNS", "80")
    result = wattloom("top", "--once", "--by", "unit", "--interval", 0.3, "--meter", "estimate")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "estimated" in result.stdout


def test_a_meter_that_does_not_work_is_refused_in_words(wattloom: Wattloom) -> None:  # noqa: F811
    result = wattloom("top", "--once", "--meter", "nonsense")
    assert result.exit_code == 2
    assert "'nonsense' is not known" in result.stderr


def test_in_a_terminal_it_fills_the_screen_heeds_keys_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    import termios

    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    before = termios.tcgetattr(theirs)
    line = [sys.executable, "-m", "wattloom.cli.main", "top", "--interval", "0.2", "--meter", "estimate"]
    own = os.environ | {"TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path)}
    own.pop("COLUMNS", None)
    process = subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, env=own)
    try:
        assert "pid" in until(ours, "watts▾")
        os.write(ours, b"u")
        assert "unit" in until(ours, "unit")
        os.write(ours, b"j")
        until(ours, "joules▾")
        os.write(ours, b"q")
        until(ours, "\x1b[?1049l")  # the screen as it was
        assert process.wait(20) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def until(terminal: int, text: str) -> str:
    """What it shows up to and with this text."""
    seen = b""
    limit = time.monotonic() + 30
    while text.encode() not in seen:
        assert time.monotonic() < limit, seen.decode(errors="replace")
        if select.select([terminal], [], [], 0.5)[0]:
            seen += os.read(terminal, 65536)
    return seen.decode(errors="replace")
