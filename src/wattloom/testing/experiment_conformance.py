"""What every experiment must do, ours and anybody else's: `check_experiment(MyExperiment)` in a test is enough.

Owns the checks. They run the experiment with few draws and raise AssertionError when it breaks a rule. To see each rule
as a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_experiment(check: Check) -> None:
        check(MyExperiment, None)
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import Final, get_args

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.experiments.outcome import MOSTLY, Held, HeldFact, HeldFigure, Outcome, Spread, Verdict
from wattloom.experiments.protocol import Asked, Experiment
from wattloom.simulation.published import WRONG_BY

Make = Callable[..., Experiment]
Check = Callable[[Make, Path | None], None]

SEEDS: Final = 6
"""Draws that a check makes do with, if the experiment has so many."""


def check_experiment(make: Make, data: Path | None = None) -> None:
    """All checks, one after the other. `make` is the class, or anything that makes one; `data` the folder it needs."""
    for check in CHECKS:
        check(make, data)


def check_name(check: Check) -> str:
    """The rule as a sentence."""
    return check.__name__.replace("_", " ")


def it_describes_itself(make: Make, data: Path | None) -> None:
    made = make()
    for field in ("name", "title", "summary", "cite"):
        _require(bool(getattr(made, field, "")), f"it has no {field}")
    _require(1 <= made.quick_seeds <= made.seeds, "quick is not quicker: quick_seeds must be 1 to seeds")
    parameters = set(signature(type(made)).parameters)
    _require(parameters == set(made.options), f"its options are {sorted(parameters)}, not {sorted(made.options)}")


def data_is_named_with_where_it_comes_from(make: Make, data: Path | None) -> None:
    for need in make().needs:
        _require(bool(need.file and need.what and need.whence), f"{need.file or 'a file'}: what is it, and whence?")


def the_same_seeds_give_the_same_table(make: Make, data: Path | None) -> None:
    one, other = (_ran(make(), data) for _ in range(2))
    _require(msgspec.json.encode(one.to_json()) == msgspec.json.encode(other.to_json()), "run twice, it differs")


def every_published_row_has_its_place_in_the_source(make: Make, data: Path | None) -> None:
    outcome = _outcome(make, data)
    _require(bool(outcome.held), "it holds nothing against its source")
    _require(bool(outcome.cite), "it does not say how the source is cited")
    for held in outcome.held:
        _require(bool(held.what and held.place), f"{held.what!r} has no place in a source")
    names = [held.what for held in outcome.held]
    _require(len(set(names)) == len(names), "two rows have the same name")


def every_figure_says_what_it_is(make: Make, data: Path | None) -> None:
    outcome = _outcome(make, data)
    for each in (*outcome.held, *outcome.tables):
        _require(each.provenance in get_args(Provenance), f"{each} is neither measured, modelled nor estimated")


def figures_are_finite_and_lie_between_their_ends(make: Make, data: Path | None) -> None:
    for spread in _spreads(_outcome(make, data)):
        ends = (spread.low, spread.median, spread.high)
        _require(all(isfinite(each) for each in ends), f"{spread} is not finite")
        _require(spread.low <= spread.median <= spread.high, f"{spread} does not lie between its ends")


def verdicts_follow_from_the_numbers(make: Make, data: Path | None) -> None:
    for held in _outcome(make, data).held:
        _require(held.verdict == _verdict(held), f"{held.what}: {held.verdict} does not follow from {held}")


def counts_are_possible(make: Make, data: Path | None) -> None:
    for held in _outcome(make, data).held:
        if isinstance(held, HeldFact):
            _require(0 <= held.held <= held.of, f"{held.what}: {held.held} of {held.of} draws")
        elif held.to is not None:
            _require(held.published <= held.to, f"{held.what}: a range from {held.published} to {held.to}")


def pictures_and_tables_have_all_their_cells(make: Make, data: Path | None) -> None:
    outcome = _outcome(make, data)
    shapes = [(each.name, each.rows, each.columns, each.cells) for each in outcome.tables]
    shapes += [(each.name, each.groups, each.series, each.cells) for each in outcome.pictures]
    for name, rows, columns, cells in shapes:
        _require(len(cells) == len(rows), f"{name}: {len(cells)} rows of cells for {len(rows)}")
        _require(all(len(row) == len(columns) for row in cells), f"{name}: a row has not {len(columns)} cells")
    for picture in outcome.pictures:
        _require(bool(picture.title and picture.caption and picture.unit), f"{picture.name}: title, caption or unit")


def it_tells_how_far_it_is(make: Make, data: Path | None) -> None:
    told: list[tuple[int, int]] = []
    made = make()
    seeds = min(SEEDS, made.quick_seeds)
    made.run(Asked(seeds=seeds, quick=True, data=data, progress=lambda done, total: told.append((done, total))))
    _require(bool(told) and told[-1] == (seeds, seeds), f"of {seeds} draws it last told {told[-1:]}")
    _require(told == sorted(told), "it tells of less than before")


CHECKS: Final[tuple[Check, ...]] = (
    it_describes_itself,
    data_is_named_with_where_it_comes_from,
    the_same_seeds_give_the_same_table,
    every_published_row_has_its_place_in_the_source,
    every_figure_says_what_it_is,
    figures_are_finite_and_lie_between_their_ends,
    verdicts_follow_from_the_numbers,
    counts_are_possible,
    pictures_and_tables_have_all_their_cells,
    it_tells_how_far_it_is,
)


# -- the ways and means ----------------------------------------------------------------------------------------------


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _ran(made: Experiment, data: Path | None) -> Outcome:
    return made.run(Asked(seeds=min(SEEDS, made.quick_seeds), quick=True, data=data))


@lru_cache(maxsize=8)
def _outcome(make: Make, data: Path | None) -> Outcome:
    return _ran(make(), data)


def _spreads(outcome: Outcome) -> Iterator[Spread]:
    for held in outcome.held:
        if isinstance(held, HeldFigure) and held.ours is not None:
            yield held.ours
    for cells in (*(each.cells for each in outcome.tables), *(each.cells for each in outcome.pictures)):
        yield from (cell for row in cells for cell in row if cell is not None)


def _verdict(held: Held) -> Verdict:
    """By the rule, worked out again."""
    if isinstance(held, HeldFact):
        if not held.of or held.calibrated:
            return "calibrated" if held.of else "not known"
        share = held.held / held.of
        return "agrees" if share >= MOSTLY else "contradicts the source" if share < 1 - MOSTLY else "agrees in part"
    if held.ours is None:
        return "not known"
    if held.calibrated:
        return "calibrated"
    low, high = held.published, held.published if held.to is None else held.to
    slack = 0.0 if held.to is not None else 100 * WRONG_BY if held.unit == "%" else WRONG_BY * abs(held.published)
    if low - slack <= held.ours.median <= high + slack:
        return "agrees"
    return "contradicts the source" if held.ours.high < low or held.ours.low > high else "agrees in part"
