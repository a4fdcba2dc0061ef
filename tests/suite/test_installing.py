"""Installing: what is said beforehand, what is there afterwards, and that nothing is ever there in part."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.cli.conftest import Wattloom, wattloom

from wattloom import suite
from wattloom.suite import catalogue, installing, needs, places

__all__ = ["wattloom"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "wattloom" / "suite"


def steps(*names: str) -> list[installing.Step]:
    return installing.planned([suite.described(name) for name in names])


def there(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []


def need_runtime(name: str) -> None:
    if not needs.runtime_is_here(suite.described(name)):
        pytest.skip(f"{name}: ITS RUNTIME IS NOT IN THIS INSTALLATION")


def need(*programs: str) -> None:
    lacks = [program for program in programs if shutil.which(program) is None]
    if lacks:
        pytest.skip(f"MISSING: {', '.join(lacks)}")


def test_what_would_be_fetched_is_said_and_nothing_is_done(wattloom: Wattloom, cache: Path) -> None:
    need_runtime("html-java")
    done = wattloom("workload", "install", "jwt-node", "html", "--dry-run")
    assert done.exit_code == 0
    assert "jsonwebtoken@9.0.3 by npm" in done.stdout
    assert "org.freemarker:freemarker:2.3.34 by Maven" in done.stdout
    rows = json.loads(wattloom("workload", "install", "jwt-node", "--dry-run", "--json").stdout)
    assert [(row["name"], row["installed"]) for row in rows] == [("jwt-node", False)]
    assert there(cache) == []


def test_functions_that_need_nothing_have_nothing_to_install(wattloom: Wattloom) -> None:
    done = wattloom("workload", "install", "zip-python", "zip-java", "matrix-native-node")
    assert done.exit_code == 0
    assert "is there" in done.stdout


def test_modules_that_are_missing_are_one_step_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    (step,) = steps("jwt-python", "html-python")
    assert step.packages == ("pyjwt>=2.8", "cryptography>=41", "jinja2>=3.1")


def test_a_program_that_is_missing_is_named_with_its_package(
    wattloom: Wattloom, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_runtime("html-java")
    monkeypatch.setenv("PATH", "")
    done = wattloom("workload", "install", "html-java")
    assert done.exit_code == 1
    assert "error: html-java: html-java cannot be built without mvn (Debian: maven)" in done.stderr
    assert there(cache) == []


def test_a_package_that_is_none_leaves_nothing_behind_and_does_not_keep_the_others(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("npm")
    wrong = msgspec.structs.replace(suite.described("html-node"), packages=("wattloom-no-such-package@0.0.0",))
    monkeypatch.setitem(catalogue.FUNCTIONS, "html-node", wrong)
    monkeypatch.setattr(places, "_digest", lambda name: "0123456789")
    last = msgspec.structs.replace(steps("html-node")[0], name="last", function=None, packages=("--version",))
    failed, other = installing.install([*steps("html-node"), last])
    assert "npm" in failed.problem
    assert other.problem != failed.problem
    assert there(cache) == []


@pytest.mark.slow
def test_an_installation_is_whole_used_and_not_made_again(cache: Path, wattloom: Wattloom) -> None:
    need("npm")
    (done,) = installing.install(steps("html-node"))
    assert done.problem == ""
    (folder,) = there(cache)
    assert (cache / folder / "node_modules" / "mustache" / "package.json").is_file()
    assert (cache / folder / "html.js").is_file()
    assert steps("html-node") == []
    assert wattloom("workload", "install", "html-node").exit_code == 0
    assert "html-node" not in [each for each in suite.NAMES if any("mustache" in str(n) for n in suite.missing(each))]


@pytest.mark.slow
def test_one_that_is_killed_leaves_nothing_that_counts_and_the_next_clears_it_up(cache: Path) -> None:
    need("npm")
    command = [sys.executable, "-m", "wattloom.cli.main", "workload", "install", "zip-node"]
    child = subprocess.Popen(command, start_new_session=True)
    end = time.monotonic() + 30
    while not there(cache) and time.monotonic() < end and child.poll() is None:
        time.sleep(0.002)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    (left,) = there(cache)
    assert left.startswith(".building-")
    assert suite.missing("zip-node")
    installing.clear_leftovers()
    assert there(cache) == []


def test_folders_of_installations_that_are_under_way_and_of_other_functions_stay(cache: Path) -> None:
    ours = cache / f".building-{os.getpid()}-abc"
    ours.mkdir(parents=True)
    older, other = cache / "html-node-0000000000", cache / "html-nodes-000000000"
    older.mkdir()
    other.mkdir()
    installing.clear_leftovers()
    installing._remove_older("html-node", places.installed("html-node"))
    assert there(cache) == sorted([ours.name, other.name])


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("npm")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (done,) = installing.install(steps("html-node"))
    assert "Not a directory" in done.problem


def test_a_cache_that_others_may_write_to_is_refused(cache: Path, wattloom: Wattloom) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    done = wattloom("workload", "list")
    assert done.exit_code == 2
    assert "may be written by everybody" in done.stderr
