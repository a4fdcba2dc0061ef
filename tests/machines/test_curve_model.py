import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattloom import api
from wattloom.errors import InputError
from wattloom.machines.catalogue import machines
from wattloom.machines.curve_estimate import curve
from wattloom.machines.curve_model import LOADS, nearness, shipped, sureness
from wattloom.machines.processors import known_processors, maker_of, model_slug, named

DATA = Path(__file__).parents[3] / "shared" / "data"
MILAN = "AMD EPYC 7763 64-Core Processor"


def test_the_curve_has_eleven_levels_that_never_fall_from_idle_to_full() -> None:
    found = curve(95.0, 560.0, cpu="AMD EPYC 9654", year=2023)
    assert found.loads == list(range(0, 101, 10))
    assert (found.watts[0], found.watts[-1]) == (95.0, 560.0)
    assert all(a <= b for a, b in pairwise(found.watts))
    assert list(found.by_load.values()) == found.watts
    assert (found.quantity, found.provenance) == ("wall", "modelled")


@settings(max_examples=30, deadline=None)
@given(
    idle=st.floats(5.0, 500.0),
    more=st.floats(1.05, 12.0),
    share=st.floats(0.0, 1.0),
    load=st.sampled_from(LOADS[1:-1]),
    cpu=st.sampled_from([None, MILAN, "Xeon Platinum 8490H", "something nobody knows"]),
)
def test_whatever_is_given_the_curve_goes_through_it_and_spreads_are_sane(
    idle: float, more: float, share: float, load: int, cpu: str | None
) -> None:
    full = idle * more
    watts = idle + (full - idle) * share
    found = curve(idle, full, cpu=cpu, points={float(load): watts})
    assert found.by_load[str(load)] == pytest.approx(watts, abs=1e-3)
    assert found.spread[LOADS.index(load)] == 0.0
    assert all(a <= b for a, b in pairwise(found.watts))
    assert all(low - 1e-3 <= w <= high + 1e-3 for low, w, high in zip(found.low, found.watts, found.high, strict=True))


def test_a_point_narrows_the_spread_of_its_neighbours() -> None:
    alone, told = curve(95.0, 560.0, cpu=MILAN), curve(95.0, 560.0, cpu=MILAN, points={50.0: 300.0})
    assert told.spread[4] < alone.spread[4] / 2
    between = curve(95.0, 560.0, cpu=MILAN, points={45.0: 290.0})
    assert between.watts[4] < 290.0 < between.watts[5]


def test_the_more_the_model_knows_of_a_processor_the_surer_it_is() -> None:
    names = [MILAN, "EPYC 7443", "EPYC 9654", None]
    assert [nearness(shipped(), name) for name in names] == [
        "same processor",
        "same family",
        "newer than all",
        "no processor",
    ]
    then = shipped().latest
    widths = [sum(curve(80.0, 500.0, cpu=name, year=then).spread) for name in names[:2]]
    assert widths[0] < widths[1] < sum(curve(80.0, 500.0, cpu=names[2]).spread)


@pytest.mark.parametrize("points", [{}, {10.0: 190.0, 50.0: 300.0}])
def test_of_a_machine_that_came_after_all_that_were_learned_from_less_is_sure(points: dict[float, float]) -> None:
    for cpu in (MILAN, None):
        then, later = (
            sum(curve(80.0, 500.0, cpu=cpu, year=shipped().latest + ahead, points=points).spread) for ahead in (0, 1)
        )
        assert then < later


@pytest.mark.parametrize("cpu", [MILAN, None])
def test_without_a_year_a_machine_that_may_be_newer_has_the_spread_of_newer_ones(cpu: str | None) -> None:
    model = shipped()
    assert sureness(model, cpu, None) == sureness(model, cpu, model.latest + 1) != sureness(model, cpu, model.latest)
    assert sureness(model, "Xeon E5-2690", None) == "same family"


def test_a_processor_newer_than_the_model_counts_as_ahead_without_a_year() -> None:
    assert curve(80.0, 500.0, cpu="EPYC 9965").spread == curve(80.0, 500.0, cpu="EPYC 9965", year=2024).spread


def test_it_tells_a_machine_of_the_catalogue_better_than_a_straight_line() -> None:
    true = [75.6, 173, 195, 217, 239, 258, 283, 307, 333, 386, 460]
    assert machines()["epyc-7763-2s"].watts[0][1] == true[0]
    told = curve(true[0], true[-1], cpu=MILAN, maker="Lenovo").watts
    line = [true[0] + (true[-1] - true[0]) * share / 10 for share in range(11)]
    off = [sum(abs(a - b) / b for a, b in zip(way, true, strict=True)) for way in (told, line)]
    assert off[0] < off[1] / 4


def test_ends_that_are_missing_come_from_results_with_the_same_processor_and_cost_certainty() -> None:
    found = curve(cpu="Intel Xeon Platinum 8380")
    known = known_processors()["xeon-platinum-8380"]
    assert (found.watts[0], found.watts[-1]) == (known.idle_w, known.full_w)
    assert found.provenance == "estimated"
    assert len(found.assumed) == 2
    assert min(found.spread) > 0.0
    assert curve(full_w=1000.0, cpu="Xeon Platinum 8380").watts[-1] == 1000.0


