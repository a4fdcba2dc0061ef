"""`wattloom validate attribution`, on this machine."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wattloom.cli.main import cli

QUICK = ("validate", "attribution", "--seconds", "2", "--rounds", "2", "--meter", "estimate")


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two functions in a file of the working folder."""
    (tmp_path / "mine_to_validate.py").write_text(
        "def sums():\n    return sum(range(200_000))\n\n"
        "def words():\n    return len(' '.join(map(str, range(30_000))))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return ["--function", "mine_to_validate:sums", "--function", "mine_to_validate:words"]


def test_it_says_for_each_function_what_was_said_and_what_the_meter_saw(functions: list[str]) -> None:
    done = CliRunner().invoke(cli, [*QUICK, *functions, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["meter"], found["provenance"], found["rounds"]) == ("estimate", "estimated", 2)
    assert "bookkeeping" in found["worth"], "an estimate proves nothing about what functions draw"
    assert [each["function"] for each in found["functions"]] == ["mine_to_validate.sums", "mine_to_validate.words"]
    for each in found["functions"]:
        assert each["calls"] > 0
        assert each["said_j"] > 0.0
        assert each["said_spread_j"] > 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--function", "mine_to_validate:sums"], "at least two"),
        (["--function", "mine_to_validate:sums", "--function", "mine_to_validate:sums"], "named once"),
        (["--function", "nowhere:f", "--function", "nowhere:g"], "no module nowhere"),
        (["--meter", "crystal-ball"], "crystal-ball"),
    ],
)
def test_what_cannot_be_tried_is_said_in_words(functions: list[str], arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(cli, ["validate", "attribution", "--seconds", "1", *arguments])
    assert done.exit_code != 0
    assert words in done.output
    assert "Traceback" not in done.output
