"""Settings come from where they are said to come from, and a wrong one is named with what is right."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from wattloom.errors import InputError
from wattloom.setting_groups import Local, Settings, groups
from wattloom.settings import (
    SettingsError,
    default_journal,
    journals,
    launchers_unused_since,
    load_settings,
    of_the_same_launcher,
    state_folder,
)

DOCS = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"


def load(folder: Path, **environ: str) -> Local:
    return load_settings(folder=folder, environ=environ).local


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(folder=tmp_path, environ={}) == Settings()


def test_each_source_goes_before_the_one_below_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n'
        '[tool.wattloom.local]\nretention_days = 1\nmax_workers = 1\npolicy = "a"\njournal = "a"\n'
    )
    assert load(tmp_path) == Local(retention_days=1.0, max_workers=1, policy="a", journal="a")
    (tmp_path / "wattloom.toml").write_text('[local]\nmax_workers = 2\npolicy = "b"\njournal = "b"\n')
    assert load(tmp_path) == Local(retention_days=1.0, max_workers=2, policy="b", journal="b")
    environ = {"WATTLOOM_LOCAL__POLICY": "c", "WATTLOOM_LOCAL__JOURNAL": "c"}
    assert load(tmp_path, **environ) == Local(retention_days=1.0, max_workers=2, policy="c", journal="c")
    given: dict[str, dict[str, object]] = {"local": {"journal": Path("d"), "policy": None}}
    assert load_settings(given, folder=tmp_path, environ=environ).local == Local(
        retention_days=1.0, max_workers=2, policy="c", journal="d"
    )


def test_text_of_the_environment_is_read_as_the_setting_wants_it(tmp_path: Path) -> None:
    environ = {
        "WATTLOOM_LOCAL__RETENTION_DAYS": "0.5",
        "WATTLOOM_LOCAL__MAX_WORKERS": " 3 ",
        "WATTLOOM_LOCAL__POLICY": "7",
        "WATTLOOM_LOCAL__DURABILITY": "machine",
    }
    assert load(tmp_path, **environ) == Local(retention_days=0.5, max_workers=3, policy="7", durability="machine")


def test_the_home_folder_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load(tmp_path, WATTLOOM_LOCAL__JOURNAL="~/work.journal").journal == str(tmp_path / "work.journal")


def test_other_variables_with_the_prefix_are_no_settings(tmp_path: Path) -> None:
    assert load(tmp_path, WATTLOOM_COMPILE="1", LOCAL__POLICY="x") == Local()


WRONG = [
    (
        "retention_day = 3",
        "retention_day",
        r"no such setting \(did you mean retention_days\?\); there is journal, dura",
    ),
    ("xyz = 3", "xyz", r"no such setting; there is journal"),
    ('max_workers = "many"', "max_workers", "must be a whole number, not 'many'"),
    ("max_workers = 1.5", "max_workers", "must be a whole number, not a number"),
    ("max_workers = true", "max_workers", "must be a whole number, not true or false"),
    ("max_workers = -1", "max_workers", "must be at least 0, not -1"),
    ("retention_days = 0", "retention_days", "must be above 0, not 0"),
    ("retention_days = nan", "retention_days", "must be above 0, not nan"),
    ('retention_days = "3"', "retention_days", "must be a number, not '3'"),
    ("policy = 3", "policy", "must be text, not a number"),
    ('durability = "proces"', "durability", r"must be process or machine, not 'proces' \(did you mean process\?\)"),
]


@pytest.mark.parametrize(("line", "key", "problem"), WRONG)
def test_a_wrong_value_in_a_file_is_named(tmp_path: Path, line: str, key: str, problem: str) -> None:
    (tmp_path / "wattloom.toml").write_text(f"[local]\n{line}\n")
    with pytest.raises(SettingsError, match=rf"wattloom\.toml: local\.{key}: {problem}"):
        load(tmp_path)
    (tmp_path / "wattloom.toml").unlink()
    (tmp_path / "pyproject.toml").write_text(f"[tool.wattloom.local]\n{line}\n")
    with pytest.raises(SettingsError, match=rf"pyproject\.toml: tool\.wattloom\.local\.{key}: {problem}"):
        load(tmp_path)


def test_a_wrong_variable_is_named_as_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="WATTLOOM_LOCAL__MAX_WORKERS: must be a whole number, not 'many'"):
        load(tmp_path, WATTLOOM_LOCAL__MAX_WORKERS="many")
    with pytest.raises(SettingsError, match=r"WATTLOOM_LOCAL__JURNAL: no such setting \(did you mean journal\?\)"):
        load(tmp_path, WATTLOOM_LOCAL__JURNAL="x")
    with pytest.raises(SettingsError, match=r"WATTLOOM_LOCL__JOURNAL: no such group .*\(did you mean local\?\)"):
        load(tmp_path, WATTLOOM_LOCL__JOURNAL="x")


def test_a_wrong_argument_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max_workers: must be at least 0, not -3") as found:
        load_settings({"local": {"max_workers": -3}}, folder=tmp_path, environ={})
    assert found.value.field == "max_workers"
    with pytest.raises(InputError, match="no such group"):
        load_settings({"locale": {"max_workers": 3}}, folder=tmp_path, environ={})


@pytest.mark.parametrize("text", ["local = 3", "[locl]\n", "[local", "\x00"])
def test_a_file_that_is_wrong_as_a_whole_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "wattloom.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"^wattloom\.toml"):
        load(tmp_path)


def test_a_project_file_with_a_wrong_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nwattloom = 3\n")
    with pytest.raises(SettingsError, match=r"pyproject\.toml: tool\.wattloom: must be a table, not a number"):
        load(tmp_path)


def test_every_setting_is_on_the_page_with_its_default() -> None:
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL))
    for group, kind in groups().items():
        values = kind()
        for name in values.__struct_fields__:
            value = getattr(values, name)
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower() if value is False else f"{value:g}"
            assert f"| `{name}` | `{shown}` |" in sections[group], f"{group}.{name}"


# -- where journals live -----------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "wattloom"


def test_journals_live_in_the_state_folder(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_folder() == state
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_STATE_HOME", ignored)
        assert state_folder() == tmp_path / "home" / ".local" / "state" / "wattloom"


def test_programs_of_the_same_name_have_different_journals(state: Path) -> None:
    one, other = default_journal("/a/resize.py"), default_journal("/b/resize.py")
    assert one != other
    assert {each.name.rpartition("-")[0] for each in (one, other)} == {"resize"}
    assert one == default_journal("/a/resize.py")
    assert default_journal("/a/resize.py", 2).name == one.name.replace(".journal", "-2.journal")
    assert one.parent == state


def test_odd_names_become_plain_ones(state: Path) -> None:
    assert default_journal("/a/über uns!.py").name.startswith("ber-uns-")
    assert default_journal("/a/....py").name.startswith("program-")
    assert default_journal("/a/tool/__main__.py").name.startswith("tool-")
    assert len(default_journal(f"/a/{'x' * 300}.py").name) < 100
    assert default_journal("").name == "interactive.journal"
    assert default_journal("", 3).name == "interactive-3.journal"


NAME = """
from wattloom.settings import default_journal
print("journal", default_journal().name)
"""


def journal_name(command: Sequence[str | Path], folder: Path, text: str = "", **surroundings: str) -> str:
    """What the program that is started calls its journal."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder, env=os.environ | surroundings, input=text, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    found = re.search(r"journal (\S+)", done.stdout)
    assert found, done.stderr
    return found[1]


