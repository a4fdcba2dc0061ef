"""A plug-in that somebody wrote by the documentation works on, unchanged: policies, a meter, both conformance kits."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.golden import outside
from tests.golden.comparing import lost
from tests.golden.outside import Installed


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("outside"))


def test_it_passes_both_kits(installed: Installed) -> None:
    said = installed.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "source/checks.py")
    assert " passed" in said
    assert "skipped" not in said


def test_its_policies_decide_as_they_did(installed: Installed) -> None:
    assert "\n".join(lost(outside.recorded(), outside.came_of(installed))) == ""


def test_its_policies_are_listed_with_their_options(installed: Installed) -> None:
    found = {each["name"]: each for each in installed.wattloom("policies")}
    assert {"outside-fastest", "outside-crowded", "outside-nearest"} <= set(found)
    assert found["outside-fastest"]["options"] == {"price": "seconds that a joule is worth (default 0)"}


def test_its_decisions_are_replayed_and_explained(installed: Installed) -> None:
    installed.wattloom("simulate", "heats-bursts", "--policy", "outside-crowded", "--log", "run.log")
    assert installed.wattloom("replay", "run.log")["same_decisions"]
    assert installed.wattloom("why", "t1", "--log", "run.log")["decisions"][-1]["reason"] == "taken"


def test_its_meter_is_listed_with_what_it_needs(installed: Installed, tmp_path: Path) -> None:
    counter = tmp_path / "energy1_input"
    missing = meter(installed, counter)
    assert "there is no counter" in missing["problem"]
    assert missing["allow"] == "load the board's driver"
    counter.write_text("5000000")
    there = meter(installed, counter)
    assert (there["quantity"], there["provenance"], there["problem"]) == ("wall", "measured", "")


def meter(installed: Installed, counter: Path) -> dict[str, Any]:
    listed = installed.wattloom("meter", "list", OUTSIDE_BOARD=str(counter))
    (found,) = (each for each in listed if each["name"] == outside.METER)
    assert isinstance(found, dict)
    return found


def test_its_meter_is_read(installed: Installed, tmp_path: Path) -> None:
    counter = tmp_path / "energy1_input"
    counter.write_text("5000000")
    words = ("meter", "read", outside.METER, "--count", "2", "--interval", "0.05", "--json")
    said = installed.python("-m", "wattloom.cli.main", *words, OUTSIDE_BOARD=str(counter))
    assert [json.loads(line)["watts"] for line in said.splitlines()] == [None, 0.0]
