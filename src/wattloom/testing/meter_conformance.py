"""What every meter must do, ours and anybody else's: `check_meter(MyRig)` in a test is enough.

Owns the checks. A meter is tried on a source the test controls: the `Rig`, which a meter's author writes (a folder of
files, a small server, a driver's stand-in). The checks let the rig spend joules, wrap, break and lie, and raise
AssertionError when the meter does not say so. To see each rule as a test of its own:

    @pytest.mark.parametrize("check", CHECKS, ids=check_name)
    def test_my_meter(check: Check) -> None:
        check(MyRig)
"""

from collections.abc import Callable
from math import isfinite
from time import thread_time
from typing import Final, Protocol, get_args

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.metering.protocol import Meter, Quantity, Sample


class Rig(Protocol):
    """A source of joules under the test's control, and the meter that reads it."""

    def meter(self) -> Meter:
        """A new meter on this source."""

    def spend(self, seconds: float) -> float:
        """The source goes on for so long, at any power it can have; the joules it counts meanwhile."""

    def fail(self) -> None:
        """The source cannot be read from now on."""

    def mend(self) -> None:
        """It can be read again. It has counted on, where it is a counter."""

    def near_wrap(self) -> bool:
        """Bring the count to where the next `spend` wraps it. False: this source never wraps. Before the first read."""

    def restart(self) -> None:
        """The source begins again at nothing, as after a reboot or a driver's reload."""

    def jump(self) -> None:
        """The count leaps by more than the machine can have drawn."""


MakeRig = Callable[[], Rig]
Check = Callable[[MakeRig], None]

CHEAP_S: Final = 0.005
"""CPU time of one read, at most: at ten reads a second that is a twentieth of a core."""
START: Final = 1000.0


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
    _require(isinstance(meter, Meter), f"{type(meter).__name__} lacks something of wattloom.metering.protocol.Meter")
    for attribute in ("name", "summary"):
        text = getattr(meter, attribute)
        _require(isinstance(text, str) and bool(text.strip()), f"{type(meter).__name__} has no {attribute}")
        _require("\n" not in text, f"{meter.name}: {attribute} must be one line")
    _require(meter.quantity in get_args(Quantity), f"{meter.name}: quantity {meter.quantity!r}")
    _require(meter.provenance in get_args(Provenance), f"{meter.name}: provenance {meter.provenance!r}")
    error = meter.model_error
    _require(isfinite(error) and error >= 0.0, f"{meter.name}: model_error must not be negative, but is {error}")


def it_says_that_it_works(make: MakeRig) -> None:
    problem = make().meter().available()
    _require(problem is None, f"the rig's source works, but the meter says: {problem}")


def it_counts_what_is_spent(make: MakeRig) -> None:
    """No more and no less, within its own resolution."""
    rig = make()
    meter = rig.meter()
    first = _read(meter, START)
    now, spent = START, 0.0
    for seconds in (1.0, 0.25, 5.0, 1.0):
        now += seconds
        spent += rig.spend(seconds)
        sample = _read(meter, now)
        counted, open_j = sample.joules - first.joules, 4.0 * (first.resolution_j + sample.resolution_j)
        _require(abs(counted - spent) <= open_j + 0.01 * spent, f"{spent} J were spent, {counted} J counted")


def it_never_falls(make: MakeRig) -> None:
    """Good readings are finite, not negative, at the time handed in, and rise."""
    rig = make()
    meter = rig.meter()
    now, last = START, _read(meter, START)
    for step in range(20):
        seconds = 0.1 + 0.05 * (step % 4)
        rig.spend(seconds)
        now += seconds
        sample = _read(meter, now)
        _require(sample.time == now, f"read at {now}, but the sample says {sample.time}")
        _require(sample.epoch == last.epoch, "the count broke off although nothing happened to the source")
        _require(sample.joules >= last.joules, f"fell from {last.joules} J to {sample.joules} J")
        last = sample


def it_has_no_clock_of_its_own(make: MakeRig) -> None:
    """Read again at the same time, with nothing spent, it has counted nothing."""
    rig = make()
    meter = rig.meter()
    _read(meter, START)
    rig.spend(1.0)
    first, second = _read(meter, START + 1.0), _read(meter, START + 1.0)
    _require(second.joules == first.joules, f"{second.joules - first.joules} J out of no time at all")


def it_refuses_time_that_runs_backwards(make: MakeRig) -> None:
    rig = make()
    meter = rig.meter()
    _read(meter, START)
    rig.spend(2.0)
    good = _read(meter, START + 2.0)
    _unknown(meter.read(START + 1.0), "a time before the last one")
    _require(_read(meter, START + 2.0).joules >= good.joules, "fell after a time that ran backwards")


def it_undoes_a_wrap(make: MakeRig) -> None:
    rig = make()
    if not rig.near_wrap():
        return
    meter = rig.meter()
    first = _read(meter, START)
    spent = rig.spend(1.0)
    sample = _read(meter, START + 1.0)
    _require(sample.epoch == first.epoch, "a wrap is no break in the count")
    open_j = 4.0 * (first.resolution_j + sample.resolution_j) + 0.01 * spent
    _require(abs(sample.joules - first.joules - spent) <= open_j, f"{spent} J over a wrap became {sample.joules} J")