def test_a_script_is_known_by_its_path_wherever_and_however_it_is_started(state: Path, tmp_path: Path) -> None:
    """As it always was: journals of earlier versions are found."""
    script = tmp_path / "resize.py"
    script.write_text(NAME)
    (tmp_path / "elsewhere").mkdir()
    own = default_journal(os.path.realpath(script)).name
    assert journal_name([sys.executable, script], tmp_path) == own
    assert journal_name([sys.executable, script, "--fast"], tmp_path / "elsewhere") == own
    assert journal_name([sys.executable, "-m", "resize"], tmp_path) == own
    package = tmp_path / "tool"
    package.mkdir()
    (package / "__main__.py").write_text(NAME)
    assert journal_name([sys.executable, "-m", "tool"], tmp_path) == default_journal(f"{package}/__main__.py").name


TEST = f"""
def test_it():
    exec({NAME!r})
"""
LAUNCHERS: dict[str, Sequence[str | Path]] = {
    "python -c": [sys.executable, "-c", NAME],
    "a module of a package": [sys.executable, "-m", "pytest", "-qs", "-p", "no:cacheprovider", "test_it.py"],
    "a command of a package": [
        Path(sys.executable).with_name("pytest"), "-qs", "-p", "no:cacheprovider", "test_it.py",
    ],
    "a module of Python": [sys.executable, "-m", "unittest", "look"],
    "a kernel": [sys.executable, "{installed}/ipykernel_launcher.py", "-f", "/run/kernel-1.json"],
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_what_runs_other_peoples_code_is_told_apart_by_its_folder_and_command(
    state: Path, tmp_path: Path, launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One journal for all of them would have the one run what the other left."""
    installed = tmp_path / "home" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "ipykernel_launcher.py").write_text(NAME)
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "home"))
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        (folder / "test_it.py").write_text(TEST)
        (folder / "look.py").write_text(NAME)
    command = [str(each).replace("{installed}", str(installed)) for each in LAUNCHERS[launcher]]
    names = [journal_name(command, folder, NAME) for folder in (*folders, folders[0])]
    assert names[0] == names[2]
    assert names[0] != names[1]
    if launcher == "a kernel":
        assert journal_name([*command[:-1], "/run/kernel-2.json"], folders[0]) == names[0], "it is another each time"
        assert journal_name(command, folders[0], JPY_SESSION_NAME="a.ipynb") != names[0]
    else:
        other = [each.replace("print", "0;print") for each in command] if "-c" in command else [*command, "-v"]
        assert journal_name(other, folders[0]) != names[0], "another command"


@pytest.mark.parametrize("command", [[sys.executable], [sys.executable, "-"]])
def test_a_script_from_standard_input_is_known_by_its_file(state: Path, tmp_path: Path, command: list[str]) -> None:
    """Through a pipe comes something else each time: nobody can tell whether it is the same program."""
    names = {}
    for script in ("a.py", "b.py", "a.py again"):
        (tmp_path / script.split()[0]).write_text(NAME)
        with open(tmp_path / script.split()[0]) as file:
            done = subprocess.run(command, cwd=tmp_path, stdin=file, capture_output=True, text=True, timeout=60)
        names[script] = done.stdout.split()[-1]
    assert names["a.py"] == names["a.py again"] != names["b.py"]
    piped = {journal_name(command, tmp_path, NAME) for _ in range(2)}
    assert len(piped) == 2
    assert all(name.startswith("interactive@") for name in (*names.values(), *piped))


STARTER = f"""
import subprocess, sys
print(subprocess.run([sys.executable, "-c", {NAME!r}], capture_output=True, text=True).stdout)
"""


def test_what_a_launcher_starts_is_told_apart_by_the_command_line_of_the_launcher(state: Path, tmp_path: Path) -> None:
    """As those that pytest -n starts: all of them have the same words, whatever is tested."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(STARTER)
    names = [journal_name([sys.executable, name], tmp_path) for name in ("a.py", "b.py", "a.py")]
    assert names[0] == names[2] != names[1]


def test_other_journals_of_a_launcher_are_those_of_its_folder_and_of_earlier_versions(state: Path) -> None:
    state.mkdir()
    names = ["pytest-12345678", "pytest-12345678@aaaaaabbbbbb", "pytest-12345678@aaaaaabbbbbb-2"]
    names += ["pytest-12345678@aaaaaacccccc", "pytest-12345678@ddddddbbbbbb", "other-12345678", "a-12345678@nested"]
    for name in names:
        (state / f"{name}.journal").write_text("something")
    found = {each.stem for each in of_the_same_launcher(state / f"{names[1]}.journal")}
    assert found == {names[0], names[3]}
    for alone in (names[5], names[6]):
        assert of_the_same_launcher(state / f"{alone}.journal") == []


def test_of_launchers_those_are_unused_that_no_copy_comes_after(state: Path) -> None:
    state.mkdir()
    names = ["pytest-12345678@aaaaaabbbbbb", "pytest-12345678@aaaaaabbbbbb-2", "pytest-12345678@aaaaaabbbbbb-3"]
    names += ["interactive@aaaaaacccccc", "interactive@dddddddddddd-9", "a-12345678@nested", "a-12345678", "a@b"]
    for time, name in enumerate(names, 1):
        (state / f"{name}.journal").write_text("something")
        os.utime(state / f"{name}.journal", (time, time))
    own = state / f"{names[0]}.journal"
    assert [each.stem for each in launchers_unused_since(5.0, own)] == [names[2], names[3]]
    assert [each.stem for each in launchers_unused_since(100.0, own)] == [names[2], names[3], names[4]]
    assert launchers_unused_since(100.0, state / "a-12345678.journal") == []


def test_all_journals_are_listed_the_one_used_last_first(state: Path) -> None:
    assert journals() == []
    state.mkdir()
    for seconds, name in enumerate(("a.journal", "b.journal", "c.journal", "b.journal-wal", "other.txt")):
        (state / name).write_text("something")
        os.utime(state / name, (seconds, seconds))
    (state / "a.journal-wal").touch()  # as reading leaves it
    assert [path.name for path in journals()] == ["b.journal", "c.journal", "a.journal"]
