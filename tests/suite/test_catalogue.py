"""The list of the suite is that of the ISA study, and what it says it needs is what the package offers."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from wattloom import suite
from wattloom.errors import InputError
from wattloom.simulation.scenario import load_scenario
from wattloom.suite import needs
from wattloom.suite.catalogue import FUNCTIONS
from wattloom.suite.places import SOURCES, source

ROOT = Path(__file__).parents[2]


def test_there_are_22_and_the_scenario_has_the_same_names() -> None:
    scenario, _ = load_scenario("isa-mixed")
    assert len(suite.NAMES) == 22
    assert set(suite.NAMES) == set(scenario.functions)


def test_the_categories_and_runtimes_are_those_of_the_study() -> None:
    assert Counter(one.category for one in FUNCTIONS.values()) == {"crypto": 5, "media": 6, "scientific": 5, "web": 6}
    runtimes = {"python": 9, "node": 6, "java": 5, "native": 1, "wasm": 1}
    assert Counter(one.runtime for one in FUNCTIONS.values()) == runtimes


@pytest.mark.parametrize("name", [one.name for one in FUNCTIONS.values() if one.runtime in SOURCES])
def test_every_function_of_another_language_has_its_source(name: str) -> None:
    assert source(name).is_file()


def test_the_extra_is_what_the_functions_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert sorted(extras["suite"]) == sorted(needs.MODULES.values())
    assert set(extras["suite"]) <= set(extras["dev"])


def test_every_program_and_module_that_is_named_has_a_package() -> None:
    for one in FUNCTIONS.values():
        assert set(one.modules) <= set(needs.MODULES)
        assert set(one.programs) - {"ffmpeg"} <= set(needs.PROGRAMS)
        assert set(one.builders) <= set(needs.PROGRAMS) | set(needs.MODULES)


def test_names_categories_and_families_can_be_chosen() -> None:
    assert [one.name for one in suite.chosen("all")] == list(suite.NAMES)
    assert {one.family for one in suite.chosen("web")} == {"html", "zip"}
    assert [one.name for one in suite.chosen("jwt")] == ["jwt-python", "jwt-node", "jwt-java"]
    assert [one.name for one in suite.chosen("zip-java")] == ["zip-java"]


@pytest.mark.parametrize(("wrong", "meant"), [("zip-pyton", "zip-python"), ("medai", "media"), ("", "workload list")])
def test_a_name_that_is_none_is_said_with_what_was_meant(wrong: str, meant: str) -> None:
    with pytest.raises(InputError, match=meant):
        suite.chosen(wrong)


def test_every_function_stands_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "workloads.md").read_text()
    for name in suite.NAMES:
        assert f"`{name}`" in page


def test_what_is_missing_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pyjwt .*pip install 'pyjwt>=2.8'.*workload install jwt-python"):
        suite.function("jwt-python")
    assert suite.ready() == [name for name in suite.NAMES if not suite.missing(name)]
    assert "zip-python" in suite.ready()