def it_says_unknown_when_it_cannot_read(make: MakeRig) -> None:
    """With a reason, not with zero; and once mended it covers the gap or says that the count broke off."""
    rig = make()
    meter = rig.meter()
    first = _read(meter, START)
    spent = rig.spend(1.0)
    rig.fail()
    _unknown(meter.read(START + 1.0), "a source that cannot be read")
    _require(bool(meter.available()), "available() says that it works on a source that cannot be read")
    rig.mend()
    _require(meter.available() is None, f"mended, but available() says: {meter.available()}")
    spent += rig.spend(1.0)
    sample = _eventually(meter, rig, START + 2.0)
    if sample.epoch == first.epoch:
        open_j = 4.0 * (first.resolution_j + sample.resolution_j) + 0.01 * spent
        _require(sample.joules - first.joules >= spent - open_j, "joules of the gap are missing, in the same epoch")


def it_says_unknown_on_a_source_that_never_worked(make: MakeRig) -> None:
    rig = make()
    rig.fail()
    meter = rig.meter()
    _require(bool(meter.available()), "available() says that it works on a source that cannot be read")
    _unknown(meter.read(START), "a source that cannot be read")


def it_does_not_count_backwards(make: MakeRig) -> None:
    """A source that began again is a break in the count."""
    rig = make()
    meter = rig.meter()
    _read(meter, START)
    rig.spend(10.0)
    _breaks_off(meter, rig, _read(meter, START + 10.0), rig.restart)


def it_does_not_believe_a_jump(make: MakeRig) -> None:
    rig = make()
    meter = rig.meter()
    _read(meter, START)
    rig.spend(10.0)
    _breaks_off(meter, rig, _read(meter, START + 10.0), rig.jump)


def two_of_them_do_not_disturb_each_other(make: MakeRig) -> None:
    rig = make()
    one, other = rig.meter(), rig.meter()
    before = _read(one, START), _read(other, START)
    rig.spend(1.0)
    _read(one, START + 1.0)
    rig.spend(1.0)
    after = _read(one, START + 2.0), _read(other, START + 2.0)
    rises = [late.joules - early.joules for early, late in zip(before, after, strict=True)]
    open_j = 4.0 * (after[0].resolution_j + after[1].resolution_j) + 0.01 * max(rises)
    _require(abs(rises[0] - rises[1]) <= open_j, f"two meters on one source counted {rises[0]} J and {rises[1]} J")


def a_read_is_cheap(make: MakeRig) -> None:
    rig = make()
    meter = rig.meter()
    _read(meter, START)
    costs: list[float] = []
    for step in range(20):
        began = thread_time()
        meter.read(START + step)
        costs.append(thread_time() - began)
    usual = sorted(costs)[len(costs) // 2]
    _require(usual <= CHEAP_S, f"a read takes {usual * 1e3:.1f} ms of CPU time; {CHEAP_S * 1e3:.0f} ms are allowed")


CHECKS: Final[tuple[Check, ...]] = (
    it_describes_itself,
    it_says_that_it_works,
    it_counts_what_is_spent,
    it_never_falls,
    it_has_no_clock_of_its_own,
    it_refuses_time_that_runs_backwards,
    it_undoes_a_wrap,
    it_says_unknown_when_it_cannot_read,
    it_says_unknown_on_a_source_that_never_worked,
    it_does_not_count_backwards,
    it_does_not_believe_a_jump,
    two_of_them_do_not_disturb_each_other,
    a_read_is_cheap,
)


# -- the ways and means ----------------------------------------------------------------------------------------------


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _read(meter: Meter, now: float) -> Sample:
    """A reading that must be good."""
    sample = meter.read(now)
    if isinstance(sample, Unknown):
        raise AssertionError(f"{meter.name} at {now}: the source works, but the reading is unknown: {sample.reason}")
    _require(isfinite(sample.joules) and sample.joules >= 0.0, f"{meter.name}: {sample.joules} J cannot be")
    good = isfinite(sample.resolution_j) and sample.resolution_j > 0.0
    _require(good, f"{meter.name}: a reading is never exact, but its resolution is {sample.resolution_j} J")
    return sample


def _unknown(answer: Sample | Unknown, what: str) -> None:
    _require(isinstance(answer, Unknown), f"{what} gave {answer}, not Unknown")
    _require(isinstance(answer, Unknown) and bool(answer.reason.strip()), f"{what} gave Unknown without a reason")


def _eventually(meter: Meter, rig: Rig, now: float) -> Sample:
    """The first good reading: a meter may need one more read to find its feet."""
    sample = meter.read(now)
    if isinstance(sample, Unknown):
        rig.spend(1.0)
        return _read(meter, now + 1.0)
    return sample


def _breaks_off(meter: Meter, rig: Rig, last: Sample, lie: Callable[[], None]) -> None:
    """After a lie the meter says Unknown or begins a new epoch; and it goes on, counting only what is spent then."""
    lie()
    answer = meter.read(last.time + 0.5)
    if isinstance(answer, Sample):
        _require(answer.epoch > last.epoch, f"{lie.__name__}: {last} became {answer} in the same epoch")
    now = last.time + 0.5
    rig.spend(1.0)
    before = _eventually(meter, rig, now + 1.0)
    _require(before.epoch > last.epoch, f"{lie.__name__}: the count goes on in the same epoch: {last}, then {before}")
    spent = rig.spend(1.0)
    after = _read(meter, before.time + 1.0)
    open_j = 4.0 * (before.resolution_j + after.resolution_j) + 0.01 * spent
    _require(
        abs(after.joules - before.joules - spent) <= open_j, f"{lie.__name__}: the meter does not count on rightly"
    )
