"""What every meter must do, ours and anybody else's: `check_meter(MyRig)` in a test is enough.

Owns the checks. A meter is tried on a source the test controls: the `Rig`, which a meter's author writes (a folder of
files, a small server, a driver's stand-in). The checks let the rig spend joules, wrap, break and lie, and raise
AssertionError when the meter does not say so. To see each rule as a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_meter(check: Check) -> None:
        check(MyRig)
"""

from math import isfinite
from time import thread_time
from typing import Final, get_args

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.protocol import Meter, Quantity, Sample
from wattloom.setting_groups import settings_type
from wattloom.testing.meter_rig import (
    START,
    Check,
    MakeRig,
    Rig,
    ask,
    breaks_off,
    eventually,
    open_j,
    read,
    recovers,
    require,
    unknown,
)
from wattloom.testing.policy_clusters import THREADS
from wattloom.testing.settings_conformance import check_settings

__all__ = ["CHECKS", "Check", "MakeRig", "Rig", "check_meter", "check_name"]


CHEAP_S: Final = 0.005
"""CPU time of one read, at most: at ten reads a second that is a twentieth of a core."""
LONG_S: Final = 7200.0
"""A gap that nobody may bridge who did not count meanwhile."""
LONGEST_STEP_S: Final = 5.0
"""Between two reads of a source that stands still: no meter takes that for a gap."""
STALE_S: Final = 600.0
"""After so long every meter must have noticed that its source stands still."""


def check_meter(make: MakeRig) -> None:
    """Every rule, one after the other. `make` gives a new source each time."""
    for check in CHECKS:
        check(make)


def check_name(check: Check) -> str:
    return check.__name__


# -- the rules -------------------------------------------------------------------------------------------------------


def it_describes_itself(make: MakeRig) -> None:
    """Name and one line of summary; what it measures, whence, and how far that is off."""
    meter = make().meter()
    require(isinstance(meter, Meter), f"{type(meter).__name__} lacks something of wattloom.metering.protocol.Meter")
    for attribute in ("name", "summary"):
        text = getattr(meter, attribute)
        require(isinstance(text, str) and bool(text.strip()), f"{type(meter).__name__} has no {attribute}")
        require("\n" not in text, f"{meter.name}: {attribute} must be one line")
    require(meter.quantity in get_args(Quantity), f"{meter.name}: quantity {meter.quantity!r}")
    require(meter.provenance in get_args(Provenance), f"{meter.name}: provenance {meter.provenance!r}")
    error = meter.model_error
    require(isfinite(error) and error >= 0.0, f"{meter.name}: model_error must not be negative, but is {error}")


def it_can_be_set(make: MakeRig) -> None:
    """The settings it brings, if it does, are sound; without any it is made, and says what it lacks."""
    entry_point = getattr(make(), "entry_point", None)
    if entry_point is None:
        return
    check_settings(entry_point)
    kind = settings_type(entry_point)
    meter = entry_point(THREADS) if kind is None else entry_point(THREADS, settings=kind())
    require(isinstance(meter, Meter), f"{entry_point} gives no meter: see wattloom.metering.protocol.Meter")
    problem = meter.available()
    require(problem is None or bool(problem.strip()), "where nothing is set it lacks something, and does not say what")


def it_says_that_it_works(make: MakeRig) -> None:
    problem = make().meter().available()
    require(problem is None, f"the rig's source works, but the meter says: {problem}")


def it_counts_what_is_spent(make: MakeRig) -> None:
    """No more and no less, within its own resolution."""
    rig = make()
    meter = rig.meter()
    first = read(rig, meter, START)
    now, spent = START, 0.0
    for seconds in (1.0, 0.25, 5.0, 1.0):
        now += seconds
        spent += rig.spend(seconds)
        sample = read(rig, meter, now)
        counted = sample.joules - first.joules
        require(abs(counted - spent) <= open_j(rig, first, sample, spent), f"{spent} J were spent, {counted} J counted")


