"""A meter that hangs, lies, disappears or comes back; a machine that sleeps; a clock that jumps; permission taken away.

Each is seen through the account: a clear message, and no joules that nobody saw.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from time import monotonic, process_time, sleep

import pytest
from tests.metering.rigs import as_nobody
from tests.metering.scripted import Scripted
from tests.metering.trees import RANGE_UJ, HwmonTree, ProcTree, RaplTree, SupplyTree, machine

from wattloom.attribution.account import Account
from wattloom.attribution.usage import Usage
from wattloom.energy.forecast import Unknown
from wattloom.energy.measured import Energy
from wattloom.local.executor import Executor
from wattloom.local.future import TaskFuture
from wattloom.metering.battery import Battery
from wattloom.metering.powercap import Powercap
from wattloom.metering.protocol import Meter, Sample
from wattloom.metering.smpro import Smpro

WATTS = 40


class Machine:
    """One package of 40 W, and an account that is kept of it. Half a core is busy."""

    def __init__(self, folder: Path) -> None:
        self.tree = RaplTree(folder / "powercap")
        self.tree.zone("intel-rapl:0", "package-0")
        self.proc = ProcTree(folder / "proc")
        self.slept_s = 0.0
        self.now = 0.0
        self.spent_j = 0.0
        self.account = self.keep(Powercap(self.tree.root, asleep=lambda: self.slept_s))

    def keep(self, meter: Meter) -> Account:
        account = Account(meter, machine("package", provenance="measured"), proc=self.proc.root)
        account.sample(self.now)
        return account

    def runs(self, seconds: float = 1.0) -> None:
        """The machine goes on, and its counter with it."""
        self.now += seconds
        self.proc.work(0.5 * seconds)
        self.tree.add("intel-rapl:0", round(WATTS * seconds * 1e6))

    def sample(self, seconds: float = 1.0) -> Usage:
        self.runs(seconds)
        return self.account.sample(self.now)

    @property
    def energy(self) -> Path:
        return self.tree.root / "intel-rapl:0" / "energy_uj"


@pytest.fixture
def box(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    assert made.sample().meter_j == pytest.approx(WATTS)
    return made


def lost(usage: Usage, says: str) -> None:
    """The interval is unknown for good, and it is said why."""
    assert usage.meter_j is None
    assert says in usage.problem


def total(box: Machine) -> float:
    """All that the account knows, which adds up."""
    totals = box.account.totals
    assert totals.meter_j == totals.tasks_j + totals.held_j + totals.idle_j + totals.unattributed_j
    return totals.meter_j


# -- disappears and comes back -----------------------------------------------------------------------------------------


def test_a_module_that_is_reloaded_has_counted_on_and_nothing_is_lost(box: Machine) -> None:
    aside = box.tree.root.with_name("aside")
    box.tree.root.rename(aside)
    box.now += 1.0
    waiting = box.account.sample(box.now)
    assert waiting.meter_j is None
    assert "is not there (any more)" in waiting.problem
    aside.rename(box.tree.root)
    box.tree.add("intel-rapl:0", WATTS * 1_000_000)
    assert box.sample().meter_j == pytest.approx(2 * WATTS)
    assert total(box) == pytest.approx(3 * WATTS)


def test_a_counter_that_comes_back_from_nothing_is_not_taken_for_a_wrap(box: Machine) -> None:
    box.energy.unlink()
    box.now += 1.0
    assert box.account.sample(box.now).meter_j is None
    box.tree.set("intel-rapl:0", 77)
    box.now += 1.0
    lost(box.account.sample(box.now), "where at most")
    assert box.sample().meter_j == pytest.approx(WATTS)
    assert total(box) == pytest.approx(2 * WATTS)
    assert box.account.totals.unknown_s == pytest.approx(2.0)


def test_a_socket_that_is_switched_off_and_on_breaks_the_count_off_each_time(box: Machine) -> None:
    box.tree.zone("intel-rapl:1", "package-1", 900_000_000)
    lost(box.sample(), "package-1 (intel-rapl:1) came")
    box.tree.add("intel-rapl:1", 10_000_000)
    assert box.sample().meter_j == pytest.approx(WATTS + 10)
    shutil.rmtree(box.tree.root / "intel-rapl:1")
    lost(box.sample(), "package-1 (intel-rapl:1) went")
    assert box.sample().meter_j == pytest.approx(WATTS)
    assert total(box) == pytest.approx(3 * WATTS + 10)


def test_after_hours_without_a_reading_the_count_does_not_guess_how_often_it_wrapped(box: Machine) -> None:
    box.energy.rename(box.energy.with_name("aside"))
    box.now += 1.0
    assert box.account.sample(box.now).meter_j is None
    box.energy.with_name("aside").rename(box.energy)
    box.now += 3000.0
    box.tree.add("intel-rapl:0", 5_000_000)
    lost(box.account.sample(box.now), "wrapped more than once")
    assert box.sample().meter_j == pytest.approx(WATTS)
    assert total(box) == pytest.approx(2 * WATTS)


# -- permission --------------------------------------------------------------------------------------------------------


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that others may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_permission_that_is_taken_away_while_running_is_said_and_given_back_nothing_is_lost(open_folder: Path) -> None:
    box = Machine(open_folder)
    assert box.sample().meter_j == pytest.approx(WATTS)
    box.energy.chmod(0o000)
    box.now += 1.0
    with as_nobody():
        usage = box.account.sample(box.now)
        problem = box.account.meter.available() or ""
    assert usage.meter_j is None
    assert "energy_uj may not be read by this user" in usage.problem
    assert "udevadm trigger" in problem
    box.energy.chmod(0o444)
    box.tree.add("intel-rapl:0", WATTS * 1_000_000)
    assert box.sample().meter_j == pytest.approx(2 * WATTS)


# -- hangs -------------------------------------------------------------------------------------------------------------


def test_a_source_that_hangs_shows_the_same_for_ever_and_is_not_taken_for_a_machine_that_draws_nothing(
    box: Machine,
) -> None:
    for _ in range(20):
        box.now += 1.0
        box.proc.work(0.5)
        usage = box.account.sample(box.now)
        assert usage.meter_j is None
        assert "stale: package-0 (intel-rapl:0) has stood at" in usage.problem
    assert total(box) == pytest.approx(WATTS)
    box.tree.add("intel-rapl:0", 20 * WATTS * 1_000_000)
    assert box.sample().meter_j == pytest.approx(21 * WATTS)


def test_a_meter_that_raises_is_unknown_and_takes_nobody_down(box: Machine) -> None:
    class Broken(Scripted):
        def read(self, now: float) -> Sample | Unknown:
            raise OSError(5, "the bus is gone")

    account = box.keep(Broken())
    usage = account.sample(5.0)
    assert usage.meter_j is None
    assert "the meter scripted failed: OSError" in usage.problem


# -- lies --------------------------------------------------------------------------------------------------------------


def test_a_jump_beyond_what_the_machine_can_draw_is_nobodys(box: Machine) -> None:
    box.tree.add("intel-rapl:0", 5_000_000_000)
    lost(box.sample(), "where at most")
    assert box.sample().meter_j == pytest.approx(WATTS)
    assert total(box) == pytest.approx(2 * WATTS)


def test_a_count_beyond_its_own_range_is_not_believed(box: Machine) -> None:
    was = box.tree.get("intel-rapl:0")
    box.tree.set("intel-rapl:0", RANGE_UJ + 5)
    box.now += 1.0
    assert "beyond its range" in box.account.sample(box.now).problem
    box.tree.set("intel-rapl:0", was)
    box.now += 1.0
    box.account.sample(box.now)
    assert box.sample().meter_j == pytest.approx(WATTS)
    assert total(box) == pytest.approx(2 * WATTS)


def test_a_power_that_cannot_be_is_not_added_up(tmp_path: Path) -> None:
    tree = HwmonTree(tmp_path / "hwmon", "smpro_hwmon")
    for number in range(1, 6):
        tree.input(f"power{number}", f"power{number} RAIL {number}", 10_000_000)
    account = Account(
        Smpro(tree.root), machine("package", provenance="measured"), proc=ProcTree(tmp_path / "proc").root
    )
    account.sample(0.0)
    assert account.sample(1.0).meter_j == pytest.approx(50.0)
    tree.set("power1", 70_000_000_000)
    lost(account.sample(2.0), "where at most 2000 W is possible")
    tree.set("power1", 10_000_000)
    account.sample(3.0)
    assert account.sample(4.0).meter_j == pytest.approx(50.0)
    assert account.totals.meter_j == pytest.approx(100.0)


# -- sleeps ------------------------------------------------------------------------------------------------------------


def test_what_a_counter_counted_while_the_machine_slept_is_no_calls(box: Machine) -> None:
    """It went on: 60 s of sleep at 1 W would look like 100 W in the half second around it, and be believed."""
    box.slept_s += 60.0
    box.tree.add("intel-rapl:0", 60_000_000)
    lost(box.sample(0.5), "the machine was asleep for 60.0 s")
    assert box.sample().meter_j == pytest.approx(WATTS)
    assert total(box) == pytest.approx(2 * WATTS)


def test_a_counter_that_was_reset_while_the_machine_slept_is_no_wrap(box: Machine) -> None:
    box.slept_s += 3600.0
    box.tree.set("intel-rapl:0", 1_000)
    lost(box.sample(0.5), "the machine was asleep for 3600.0 s")
    assert box.sample().meter_j == pytest.approx(WATTS)


def test_sleep_is_told_once(box: Machine) -> None:
    box.slept_s += 5.0
    lost(box.sample(), "asleep")
    for _ in range(3):
        assert box.sample().meter_j == pytest.approx(WATTS)


def test_power_is_not_bridged_over_a_sleep(tmp_path: Path) -> None:
    tree, slept = SupplyTree(tmp_path / "supply"), [0.0]
    tree.battery(power_now=10_000_000)
    meter = Battery(tree.root, asleep=lambda: slept[0])
    first = meter.read(0.0)
    slept[0] = 7200.0
    answer, after = meter.read(5.0), meter.read(5.0)
    assert isinstance(first, Sample)
    assert isinstance(answer, Unknown)
    assert "asleep for 7200.0 s" in answer.reason
    assert isinstance(after, Sample)
    assert (after.joules, after.epoch) == (first.joules, first.epoch + 1)


# -- clocks ------------------------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_makes_no_joules_and_does_no_harm(box: Machine) -> None:
    """Whoever reads hands in a clock that cannot be set. Who does not is refused, until time has caught up."""
    box.tree.add("intel-rapl:0", WATTS * 1_000_000)
    usage = box.account.sample(box.now - 3600.0)
    assert usage.meter_j is None
    assert "time went backwards" in usage.problem
    assert box.sample().meter_j == pytest.approx(2 * WATTS)


def test_a_clock_that_leaps_forward_makes_no_joules(box: Machine) -> None:
    box.runs()
    box.now += 86_400.0
    lost(box.account.sample(box.now), "wrapped more than once")
    assert total(box) == pytest.approx(WATTS)


class Noting(Scripted):
    """Writes down what time it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def read(self, now: float) -> Sample | Unknown:
        self.times.append(now)
        self.joules = 30.0 * now
        return super().read(now)


