"""Published beside ours: errors, verdicts and how they are written."""

import csv
from io import StringIO

import pytest

from wattloom.experiments.outcome import HeldFact, HeldFigure, Outcome, Spread, held_figure, spread_of
from wattloom.simulation.published import Published, held_against


def figure(ours: Spread | None, published: float = 10.0, to: float | None = None, unit: str = "%") -> HeldFigure:
    return HeldFigure(
        what="saving", place="p. 1", published=published, to=to, unit=unit, ours=ours, provenance="modelled"
    )


def one(value: float) -> Spread:
    return Spread(value, value, value)


FIGURES = {
    "within five points": (figure(one(14.0)), "+4.0 points", "agrees"),
    "far": (figure(one(16.0)), "+6.0 points", "contradicts the source"),
    "far, but not excluded": (figure(Spread(16.0, 9.0, 20.0)), "+6.0 points", "agrees in part"),
    "within the range": (figure(Spread(12.0, 1.0, 30.0), to=15.0), "+0.0 points", "agrees"),
    "above the range": (figure(Spread(16.0, 14.0, 30.0), to=15.0), "+1.0 points", "agrees in part"),
    "apart from the range": (figure(Spread(20.0, 16.0, 30.0), to=15.0), "+5.0 points", "contradicts the source"),
    "a twentieth of watt-hours": (figure(one(10.4), unit="Wh"), "+4.0%", "agrees"),
    "more of watt-hours": (figure(one(10.6), unit="Wh"), "+6.0%", "contradicts the source"),
    "not run": (figure(None), "", "not known"),
}


@pytest.mark.parametrize("case", FIGURES)
def test_the_verdict_of_a_figure_follows_from_its_error(case: str) -> None:
    held, off, verdict = FIGURES[case]
    assert (held.off, held.verdict) == (off, verdict)


@pytest.mark.parametrize(
    ("held", "of", "verdict"),
    [(9, 10, "agrees"), (8, 10, "agrees in part"), (1, 10, "agrees in part"), (0, 10, "contradicts the source"),
     (0, 0, "not known")],
)  # fmt: skip
def test_the_verdict_of_a_fact_follows_from_its_share(held: int, of: int, verdict: str) -> None:
    fact = HeldFact(what="a fact", place="p. 1", held=held, of=of, provenance="modelled")
    assert fact.verdict == verdict
    ends = fact.ends
    if ends is not None and fact.share is not None:
        assert 0.0 <= ends[0] <= fact.share <= ends[1] <= 1.0


def test_what_was_fitted_proves_nothing() -> None:
    fact = HeldFact(what="a fact", place="p. 1", held=10, of=10, provenance="modelled", calibrated=True)
    assert fact.verdict == "calibrated"


def test_a_scenarios_published_figure_is_a_row_with_the_same_error_and_verdict() -> None:
    published = Published(what="energy", policy="a", value=100.0, source="table 1")
    for wh in (104.0, 120.0):
        (held,) = held_against([published], {"a": wh}, {"a": 1.0}, 1)
        row = held_figure(held)
        assert (row.error, row.verdict, row.place) == (held.error, held.verdict, "table 1")


def test_a_spread_is_a_median_and_where_nine_of_ten_lie() -> None:
    assert spread_of([]) is None
    assert spread_of([float(value) for value in range(101)]) == Spread(50.0, 5.0, 95.0)


def test_csv_has_one_line_for_each_row_and_json_says_what_follows() -> None:
    fact = HeldFact(what="rain, snow", place="p. 1", held=3, of=4, provenance="measured")
    outcome = Outcome(experiment="x", title="X", seeds=4, quick=True, held=(fact, figure(one(14.0), to=None)))
    rows = list(csv.DictReader(StringIO(outcome.to_csv())))
    assert [(row["what"], row["ours"], row["verdict"]) for row in rows] == [
        ("rain, snow", "0.75", "agrees in part"),
        ("saving", "14.0", "agrees"),
    ]
    shown = outcome.to_json()["held"]
    assert (shown[0]["kind"], shown[0]["share"], shown[0]["verdict"]) == ("fact", 0.75, "agrees in part")
    assert (shown[1]["kind"], shown[1]["error"], shown[1]["verdict"]) == ("figure", 4.0, "agrees")
    assert outcome.sentence == "2 published figures and facts: 1 agrees in part, 1 agrees"
