"""On the rig, where the truth is known: E, W, and whether intervals hold what they say."""

from pathlib import Path
from statistics import fmean, median

import pytest
from tests.beds.rig import bags
from tests.beds.rig.conditions import Conditions
from tests.beds.rig.virtual_bags import functions, taken, truths

from wattloom.affinity.bags import Lots
from wattloom.workload.function_profile import Figure

pytestmark = pytest.mark.usefixtures("beds_are_found")


def held(figure: Figure | None, truth: float) -> bool:
    return figure is not None and figure.low <= truth <= figure.high


def test_in_virtual_time_e_and_w_are_near_the_truth_and_intervals_hold_it() -> None:
    e_off, w_off, e_held, w_held, wide = [], [], [], [], []
    for seed in range(51, 57):
        known, how = functions(16, seed), Conditions(background=0.15)
        _, rows = taken(known, how, Lots(bags=14, size=8, seed=seed), 6.0)
        true = truths(known, how)
        assert len(rows) == 16
        for row in rows:
            truth = true[row.function]
            assert row.joules is not None
            e_off.append(abs(row.per_core_s.value / truth.per_core_s - 1.0))
            w_off.append(abs(row.joules.value / truth.joules - 1.0))
            e_held.append(held(row.per_core_s, truth.per_core_s))
            w_held.append(held(row.joules, truth.joules))
            wide.append(row.joules.high / row.joules.value - 1.0)
    assert median(e_off) < 0.03
    assert median(w_off) < 0.05
    assert fmean(e_held) > 0.8
    assert fmean(w_held) > 0.8
    assert median(wide) < 0.15, "an interval that holds everything is worth nothing"


def test_bags_count_by_how_much_was_known_of_functions() -> None:
    """At first the account does not know what functions draw: with all bags alike it would be further off."""
    known, how = functions(16, 44), Conditions(background=0.15)
    seen, rows = taken(known, how, Lots(bags=14, size=8, seed=44), 6.0)
    true = truths(known, how)
    alike = {
        name: fmean(each.joules / each.metered for bag in seen.bags for each in bag.seen if each.function == name)
        for name in true
    }
    ours = median(abs(row.joules.value / true[row.function].joules - 1.0) for row in rows if row.joules)
    assert ours < median(abs(alike[name] / true[name].joules - 1.0) for name in true)


@pytest.mark.slow
def test_in_real_time_the_command_finds_what_the_rig_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real workers, with other tests on the same cores; the benchmark says how near on a machine of one's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found, true = bags.run(0.03, Lots(bags=4, size=4), 1.6, Conditions(background=0.1, update_s=0.002), tmp_path)
    rows = {row.function: row for row in found.profiles.rows}
    assert sorted(rows) == sorted(true)
    assert {row.provenance for row in rows.values()} == {"measured"}
    assert median(bags.error(rows[name].per_core_s.value, true[name].per_core_s) for name in true) < 0.08
    off = [bags.error(row.joules.value, true[name].joules) for name, row in rows.items() if row.joules is not None]
    assert len(off) == len(true)
    assert max(off) < 1.0, "in six seconds little is learned, and the order of the functions first"
    drawn = [row.joules.value for row in (rows[f"{bags.HERE}.{name}"] for name in bags.NAMES) if row.joules is not None]
    assert drawn[3] > 1.3 * drawn[0], "who draws three times as much is told so, as far as was learned by then"
