"""`wattloom machines curve` and `match`, as a shell sees them."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Wattloom

ENDS = ("machines", "curve", "--idle", "95", "--max", "560")


def test_json_has_eleven_watts_with_spreads_and_goes_through_the_points(wattloom: Wattloom) -> None:
    words = (*ENDS, "--cpu", "AMD EPYC 9654", "--year", "2023", "--point", "10=190", "--point", "50%=330W", "--json")
    found = json.loads(wattloom(*words).stdout)
    assert found["loads"] == list(range(0, 101, 10))
    assert len(found["watts"]) == len(found["spread"]) == len(found["low"]) == len(found["high"]) == 11
    assert [found["by_load"][load] for load in ("0", "10", "50", "100")] == [95, 190, 330, 560]
    assert (found["quantity"], found["provenance"], found["nearness"]) == ("wall", "modelled", "newer than all")


def test_the_table_says_what_it_rests_on(wattloom: Wattloom) -> None:
    result = wattloom("machines", "curve", "--cpu", "Xeon Platinum 8380")
    assert result.exit_code == 0
    assert "estimated, watts at the plug" in result.stdout
    assert "assumed: idle of one package" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the shape is that of servers in general"),
        (("--cpu", "AMD EPYC 9654"), "the shape follows the latest of its line"),
        (("--maker", "Foo"), "maker: 'Foo' is not known and is not used"),
    ],
)
def test_the_table_says_what_it_had_to_go_by(words: tuple[str, ...], said: str, wattloom: Wattloom) -> None:
    assert said in " ".join(wattloom(*ENDS, *words).stdout.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--point", "half=300"), "is not LOAD=WATTS"),
        (("--point", "110=300"), "the load must be percent"),
        (("--point", "50=600"), "is not between"),
        (("--year", "20"), "must be a year"),
        (("--point", "0.5=200"), "loads are percent: did you mean 50=200?"),
    ],
)
def test_wrong_options_are_refused_in_words(words: tuple[str, ...], message: str, wattloom: Wattloom) -> None:
    result = wattloom(*ENDS, *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_recorded_run_teaches_a_curve(tmp_path: Path, wattloom: Wattloom) -> None:
    lines = [f"{3 * at},{at // 10 % 9},{100 + 20 * (at // 10 % 9)}" for at in range(300)]
    samples = tmp_path / "run.csv"
    samples.write_text("\n".join(["time_s,cpu_cores,watts", *lines]))
    found = json.loads(wattloom("machines", "curve", "--samples", samples, "--json").stdout)
    assert (found["watts"][0], found["watts"][-1], found["cores"][-1]) == (100, 260, 8)
    assert "leave the other options out" in wattloom(*ENDS, "--samples", samples).stderr
    missing = wattloom("machines", "curve", "--samples", tmp_path / "nope.csv").stderr
    assert "nope.csv: cannot be read: No such file or directory" in missing
    assert "Errno" not in missing


def test_match_says_where_this_machines_curve_comes_from(wattloom: Wattloom) -> None:
    found = json.loads(wattloom("machines", "match", "--json").stdout)
    assert found["by"] in {"profile", "catalogue", "processor", "family", "kind"}
    assert 0.0 < found["spread"] < found["error"]
    assert found["idle_w"] < found["full_w"]
    shown = wattloom("machines", "match").stdout
    assert f"by {found['by']}: " in shown.replace("\n", " ")
    size = f"{found['threads']} vCPUs" if found["virtual"] else f"{found['cores']} cores, {found['threads']} threads"
    assert f"{found['machine']}: {size}" in shown
