"""`wattloom plan make` and `plan show`, as they are typed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.beds.plans import table

from wattloom.cli.main import cli
from wattloom.workload.function_profile import encode_function_profiles

RATES = """
profiles = "profiles.json"

[functions]
jwt = 40
zip = 20
gif = { rate = 6, memory_gib = 0.5 }

[[servers]]
name = "arm"
machine = "arm"
cores = 16
arch = "aarch64"
idle_w = 60

[[servers]]
name = "x86"
machine = "x86"
cores = 12
memory_gib = 64
arch = "x86_64"
idle_w = 90
"""
PROFILES = table(
    {
        "jwt": {"arm": (10.0, 1.0), "x86": (12.0, 2.0)},
        "zip": {"arm": (5.0, 4.0), "x86": (5.0, 3.0)},
        "gif": {"arm": (1.0, 9.0), "x86": (2.0, 20.0)},
    }
)


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    (tmp_path / "profiles.json").write_bytes(encode_function_profiles(PROFILES))
    (tmp_path / "rates.toml").write_text(RATES)
    return tmp_path / "rates.toml"


def typed(*words: object) -> Result:
    return CliRunner().invoke(cli, ["plan", *map(str, words)])


def test_a_plan_is_printed_by_server_with_its_verdict(rates: Path) -> None:
    told = typed("make", rates)
    assert told.exit_code == 0, told.output
    assert "energy: 154.0 W, proven best" in told.output
    assert "arm" in told.output
    assert "10" in told.output


def test_a_plan_is_kept_and_shown_again(rates: Path) -> None:
    kept = rates.parent / "plan.json"
    made = json.loads(typed("make", rates, "--json", "-o", kept).stdout)
    shown = json.loads(typed("show", kept, "--json").stdout)
    assert shown == made
    assert made["gap"] == 0.0
    assert "gif" in typed("show", kept, "--functions").output


def test_a_plan_is_changed_with_few_moves(rates: Path) -> None:
    kept = rates.parent / "plan.json"
    typed("make", rates, "--policy", "x86-first", "-o", kept)
    changed = json.loads(typed("make", rates, "--from", kept, "--move-price", "50", "--json").stdout)
    assert changed["moves"] == 1


def test_a_report_has_a_page_and_a_picture(rates: Path) -> None:
    folder = rates.parent / "out"
    assert typed("make", rates, "--report", folder).exit_code == 0
    assert "proven best" in (folder / "index.html").read_text()
    assert (folder / "plan.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("jwt = 40", "jwtt = 40", "functions.jwtt: has no profile in"),
        ("jwt = 40", "jwtt = 40", "did you mean jwt?"),
        ("jwt = 40", "jwt = nan", "functions.jwt.rate"),
        ("jwt = 40", "jwt = -1", "functions.jwt.rate"),
        ("jwt = 40", 'jwt = "many"', "functions"),
        ("cores = 16", "cores = 0", "servers[0].cores"),
        ("cores = 16\n", "", "servers[0].machine: 'arm' is not known: give its cores"),
        ('name = "x86"', 'name = "arm"', "servers[1].name: 'arm' is there twice"),
        ("rate = 6", 'rate = 6, labels = { zone = "a" }', "functions.gif.labels.zone: no server has zone=a"),
        ("rate = 6", 'rate = 6, arch = "riscv64"', "functions.gif.arch: no server is riscv64"),
        ("jwt = 40", "jwt = 4000", "--split"),
        ("[functions]", "[function]", "function"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(rates: Path, old: str, new: str, said: str) -> None:
    rates.write_text(RATES.replace(old, new, 1))
    told = typed("make", rates)
    assert told.exit_code == 2
    assert said in told.stderr


@pytest.mark.parametrize("speed", ["0", "-1", "1e300", "NaN"])
def test_absurd_speeds_are_refused_and_nothing_is_written(rates: Path, speed: str) -> None:
    text = encode_function_profiles(PROFILES).decode().replace('"value": 10.0', f'"value": {speed}', 1)
    (rates.parent / "profiles.json").write_text(text)
    told = typed("make", rates, "-o", rates.parent / "plan.json")
    assert told.exit_code == 2
    assert "profiles.json" in told.stderr
    assert not (rates.parent / "plan.json").exists()


def test_profiles_that_are_nowhere_are_said_to_be_missing(
    rates: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rates.write_text(RATES.replace('profiles = "profiles.json"', ""))
    told = typed("make", rates)
    assert told.exit_code == 2
    assert "profiles: there are none" in told.stderr


def test_goal_and_policy_together_are_refused(rates: Path) -> None:
    assert typed("make", rates, "--goal", "cores", "--policy", "round-robin").exit_code == 2


def test_a_plan_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    told = typed("show", tmp_path / "plan.json")
    assert told.exit_code == 2
    assert "plan.json" in told.stderr
