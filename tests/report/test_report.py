"""The report: one page that can be sent alone, the same bytes for the same comparison."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import wattloom
from wattloom.errors import InputError, MissingExtra
from wattloom.report import ready, write
from wattloom.report.figures import figure, percent, plural, short
from wattloom.report.page import page
from wattloom.report.series import binned, share_started
from wattloom.simulation.comparison import Comparison

SCENARIO = """
name = "tiny"
title = "Tiny <cluster> & friends"
assumptions = ["made up <entirely>"]
sources = ["nowhere"]
[machines.a]
arch = "x86_64"
cores = 4
load_watts = [50, 60, 70]
sleep_w = 5
source = "power_ssj2008-00000000-00000"
[[nodes]]
machine = "a"
count = 3
[functions.f]
work_s = 10
spread = 0.3
[[arrivals]]
kind = "poisson"
rate_per_s = 2
count = 80
functions = { f = 1 }
"""
COMMAND = "wattloom compare tiny.toml --policies 'a<b'"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    path = tmp_path_factory.mktemp("scenario") / "tiny.toml"
    path.write_text(SCENARIO)
    return wattloom.compare(path, "spread,pack,marginal-energy:tdp=false,guarantee=0.9", seeds=2)


@pytest.fixture(scope="module")
def folder(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    assert write(comparison, folder, COMMAND) == folder / "index.html"
    return folder


class Tags(HTMLParser):
    """Tags with their attributes, and whether all were closed in order."""

    VOID = frozenset({"meta", "img", "source", "br", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return (folder / "index.html").read_text()


def test_the_page_is_well_formed_and_needs_nothing_beside_it(text: str) -> None:
    tags = Tags(text)
    assert tags.open == []
    for _, attributes in tags.seen:
        for name in ("src", "href", "srcset"):
            assert (attributes.get(name) or "data:").startswith("data:")
    assert "url(" not in text
    assert "<script" not in text


def test_the_pictures_lie_beside_the_page_and_in_it(folder: Path, text: str) -> None:
    embedded = {b64decode(found) for found in re.findall(r'<img src="data:image/png;base64,([^"]+)"', text)}
    beside = {path.read_bytes() for path in folder.glob("*.png")}
    assert {path.name for path in folder.glob("*.png")} == {"power.png", "energy.png", "waiting.png"}
    assert embedded == beside
    assert all(png.startswith(b"\x89PNG") for png in beside)


def test_every_picture_has_words_for_those_who_do_not_see_it(text: str, comparison: Comparison) -> None:
    alts = [attributes.get("alt") or "" for tag, attributes in Tags(text).seen if tag == "img"]
    assert len(alts) == 3
    for alt in alts:
        assert all(row.policy in alt for row in comparison.rows)


def test_the_page_says_what_was_saved_modelled_assumed_and_typed(text: str, comparison: Comparison) -> None:
    from html import escape

    assert escape(comparison.sentence) in text
    assert "nothing was measured" in text
    assert "power_ssj2008-00000000-00000" in text
    assert "made up &lt;entirely&gt;" in text
    assert "Tiny &lt;cluster&gt; &amp; friends" in text
    assert escape(COMMAND) in text
    assert wattloom.__version__ in text
    assert all(run.digest in text for row in comparison.rows for run in row.runs)
    assert "seeds 0, 1" in text


def test_every_table_of_results_has_peak_power_and_energy_times_delay(text: str, comparison: Comparison) -> None:
    heads = [table.partition("</thead>")[0] for table in text.split("<table>")[1:]]
    results = [head for head in heads if "makespan, s" in head]
    assert len(results) == 2
    assert all("energy x delay, MJ·s" in head and "peak, W" in head for head in results)
    every_run = text.partition("Every run and its digest")[2]
    for run in (run for row in comparison.rows for run in row.runs):
        assert f">{figure(run.energy_delay_js / 1e6)}<" in every_run


def test_the_same_comparison_gives_the_same_bytes(comparison: Comparison, folder: Path, tmp_path: Path) -> None:
    write(comparison, tmp_path, COMMAND)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_a_users_own_plot_settings_change_nothing(comparison: Comparison, folder: Path, tmp_path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 30.0, "lines.linewidth": 9.0}):
        write(comparison, tmp_path, COMMAND)
        assert matplotlib.rcParams["font.size"] == 30.0
    assert (folder / "power.png").read_bytes() == (tmp_path / "power.png").read_bytes()


def test_a_comparison_of_one_policy_where_nobody_waits_can_be_drawn(comparison: Comparison, tmp_path: Path) -> None:
    run = msgspec.structs.replace(comparison.rows[0].runs[0], waits=[0.0, 0.0])
    row = msgspec.structs.replace(comparison.rows[0], runs=[run])
    alone = msgspec.structs.replace(comparison, rows=[row], seeds=[0], reference=row.policy)
    assert "nothing to compare it with" in write(alone, tmp_path).read_text()


def test_an_empty_run_can_be_drawn(comparison: Comparison, tmp_path: Path) -> None:
    run = msgspec.structs.replace(
        comparison.rows[0].runs[0], waits=[], power=[], makespan_s=0.0, energy=type(comparison.rows[0].energy)()
    )
    row = msgspec.structs.replace(comparison.rows[0], runs=[run])
    empty = msgspec.structs.replace(comparison, rows=[row], seeds=[0], reference=row.policy)
    write(empty, tmp_path)


def test_without_matplotlib_the_report_says_what_to_install(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wattloom.report.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'wattloom\[report\]'"):
        write(comparison, tmp_path)


def test_thinning_a_power_line_keeps_its_energy() -> None:
    power = [(step * 0.5, float(step % 7)) for step in range(2001)]
    end = 1000.3
    times, watts = binned(power, end)
    edges = [time for time, _ in power] + [end]
    joules = sum(watt * (b - a) for (a, watt), b in zip(power, edges[1:], strict=True))
    drawn = sum(watt * (b - a) for a, b, watt in zip(times, times[1:], watts, strict=False))
    assert len(times) < 400
    assert drawn == pytest.approx(joules)


def test_the_share_of_started_tasks_never_falls_and_ends_at_one() -> None:
    waits, shares = share_started([0.0, 0.0, 5.0, 1.0, 9.0], longest=20.0)
    assert waits == sorted(waits)
    assert shares == sorted(shares)
    assert (shares[0], waits[-1], shares[-1]) == (0.4, 20.0, 1.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.00001, "<0.001"), (0.1234, "0.123"), (12.345, "12.35"), (123.45, "123.5"), (12345.6, "12,346")],
)
def test_figures_have_about_four_digits(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_words_around_figures() -> None:
    assert percent(0.1234) == "+12.3%"
    assert (plural(1, "policy", "policies"), plural(2000, "seed")) == ("1 policy", "2,000 seeds")
    assert short("some/folder/mine.py:Mine") == "mine.py:Mine"
    assert short("marginal-energy:tdp=true,guarantee=0.8") == "marginal-energy:\ntdp=true,guarantee=0.8"


def test_a_comparison_that_fails_leaves_no_page(tmp_path: Path) -> None:
    ready(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_page_is_replaced_whole_or_not_at_all(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("the page before")
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(InputError, match="cannot be written"):
        write(comparison, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert (tmp_path / "index.html").read_text() == "the page before"


def full_disk(path: Path, target: Path) -> Path:
    raise OSError(28, "No space left on device")


def test_the_page_holds_ours_against_what_the_source_published() -> None:
    compared = wattloom.compare("hsc-cpu", "spread,marginal-energy")
    text = page(compared, [], "")
    assert "The model contradicts the scenario's source in 4 of 7 figures" in text
    assert "<td>60.03 Wh</td><td>67.7 Wh</td><td>+12.8%</td><td>contradicts the source</td>" in text
    assert "<td>430 s</td><td>399.5 s, recorded</td><td>-7.1%</td>" in text


def test_a_scenario_without_published_figures_has_no_such_section(comparison: Comparison) -> None:
    assert "Held against its source" not in page(comparison, [], "")
