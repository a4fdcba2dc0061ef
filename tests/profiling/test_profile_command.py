"""`wattloom profile`: what is typed and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.profiling.made import cpu_profile, disturbed

from wattloom.cli.main import cli
from wattloom.machines.profile_file import CpuProfile, encode_profile


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
    assert "`wattloom meter list` says" in taken.stderr


def test_without_a_profile_show_says_how_to_take_one() -> None:
    shown = wattloom("profile", "show")
    assert shown.exit_code == 2
    assert "`wattloom profile cpu` takes one" in shown.stderr


def test_show_prints_every_level_and_a_chart(a: Path) -> None:
    shown = wattloom("profile", "show", a).stdout
    for words in ("alpha: 4 cores, 8 threads", "integer", "memory", "100.0 ± 0.1", "siblings from 5 on", "█"):
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
        (("cpu", "--output", "nowhere/d.json"), "output: there is no folder nowhere"),
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


@pytest.mark.parametrize("words", [("--levels", "99999"), ("--stressors", "none"), ("--output", "nowhere/d.json")])
def test_wrong_options_are_said_before_any_warning(words: tuple[str, str]) -> None:
    done = wattloom("profile", "cpu", "--builtin", "--meter", "estimate", *words)
    assert done.exit_code == 2
    assert "does not measure" not in done.stderr
    assert not Path("nowhere").exists()


def test_show_lists_every_disturbed_reading_that_it_counts(tmp_path: Path) -> None:
    path = put(tmp_path / "d.json", disturbed(cpu_profile(), 2, 3, idle=("last",)))
    shown = wattloom("profile", "show", path).stdout
    assert shown.count("disturbed: 1.00 cores busy by others") == 3
    assert "3 readings were disturbed" in shown
    assert "the same `wattloom profile cpu` command, with the options it was taken with, tries again" in shown
    once = wattloom("profile", "show", put(path, disturbed(cpu_profile(), 2))).stdout
    assert "1 reading was disturbed by other work and is not used" in once


def test_small_joules_have_a_unit_in_which_they_can_be_read(tmp_path: Path) -> None:
    path = put(tmp_path / "s.json", cpu_profile(work=lambda level: 200_000.0 * level))
    for shown in (wattloom("profile", "show", path).stdout, wattloom("profile", "diff", path, path).stdout):
        assert "µJ per work" in shown
        assert "150.0" in shown, "30 W over 200,000"
        assert "<0.001" not in shown


def test_diff_marks_what_was_disturbed_and_does_not_conclude_from_it(tmp_path: Path) -> None:
    calm = cpu_profile(name="vm", provenance="estimated")
    a = put(tmp_path / "old.json", calm)
    b = put(tmp_path / "new.json", disturbed(calm, 1, 2, 3, 4, 5, 6))
    shown = " ".join(wattloom("profile", "diff", a, b).stdout.split())
    assert "A is vm (old.json), B is vm (new.json)" in shown
    assert "90.00*" in shown, "level 1"
    assert "* disturbed by other work" in shown
    assert "Too few undisturbed readings to say who draws less: A has 9 of 9, B has 3 of 9" in shown
    assert "draws less." not in shown
    assert "times the work" not in shown
    assert "The watts of vm (old.json) and vm (new.json) are estimated" in shown


def test_diff_of_estimates_says_so_beside_each_conclusion(tmp_path: Path) -> None:
    a = put(tmp_path / "a.json", cpu_profile(name="x", provenance="estimated"))
    b = put(tmp_path / "b.json", cpu_profile(name="y", watts=lambda level: 9.0 * (level + 1)))
    assert "y draws less (not measured)." in wattloom("profile", "diff", a, b).stdout
    assert "y draws less (estimated)." not in wattloom("profile", "diff", a, b).stdout
    assert "neither draws less (estimated)." in wattloom("profile", "diff", a, a).stdout


def test_what_was_left_for_another_root_than_the_kernels_is_not_put_back_and_that_is_said(
    a: Path, tmp_path: Path
) -> None:
    """Whoever can write that file must not have others written by it. What is put back: tests of frequencies."""
    governor = tmp_path / "cpu" / "cpufreq" / "policy0" / "scaling_governor"
    governor.parent.mkdir(parents=True)
    governor.write_text("performance\n")
    left = tmp_path / "state" / "wattloom" / "profiles" / "frequencies-before.json"
    left.parent.mkdir(parents=True)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    files = {"cpufreq/policy0/scaling_governor": "powersave"}
    left.write_text(json.dumps({"root": str(tmp_path / "cpu"), "boot_id": boot_id, "files": files}))
    shown = wattloom("profile", "show", a)
    assert "frequencies are not put back by it. Remove it" in shown.stderr
    assert governor.read_text().strip() == "performance"
    assert left.exists()


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


@pytest.mark.parametrize("columns", [66, 80, 100])
def test_a_narrow_terminal_gets_all_figures_of_the_columns_it_has(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = put(tmp_path / "a.json", disturbed(cpu_profile(name="alpha"), 2))
    other = put(tmp_path / "b.json", cpu_profile(name="beta", watts=lambda level: 50000.25 + 20000.5 * level))
    narrow = {}
    for width in (columns, 400):
        monkeypatch.setenv("COLUMNS", str(width))
        narrow[width] = [wattloom("profile", *words).stdout for words in (("show", one), ("diff", one, other))]
        assert max(len(line) for shown in narrow[width] for line in shown.splitlines()) <= width
    for shown, full in zip(narrow[columns], narrow[400], strict=True):
        known = set(full.split()) | {"(1)"}
        figures = {word for word in shown.split() if any(letter.isdigit() for letter in word) and "/" not in word}
        assert figures <= known  # none was cut
        assert "…" not in shown
    assert "cores busy by others" in " ".join(narrow[columns][0].split())
    assert narrow[columns][1].count("*") == narrow[400][1].count("*")