def it_never_falls(make: MakeRig) -> None:
    """Good readings are finite, not negative, at the time handed in (or as much earlier as is said), and rise."""
    rig = make()
    meter = rig.meter()
    lag_s = float(getattr(rig, "lag_s", 0.0))
    now, last = START, read(rig, meter, START)
    for step in range(20):
        seconds = 0.1 + 0.05 * (step % 4)
        rig.spend(seconds)
        now += seconds
        sample = read(rig, meter, now)
        earliest = max(now - lag_s, last.time)
        require(earliest <= sample.time <= now, f"read at {now}, but the sample says {sample.time}")
        require(sample.epoch == last.epoch, "the count broke off although nothing happened to the source")
        require(sample.joules >= last.joules, f"fell from {last.joules} J to {sample.joules} J")
        last = sample


def it_has_no_clock_of_its_own(make: MakeRig) -> None:
    """Read again at the same time, with nothing spent, it has counted nothing."""
    rig = make()
    meter = rig.meter()
    read(rig, meter, START)
    rig.spend(1.0)
    first, second = read(rig, meter, START + 1.0), read(rig, meter, START + 1.0)
    require(second.joules == first.joules, f"{second.joules - first.joules} J out of no time at all")


def it_refuses_time_that_runs_backwards(make: MakeRig) -> None:
    rig = make()
    meter = rig.meter()
    read(rig, meter, START)
    rig.spend(2.0)
    good = read(rig, meter, START + 2.0)
    unknown(ask(rig, meter, START + 1.0), "a time before the last one")
    require(read(rig, meter, START + 2.0).joules >= good.joules, "fell after a time that ran backwards")


def it_undoes_a_wrap(make: MakeRig) -> None:
    rig = make()
    if not rig.near_wrap():
        return
    meter = rig.meter()
    first = read(rig, meter, START)
    spent = rig.spend(1.0)
    sample = read(rig, meter, START + 1.0)
    require(sample.epoch == first.epoch, "a wrap is no break in the count")
    counted = sample.joules - first.joules
    require(abs(counted - spent) <= open_j(rig, first, sample, spent), f"{spent} J over a wrap became {counted} J")


def it_says_unknown_when_it_cannot_read(make: MakeRig) -> None:
    """With a reason, not with zero; and once mended it covers the gap or says that the count broke off."""
    rig = make()
    recovers(rig, rig.fail, "that cannot be read")


def it_says_unknown_when_it_may_not_read(make: MakeRig) -> None:
    """Permission is taken away while it runs, and given back."""
    rig = make()
    forbid = getattr(rig, "forbid", None)
    if forbid is not None:
        recovers(rig, forbid, "that may not be read")


def it_says_unknown_to_what_is_no_number(make: MakeRig) -> None:
    rig = make()
    garble = getattr(rig, "garble", None)
    if garble is not None:
        recovers(rig, garble, "that shows no number")


def it_says_unknown_on_a_source_that_never_worked(make: MakeRig) -> None:
    rig = make()
    rig.fail()
    meter = rig.meter()
    require(bool(meter.available()), "available() says that it works on a source that cannot be read")
    unknown(ask(rig, meter, START), "a source that cannot be read")


def it_does_not_count_backwards(make: MakeRig) -> None:
    """A source that began again is a break in the count."""
    rig = make()
    meter = rig.meter()
    read(rig, meter, START)
    rig.spend(10.0)
    breaks_off(meter, rig, read(rig, meter, START + 10.0), START + 10.0, rig.restart)


def it_does_not_believe_a_jump(make: MakeRig) -> None:
    rig = make()
    meter = rig.meter()
    read(rig, meter, START)
    rig.spend(10.0)
    breaks_off(meter, rig, read(rig, meter, START + 10.0), START + 10.0, rig.jump)


def it_goes_on_with_a_source_that_comes_back_anew(make: MakeRig) -> None:
    """It disappears, and when it comes back it has begun again at nothing: a reboot, a driver's reload."""
    rig = make()
    meter = rig.meter()
    read(rig, meter, START)
    rig.spend(10.0)
    last = read(rig, meter, START + 10.0)
    rig.fail()
    unknown(ask(rig, meter, START + 11.0), "a source that is gone")
    rig.mend()
    breaks_off(meter, rig, last, START + 11.0, rig.restart)