def test_the_executor_reads_by_a_clock_that_cannot_be_set(tmp_path: Path) -> None:
    """Seconds since it began: never the wall clock's, which anybody may set."""
    meter, began = Noting(), monotonic()
    with Executor(max_workers=1, journal=tmp_path / "a.journal", meter=meter) as executor:
        assert executor.submit(abs, -1).result(timeout=60) == 1
    assert meter.times == sorted(meter.times)
    assert 0.0 <= meter.times[0] <= meter.times[-1] <= monotonic() - began


# -- all the way to a call ---------------------------------------------------------------------------------------------


class Silicon:
    """Counts 40 W into a tree, as long as it is entered; `reset` begins again at nothing."""

    def __init__(self, tree: RaplTree) -> None:
        self._tree = tree
        self._over, self._reset = Event(), Event()
        self._thread = Thread(target=self._count, daemon=True)

    def __enter__(self) -> "Silicon":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def reset(self) -> None:
        self._reset.set()

    def _count(self) -> None:
        zone, joules, last = self._tree.root / "intel-rapl:0", 5000.0, monotonic()
        while not self._over.wait(0.01):
            now = monotonic()
            joules, last = joules + WATTS * (now - last), now
            if self._reset.is_set():
                self._reset.clear()
                joules = 0.001
            (zone / "next").write_text(f"{round(joules * 1e6)}\n")
            (zone / "next").replace(zone / "energy_uj")


