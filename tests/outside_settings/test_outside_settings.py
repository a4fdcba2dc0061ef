"""A meter and a predictor of another package have settings of their own, as ours have: found, checked, guarded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden.outside import Installed

STRIP, BROKEN = "outside-strip", "outside-broken"
PACKAGE = Path(__file__).parent / "package"
COMMAND = ("-P", "-m", "wattloom.cli.main")
"""Without the working folder on the path, which would have it trusted."""
HELP = """
import sys
import wattloom
from wattloom.cli.main import cli
cli.main(["--help"], standalone_mode=False)
print(*sorted(name for name in sys.modules if name.startswith("outside") or name == "importlib.metadata"))
"""
CHOOSE = """
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter
print(choose_meter(this_machine()).name)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("outside"), PACKAGE)


@pytest.fixture
def installed(package: Installed) -> Iterator[Installed]:
    """With a counter, and without settings."""
    (package.folder / "counter").write_text("5000000")
    yield package
    for name in ("wattloom.toml", "pyproject.toml"):
        (package.folder / name).unlink(missing_ok=True)


def settings(installed: Installed, text: str, file: str = "wattloom.toml") -> None:
    (installed.folder / file).write_text(text)


def meter(installed: Installed, name: str = STRIP, **variables: str) -> dict[str, Any]:
    listed = json.loads(installed.python(*COMMAND, "meter", "list", "--json", **variables))
    (found,) = (each for each in listed if each["name"] == name)
    assert isinstance(found, dict)
    return found


def refused(installed: Installed, **variables: str) -> str:
    done = installed.run(*COMMAND, "meter", "list", **variables)
    assert done.returncode == 2, done.stdout + done.stderr
    return " ".join(done.stderr.split())


def test_both_pass_their_kits(installed: Installed) -> None:
    said = installed.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "source/checks.py")
    assert " passed" in said
    assert "skipped" not in said


def test_neither_an_import_nor_the_help_loads_a_plug_in(installed: Installed) -> None:
    settings(installed, '[outside_strip]\nfile = "counter"\n')
    assert installed.python("-c", HELP).splitlines()[-1] == ""


def test_a_meter_that_is_not_set_up_says_how_to(installed: Installed) -> None:
    found = meter(installed)
    assert found["problem"] == "not set up"
    variable = "WATTLOOM_OUTSIDE_STRIP__FILE=/run/strip/counter"
    assert found["allow"] == f"set {variable}, or file below [outside_strip] in wattloom.toml"


def test_it_is_set_up_by_files_and_by_the_environment_which_goes_first(installed: Installed) -> None:
    settings(installed, '[tool.wattloom.outside_strip]\nfile = "counter"\n', "pyproject.toml")
    assert (meter(installed)["problem"], meter(installed)["used"]) == ("", True)
    settings(installed, '[outside_strip]\nfile = "nowhere"\n')
    assert "there is no counter in nowhere" in meter(installed)["problem"]
    assert meter(installed, WATTLOOM_OUTSIDE_STRIP__FILE="counter")["problem"] == ""


def test_the_home_folder_may_be_written_as_a_tilde(installed: Installed) -> None:
    variables = {"HOME": str(installed.folder), "WATTLOOM_OUTSIDE_STRIP__FILE": "~/counter"}
    assert meter(installed, **variables)["problem"] == ""


WRONG = [
    ('fil = "x"', "fil", "no such setting (did you mean file?); there is file, unit, most_w, daemon, api_key"),
    ("file = 3", "file", "must be text, not a number"),
    ('most_w = "much"', "most_w", "must be a number, not 'much'"),
    ("most_w = 0", "most_w", "must be above 0, not 0"),
    ('unit = "joule"', "unit", "must be microjoules or joules, not 'joule' (did you mean joules?)"),
]


@pytest.mark.parametrize(("line", "key", "problem"), WRONG)
def test_a_wrong_value_is_an_error_that_says_where_it_stands(
    installed: Installed, line: str, key: str, problem: str
) -> None:
    settings(installed, f"[outside_strip]\n{line}\n")
    assert f"wattloom.toml: outside_strip.{key}: {problem}" in refused(installed)