@pytest.mark.parametrize(
    ("ends", "points", "words"),
    [
        ((100.0, 50.0), {}, "idle: must be below max"),
        ((-1.0, 50.0), {}, "idle: must be watts above 0"),
        ((float("nan"), 50.0), {}, "idle: must be watts above 0"),
        ((50.0, 100.0), {120.0: 80.0}, "point 120: the load must be percent"),
        ((50.0, 100.0), {50.0: 120.0}, "point 50: 120 W is not between"),
        ((50.0, 100.0), {30.0: 80.0, 60.0: 70.0}, "point 60: 70 W is not between the 80 W at 30%"),
        ((50.0, 100.0), {0.0: 60.0}, "point 0: says 60 W where idle says 50 W"),
        ((None, 100.0), {}, "idle: is needed, since no processor is named"),
        ((None, None), {}, "idle and max: both are needed, since no processor is named"),
        ((50.0, 100.0), {0.5: 80.0}, r"point 0.5: loads are percent: did you mean 50=80\?"),
        ((50.0, 100.0), {0.07: 60.0, 0.5: 80.0}, r"did you mean 7=60, 50=80\?"),
        ((None, None), {0.0: 50.0, 0.5: 80.0, 1.0: 100.0}, r"did you mean 50=80, 100=100\?"),
    ],
)
def test_what_contradicts_itself_is_refused_in_words(
    ends: tuple[float | None, float | None], points: dict[float, float], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        curve(*ends, points=points)


def test_the_ends_may_be_given_as_points() -> None:
    assert curve(points={0.0: 50.0, 100.0: 200.0}).watts == curve(50.0, 200.0).watts


def test_a_load_below_one_percent_is_taken_beside_others() -> None:
    assert curve(50.0, 200.0, points={0.5: 60.0, 50.0: 120.0}).by_load["50"] == 120.0
    assert curve(50.0, 200.0, points={1.0: 60.0}).watts[1] >= 60.0


def test_a_maker_or_processor_nobody_knows_is_said_to_be_of_no_use() -> None:
    found = curve(95.0, 560.0, cpu="Abacus 3", maker="Foo")
    assert [line.partition(":")[0] for line in found.unused] == ["cpu", "maker"]
    assert "'Foo' is not known and is not used" in found.unused[1]
    assert found.watts == curve(95.0, 560.0).watts
    assert curve(95.0, 560.0, cpu=MILAN, maker="Hewlett Packard").unused == []


def test_the_same_load_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        api.machine_curve(50.0, 200.0, points=[(50.0, 100.0), (50.0, 120.0)])


@pytest.mark.parametrize(
    ("name", "model", "family"),
    [
        ("Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz", "xeon-e5-2699v4", "broadwell"),
        ("Intel Xeon Platinum 8280 @ 2.70GHz (Intel Turbo", "xeon-platinum-8280", "cascade-lake"),
        ("Intel(R) Xeon(R) Platinum 8480+", "xeon-platinum-8480", "sapphire-rapids"),
        ("Xeon Platinum 8380HL 2.90 GHz", "xeon-platinum-8380hl", "cooper-lake"),
        ("AMD EPYC 9965 192-Core Processor", "epyc-9965", "turin"),
        ("AMD EPYC 7742 2.25Ghz", "epyc-7742", "rome"),
        ("Intel Xeon 6780E", "xeon-6780e", "xeon-6-e"),
        ("POWER9", "power9", ""),
    ],
)
def test_names_of_processors_are_read(name: str, model: str, family: str) -> None:
    assert (model_slug(name), named(name).family) == (model, family)


def test_makers_are_found_in_names_of_systems() -> None:
    assert maker_of("Hewlett Packard Enterprise ProLiant DL360") == "hpe"
    assert maker_of("ASUSTeK Computer Inc. RS720A") == "asus"
    assert maker_of("Nobody's Box") == maker_of(None) == ""


def test_the_shipped_files_are_small() -> None:
    folder = Path(api.__file__).parent / "machines"
    assert (folder / "curve_model.json").stat().st_size < 200_000
    assert (folder / "processors.json").stat().st_size < 100_000


@pytest.mark.skipif(not DATA.is_dir(), reason=f"NO DATA: {DATA} is missing; the published curves are read from there")
def test_published_curves_are_met_as_well_as_the_documentation_says() -> None:
    import csv

    with (DATA / "specpower" / "curves_to_2021.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))[::15]
    off = []
    for row in rows:
        true = [float(row[f"w{load}_per_node"]) for load in LOADS]
        told = curve(true[0], true[-1], cpu=row["cpu"], maker=row["system"]).watts
        off.append(sum(abs(a - b) / b for a, b in zip(told, true, strict=True)) / len(true))
    assert sum(off) / len(off) < 0.022, "these were learned from: worse than unseen ones would be a broken file"


def test_the_model_file_names_its_source() -> None:
    text = json.dumps(shipped().about)
    assert "SPECpower" in text
    assert "spec-power-raw-data" in text
