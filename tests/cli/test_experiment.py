"""`wattloom experiment`: the list, the table, JSON and CSV, and what is refused."""

import csv
import json
from io import StringIO
from pathlib import Path

from tests.cli.conftest import Wattloom


def test_experiments_are_listed_with_their_options_and_needs(wattloom: Wattloom) -> None:
    found = json.loads(wattloom("experiment", "list", "--json").stdout)
    (isa,) = [each for each in found if each["name"] == "isa"]
    assert isa["options"].keys() == {"alike", "threads"}
    assert isa["cite"]
    assert "isa" in wattloom("experiment", "list").stdout


def test_a_run_prints_published_beside_ours_with_verdict_priors_and_source(wattloom: Wattloom) -> None:
    shown = wattloom("experiment", "run", "isa", "--seeds", "3").stdout
    for words in ("theirs", "ours", "verdict", "5.3 to 15.2%", "Source: S. Arys", "modelled", "SPECpower"):
        assert words in shown


def test_the_short_form_is_the_same(wattloom: Wattloom) -> None:
    long = wattloom("experiment", "run", "isa", "--seeds", "2", "--json").stdout
    assert wattloom("experiment", "isa", "--seeds", "2", "--json").stdout == long
    assert json.loads(long)["seeds"] == 2


def test_csv_has_a_line_for_each_row_of_the_json(wattloom: Wattloom) -> None:
    rows = list(csv.DictReader(StringIO(wattloom("experiment", "isa", "--seeds", "2", "--csv").stdout)))
    shown = json.loads(wattloom("experiment", "isa", "--seeds", "2", "--json").stdout)
    assert [row["what"] for row in rows] == [held["what"] for held in shown["held"]]
    assert [row["verdict"] for row in rows] == [held["verdict"] for held in shown["held"]]


def test_what_cannot_be_run_is_refused_in_a_sentence(wattloom: Wattloom) -> None:
    for words, said in (
        (("isaa",), "did you mean isa?"),
        (("isa", "--data", "no-such-folder"), "there is no folder no-such-folder"),
        (("isa", "--csv", "--json"), "two forms of the same"),
        (("isa", "--seeds", "0"), "--seeds"),
    ):
        refused = wattloom("experiment", *words)
        assert refused.exit_code == 2
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_report_is_a_page_and_its_pictures(wattloom: Wattloom, tmp_path: Path) -> None:
    ran = wattloom("experiment", "isa", "--seeds", "2", "--report", tmp_path / "out")
    assert f"Report: {tmp_path / 'out' / 'index.html'}" in ran.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["energy.png", "index.html", "savings.png"]