def it_makes_nothing_up_for_a_long_gap(make: MakeRig) -> None:
    """Whoever counts on may cover it, to the joule; whoever does not must say that the count broke off."""
    rig = make()
    counts = make().restart() is not False or getattr(rig, "remembers", False)
    meter = rig.meter()
    read(rig, meter, START)
    rig.spend(1.0)
    last = read(rig, meter, START + 1.0)
    rig.fail()
    unknown(ask(rig, meter, START + 2.0), "a source that cannot be read")
    rig.mend()
    spent = rig.spend(LONG_S)
    sample = ask(rig, meter, START + 1.0 + LONG_S)
    if isinstance(sample, Unknown) or sample.epoch > last.epoch:
        return
    require(counts, f"{LONG_S:.0f} s without a reading were bridged by a source that does not count")
    counted = sample.joules - last.joules
    require(
        abs(counted - spent) <= open_j(rig, last, sample, spent),
        f"{spent} J were spent in a long gap, {counted} J counted in the same epoch",
    )


def it_notices_a_source_that_stands_still(make: MakeRig) -> None:
    rig = make()
    freeze = getattr(rig, "freeze", None)
    if freeze is None:
        return
    meter = rig.meter()
    read(rig, meter, START)
    spent = rig.spend(1.0)
    last, now = read(rig, meter, START + 1.0), START + 1.0
    freeze()
    answer: Sample | Unknown = last
    step = 1.0
    while isinstance(answer, Sample):
        require(now < START + STALE_S, f"the source has stood still for {STALE_S:.0f} s, and the meter says {answer}")
        now, spent = now + step, spent + rig.spend(step)
        answer = ask(rig, meter, now)
        step = min(step * 1.2, LONGEST_STEP_S)
    unknown(answer, "a source that stands still")
    rig.mend()
    spent += rig.spend(1.0)
    sample, _ = eventually(meter, rig, now + 1.0)
    if sample.epoch == last.epoch:
        most = spent + rig.spend(1.0) + open_j(rig, last, sample, spent)
        require(sample.joules <= most, f"{sample.joules} J after a source stood still, {most} J were spent")


def two_of_them_do_not_disturb_each_other(make: MakeRig) -> None:
    rig = make()
    one, other = rig.meter(), rig.meter()
    before = read(rig, one, START), read(rig, other, START)
    rig.spend(1.0)
    read(rig, one, START + 1.0)
    rig.spend(1.0)
    after = read(rig, one, START + 2.0), read(rig, other, START + 2.0)
    rises = [late.joules - early.joules for early, late in zip(before, after, strict=True)]
    open_j = 4.0 * (after[0].resolution_j + after[1].resolution_j) + 0.01 * max(rises)
    require(abs(rises[0] - rises[1]) <= open_j, f"two meters on one source counted {rises[0]} J and {rises[1]} J")


def a_read_is_cheap(make: MakeRig) -> None:
    rig = make()
    meter = rig.meter()
    read(rig, meter, START)
    costs: list[float] = []
    for step in range(20):
        began = thread_time()
        meter.read(START + step)
        costs.append(thread_time() - began)
    usual = sorted(costs)[len(costs) // 2]
    require(usual <= CHEAP_S, f"a read takes {usual * 1e3:.1f} ms of CPU time; {CHEAP_S * 1e3:.0f} ms are allowed")


CHECKS: Final[tuple[Check, ...]] = (
    it_describes_itself,
    it_says_that_it_works,
    it_counts_what_is_spent,
    it_never_falls,
    it_has_no_clock_of_its_own,
    it_refuses_time_that_runs_backwards,
    it_undoes_a_wrap,
    it_says_unknown_when_it_cannot_read,
    it_says_unknown_when_it_may_not_read,
    it_says_unknown_to_what_is_no_number,
    it_says_unknown_on_a_source_that_never_worked,
    it_does_not_count_backwards,
    it_does_not_believe_a_jump,
    it_goes_on_with_a_source_that_comes_back_anew,
    it_makes_nothing_up_for_a_long_gap,
    it_notices_a_source_that_stands_still,
    two_of_them_do_not_disturb_each_other,
    a_read_is_cheap,
    it_can_be_set,
)
