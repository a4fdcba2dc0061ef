"""Two clocks that are minutes apart: the lag is found, and what cannot be known is said."""

from dataclasses import replace

import numpy as np
import pytest
from tests.beds.field_runs import field_run
from tests.beds.power_traces import Calls, MeterFaults, PowerTrace
from tests.disaggregation.traces import linear, recorded, some_work

import wattloom
from wattloom.disaggregation import activity
from wattloom.disaggregation.disaggregate import Wanted, disaggregate
from wattloom.disaggregation.result import PowerAttribution
from wattloom.errors import InputError

METER = MeterFaults(lag_s=1.0, window_s=1.0, white_w=0.8, slow_w=0.5, slow_s=20.0, step_w=1.0, around_s=20.0)
SECONDS = 400.0


@pytest.fixture(scope="module")
def trace() -> PowerTrace:
    return recorded(linear(), some_work(seconds=SECONDS), METER, SECONDS)


def later(trace: PowerTrace, seconds: float) -> PowerTrace:
    """The same, by a meter whose clock is so much ahead."""
    return replace(trace, time=trace.time + seconds, lag_s=trace.lag_s + seconds)


def attributed(trace: PowerTrace, **known: float) -> PowerAttribution:
    calls = trace.calls
    runs = [
        (start, end, trace.names[function])
        for start, end, function in zip(calls.start.tolist(), calls.end.tolist(), calls.function, strict=True)
    ]
    return wattloom.attribute(list(zip(trace.time.tolist(), trace.watts.tolist(), strict=True)), runs, **known)  # type: ignore[arg-type]


def off(found: PowerAttribution, trace: PowerTrace) -> float:
    per_call = np.array([found.of(name).joules_per_call for name in trace.names])
    return float(np.abs(per_call / trace.marginal_j - 1.0).mean())


@pytest.mark.parametrize("apart_s", [-570.0, -170.0, -11.9, 14.0, 240.0])
def test_clocks_may_be_minutes_apart_either_way(trace: PowerTrace, apart_s: float) -> None:
    late = later(trace, apart_s)
    found = attributed(late)
    assert found.lag_s == pytest.approx(late.lag_s, abs=0.3)
    assert off(found, late) < 0.06
    assert (sum(each.calls for each in found.functions), found.outside) == (len(trace.calls.start), 0)
    charged = sum(each.joules for each in found.functions)
    assert charged + found.idle_j + found.unattributed_j == pytest.approx(found.meter_j, rel=1e-9)
    assert found.warnings == []


def test_a_lag_of_minutes_may_be_given(trace: PowerTrace) -> None:
    late = later(trace, 5000.0)
    found = attributed(late, lag_s=late.lag_s)
    assert found.lag_s == pytest.approx(late.lag_s, abs=0.5)
    assert off(found, late) < 0.06
    with pytest.raises(InputError, match="no time in common"):
        attributed(late)


def test_windows_over_time_are_of_the_clocks_that_were_found(trace: PowerTrace) -> None:
    plain, late = attributed(trace, every_s=100.0), attributed(later(trace, 130.0), every_s=100.0)
    assert plain.over_time is not None
    assert late.over_time is not None
    for before, after in zip(plain.over_time, late.over_time, strict=True):
        assert after.start_s == pytest.approx(before.start_s + 130.0)
        for each in before.functions:
            same = after.of(each.function)
            assert same is not None
            assert same.begun == each.begun
            assert same.joules == pytest.approx(each.joules, rel=0.1, abs=20.0)


@pytest.mark.parametrize("apart_s", [606.0, 640.0, -640.0])
def test_clocks_further_apart_than_the_search_are_not_passed_over_in_silence(trace: PowerTrace, apart_s: float) -> None:
    quiet = np.arange(-1000.0, 1400.0)
    power = np.where((quiet < 0) | (quiet > SECONDS), 60.0, np.interp(quiet, trace.time, trace.watts))
    late = replace(trace, time=quiet + apart_s, watts=power)
    found = attributed(late)
    assert any(words in " ".join(found.warnings) for words in ("edge of the search", "explains only"))


def test_calls_at_even_distances_do_not_tell_which_of_them_it_was() -> None:
    start = np.arange(-400.0, 800.0, 30.0)
    work = Calls(start, start + 11.0, np.zeros(len(start), dtype=np.intp))
    made = recorded(linear(weights=np.array([12.0])), work, replace(METER, around_s=0.0), SECONDS)
    found = attributed(later(made, -12.0))
    assert any("about as well" in each and "evenly" in each for each in found.warnings)
    assert found.of("f0").joules_per_call == pytest.approx(132.0, abs=2.0 * found.of("f0").spread)


def test_calls_of_another_machine_are_told_to_explain_little(trace: PowerTrace) -> None:
    other = recorded(linear(), some_work(seed=77, seconds=SECONDS), METER, SECONDS)
    found = attributed(replace(trace, calls=other.calls))
    assert any("explains only" in each for each in found.warnings)


@pytest.mark.parametrize(("zone_s", "said"), [(7200.0, "2 h"), (-19_800.0, "5.5 h"), (3605.0, "1 h")])
def test_time_zones_are_suspected_where_there_is_no_time_in_common(trace: PowerTrace, zone_s: float, said: str) -> None:
    with pytest.raises(InputError, match=f"no time in common.* about {said} apart, as time zones are: add"):
        attributed(later(trace, zone_s))


def test_no_shift_is_made_of_noise() -> None:
    """The best of a thousand shifts always fits a little better: that is no evidence."""
    time = np.arange(400.0)
    work = some_work(seconds=SECONDS)
    calls = activity.Calls(work.start, work.end, work.function, np.ones(len(work.start)))
    shifts = []
    for seed in range(5):
        watts = 80.0 + np.random.default_rng(seed).standard_normal(400)
        found = disaggregate(time, watts, calls, 4)
        shifts.append(abs(found.clocks.shift_s))
        assert found.explained < 0.3
    assert sum(each > 15.0 for each in shifts) <= 1


def test_a_run_as_met_in_the_field_is_aligned_through_its_gaps_and_pauses() -> None:
    run = field_run("pauses and gaps", 7, seconds=500.0)
    calls = activity.Calls(run.calls.start, run.calls.end, run.calls.function, np.ones(len(run.calls.start)))
    for apart_s in (0.0, 200.0):
        late = later(run, apart_s)
        found = disaggregate(late.time, late.watts, calls, 4)
        assert found.lag_s == pytest.approx(late.lag_s, abs=0.6)
        assert np.abs(found.marginal_j / found.metered / late.marginal_j - 1.0).mean() < 0.2
    given = disaggregate(run.time, run.watts, calls, 4, Wanted(lag_s=run.lag_s))
    assert given.lag_s == pytest.approx(run.lag_s, abs=0.5 + 1e-6)