def test_a_wrong_variable_is_named_as_it_is_written(installed: Installed) -> None:
    said = refused(installed, WATTLOOM_OUTSIDE_STRIP__MOST_W="-1")
    assert "WATTLOOM_OUTSIDE_STRIP__MOST_W: must be above 0, not '-1'" in said


def test_a_group_that_nobody_brings_is_an_error_with_the_nearest_that_there_is(installed: Installed) -> None:
    settings(installed, '[outside_stripe]\nfile = "counter"\n')
    said = refused(installed)
    assert "wattloom.toml: outside_stripe: no such group of settings (did you mean outside_strip?)" in said
    assert re.search(r"there is local, .*outside_margin, outside_strip, .*redfish", said)


def test_its_credentials_are_not_sent_where_a_file_of_the_folder_says(installed: Installed) -> None:
    settings(installed, '[outside_strip]\nfile = "counter"\ndaemon = "elsewhere"\n')
    found = meter(installed, WATTLOOM_OUTSIDE_STRIP__API_KEY="secret")
    assert found["problem"] == "elsewhere wants a key"
    assert (
        "WATTLOOM_OUTSIDE_STRIP__API_KEY is not sent where wattloom.toml: outside_strip.daemon says" in found["allow"]
    )
    both = {"WATTLOOM_OUTSIDE_STRIP__API_KEY": "secret", "WATTLOOM_OUTSIDE_STRIP__DAEMON": "here"}
    assert meter(installed, **both)["problem"] == ""
    trusted = {"WATTLOOM_OUTSIDE_STRIP__API_KEY": "secret", "WATTLOOM_TRUSTED_FOLDERS": str(installed.folder)}
    assert meter(installed, **trusted)["problem"] == ""


def test_a_file_of_somebody_else_says_nothing_of_it(installed: Installed) -> None:
    settings(installed, '[outside_strip]\nfile = "counter"\n')
    (installed.folder / "wattloom.toml").chmod(0o666)
    assert "wattloom.toml: outside_strip.file: is not taken from there" in refused(installed)


def test_a_package_that_cannot_be_loaded_keeps_nobody_and_is_named_where_it_was_asked_for(installed: Installed) -> None:
    settings(installed, '[outside_broken]\nanything = "x"\n[outside_strip]\nfile = "counter"\n')
    assert "ImportError: libstrip.so is not there" in meter(installed, BROKEN)["problem"]
    assert meter(installed)["problem"] == ""
    done = installed.run("-P", "-c", CHOOSE)
    assert done.stdout.strip() == STRIP
    assert "the meter outside-broken is set up but does not work here" in done.stderr


def test_what_is_set_for_a_predictor_is_in_the_log_so_that_a_replay_needs_no_settings(
    installed: Installed,
) -> None:
    settings(installed, "[outside_margin]\nmargin = 1.5\n")
    assert simulated(installed, "outside-margin") == "outside-margin:margin=1.5"
    (installed.folder / "wattloom.toml").unlink()
    assert installed.wattloom("replay", "run.log")["same_decisions"]
    assert simulated(installed, "outside-margin") == "outside-margin"


def simulated(installed: Installed, predictor: str) -> str:
    """The predictor in the log's header."""
    installed.wattloom(
        "simulate", "heats-bursts", "--policy", "least-joules", "--predictor", predictor, "--log", "run.log"
    )
    header = json.loads((installed.folder / "run.log").read_text().splitlines()[0])
    return str(header["predictor"])


def test_an_option_of_a_predictor_goes_before_what_is_set(installed: Installed) -> None:
    settings(installed, "[outside_margin]\nmargin = 1.5\n")
    assert simulated(installed, "outside-margin:margin=3") == "outside-margin:margin=3"


def test_a_wrong_option_of_a_predictor_is_named(installed: Installed) -> None:
    for option, problem in (("margin=0", "must be above 0, not '0'"), ("margn=1", "did you mean margin?")):
        done = installed.run(*COMMAND, "simulate", "heats-bursts", "--predictor", f"outside-margin:{option}")
        assert done.returncode == 2
        assert problem in " ".join(done.stderr.split())