def busy(seconds: float) -> float:
    end = process_time() + seconds
    while process_time() < end:
        pass
    return seconds


def why_unknown(call: TaskFuture) -> str:
    """Once the meter has been read after the call: on a busy machine the counter may stand still for a moment."""
    end = monotonic() + 10.0
    while isinstance(found := call.energy, Unknown) and call._owed and monotonic() < end:
        sleep(0.05)
    assert isinstance(found, Unknown)
    return found.reason


def test_a_call_during_which_the_counter_was_reset_has_no_joules_and_says_why_and_the_next_has_some(
    tmp_path: Path,
) -> None:
    tree = RaplTree(tmp_path / "powercap")
    tree.zone("intel-rapl:0", "package-0", 5_000_000_000)
    meter = Powercap(tree.root)
    with Silicon(tree) as silicon, Executor(max_workers=1, journal=tmp_path / "a.journal", meter=meter) as executor:
        assert executor.submit(busy, 0.05).result(timeout=60) == 0.05
        spoilt = executor.submit(busy, 0.6)
        sleep(0.1)
        silicon.reset()
        spoilt.result(timeout=60)
        reason = why_unknown(spoilt)
        assert "where at most" in reason or "no reading" in reason
        after = executor.submit(busy, 0.3)
        after.result(timeout=60)
        assert isinstance(after.energy, Energy)
        assert after.energy.provenance == "measured"
        assert after.energy.joules > 0.0
