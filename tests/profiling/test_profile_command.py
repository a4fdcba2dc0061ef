"""`wattloom profile`: what is typed and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.profiling.made import cpu_profile

from wattloom.cli.main import cli
from wattloom.cluster.profile_file import CpuProfile, encode_profile


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("COLUMNS", raising=False)


def wattloom(*words: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], prog_name="wattloom", catch_exceptions=False)


def put(path: Path, profile: CpuProfile) -> Path:
    path.write_bytes(encode_profile(profile))
    return path


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return put(tmp_path / "a.json", cpu_profile(name="alpha", stressors=("integer", "memory")))


@pytest.fixture
def b(tmp_path: Path) -> Path:
    steep = cpu_profile(name="beta", watts=lambda level: 5.0 + 20.0 * level, stressors=("integer", "memory"))
    return put(tmp_path / "b.json", steep)


def test_profiling_an_estimate_is_warned_of_and_the_profile_is_found_again(tmp_path: Path) -> None:
    words = ("--levels", 1, "--stressors", "matrix", "--seconds", 1, "--settle", 0, "--attempts", 1, "--builtin")
    taken = wattloom("profile", "cpu", *words, "--meter", "estimate", "--json")
    assert taken.exit_code == 0, taken.output
    assert "does not measure, its watts are estimated" in taken.stderr
    assert "1/3 idle, first" in taken.stderr
    found = json.loads(taken.stdout)
    assert Path(found["path"]).parent == tmp_path / "state" / "wattloom" / "profiles"
    assert found["profile"]["levels"][0]["ops_per_s"] > 0.0
    shown = wattloom("profile", "show")
    assert shown.exit_code == 0
    assert "They were not measured" in shown.stdout


def test_without_a_profile_show_says_how_to_take_one() -> None:
    shown = wattloom("profile", "show")
    assert shown.exit_code == 2
    assert "`wattloom profile cpu` takes one" in shown.stderr


def test_show_prints_every_level_and_a_chart(a: Path) -> None:
    shown = wattloom("profile", "show", a).stdout
    for words in ("alpha: 4 cores, 8 threads", "integer", "memory", "100.0 ±0.1", "siblings from 5 on", "█"):
        assert words in shown
    assert "the processor package, measured, by meter powercap" in shown
    assert "Two tasks on one core run 1.64 times as long as one alone." in shown


def test_show_as_json_holds_the_file_and_what_the_scheduler_reads(a: Path) -> None:
    found = json.loads(wattloom("profile", "show", a, "--json").stdout)
    assert found["profile"] == json.loads(a.read_text())
    assert found["machine_profile"]["watts"][-1] == [8.0, 100.0]


def test_diff_says_who_is_cheaper_at_which_load(a: Path, b: Path) -> None:
    shown = wattloom("profile", "diff", a, b).stdout
    assert "beta draws less" in shown
    assert "alpha draws less" in shown
    assert "A is alpha, B is beta" in shown
    found = json.loads(wattloom("profile", "diff", a, b, "--json").stdout)
    assert [part["cheaper"] for part in found["stressors"][0]["ranges"]] == ["b", "a"]


def test_diff_of_plug_and_package_needs_a_conversion(a: Path, tmp_path: Path) -> None:
    wall = put(tmp_path / "w.json", cpu_profile(name="w", quantity="wall"))
    refused = wattloom("profile", "diff", a, wall)
    assert refused.exit_code == 2
    assert "--package-to-wall" in refused.stderr
    shown = wattloom("profile", "diff", a, wall, "--package-to-wall", "1.1,35").stdout
    assert "converted: alpha: 1.1 x package + 35 W" in shown
    assert wattloom("profile", "diff", a, wall, "--package-to-wall", "much").exit_code == 2


def test_pictures_are_drawn_and_the_same_profile_gives_the_same(a: Path, b: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="NOT TRIED: pictures. pip install 'wattloom[report]'")
    for name in ("1.svg", "2.svg"):
        assert wattloom("profile", "show", a, "--plot", tmp_path / name).exit_code == 0
    assert wattloom("profile", "diff", a, b, "--plot", tmp_path / "two.png").exit_code == 0
    assert (tmp_path / "1.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cpu", "--stressors", "none"), "'none' is not known"),
        (("cpu", "--levels", "0"), "must be between 1 and"),
        (("cpu", "--meter", "sundial"), "'sundial' is not known"),
        (("show", "nowhere.json"), "nowhere.json: cannot be read"),
        (("show", "{a}", "--plot", "x.gif"), "must end in .png, .svg, .pdf"),
        (("diff", "{a}", "nowhere.json"), "nowhere.json: cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_words(a: Path, words: tuple[str, ...], said: str) -> None:
    done = wattloom("profile", *(word.format(a=a) for word in words))
    assert done.exit_code == 2
    assert said in done.stderr


def test_frequencies_left_by_a_killed_run_are_put_back_by_the_next(a: Path, tmp_path: Path) -> None:
    governor = tmp_path / "cpu" / "cpufreq" / "policy0" / "scaling_governor"
    governor.parent.mkdir(parents=True)
    governor.write_text("performance\n")
    left = tmp_path / "state" / "wattloom" / "profiles" / "frequencies-before.json"
    left.parent.mkdir(parents=True)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    files = {"cpufreq/policy0/scaling_governor": "powersave"}
    left.write_text(json.dumps({"root": str(tmp_path / "cpu"), "boot_id": boot_id, "files": files}))
    shown = wattloom("profile", "show", a)
    assert "were put back" in shown.stderr
    assert governor.read_text().strip() == "powersave"
    assert not left.exists()


SCENARIO = """
name = "measured"
[[nodes]]
machine = "a.json"
[functions.f]
work_s = 10
[[arrivals]]
kind = "at-once"
count = 4
functions = { f = 1 }
"""


def test_a_scenario_can_name_a_profile(a: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    done = wattloom("simulate", scenario, "--policy", "fifo", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    seconds = 10.0 / 0.933
    assert found["energy_wh"]["total"] == pytest.approx(60.0 * seconds / 3600.0, rel=0.01), "four cores draw 60 W"


def test_a_scenario_that_names_a_wrong_profile_says_where(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    done = wattloom("simulate", scenario)
    assert done.exit_code == 2
    assert "nodes[0].machine" in done.stderr
    assert "a.json: cannot be read" in done.stderr
