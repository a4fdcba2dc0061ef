"""The report of an experiment: one page with all rows, and its pictures."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import wattloom
from wattloom.experiments.outcome import Outcome
from wattloom.report.experiments import write_experiment


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return wattloom.experiment("isa", seeds=6)


def test_the_page_has_every_row_its_verdict_and_all_that_was_assumed(outcome: Outcome, tmp_path: Path) -> None:
    text = write_experiment(outcome, tmp_path, "wattloom experiment run isa --seeds 6").read_text()
    for held in outcome.held:
        assert held.what in text
        assert held.verdict in text
    assert "wattloom experiment run isa --seeds 6" in text
    assert "SPECpower_ssj2008" in text
    assert "S. Arys" in text


def test_pictures_are_beside_the_page_and_the_same_outcome_gives_the_same_bytes(
    outcome: Outcome, tmp_path: Path
) -> None:
    one, other = (write_experiment(outcome, tmp_path / name).parent for name in ("one", "other"))
    for name in ("index.html", "energy.png", "savings.png"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    assert (one / "energy.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_not_known_is_said_and_not_drawn(outcome: Outcome, tmp_path: Path) -> None:
    pictures = tuple(replace(bars, cells=((None,) * len(bars.series),) * len(bars.groups)) for bars in outcome.pictures)
    assert "energy-aware unknown" in write_experiment(replace(outcome, pictures=pictures), tmp_path).read_text()
