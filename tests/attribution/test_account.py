from pathlib import Path

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import ProcTree, RaplTree, machine

from wattloom.attribution.account import Account
from wattloom.attribution.usage import Usage
from wattloom.attribution.worker import Worker
from wattloom.energy.forecast import Unknown
from wattloom.energy.grains import GRAIN_J
from wattloom.energy.measured import Energy
from wattloom.metering.powercap import Powercap
from wattloom.metering.readings import MOST_WAITING_S


class Scene:
    """A machine of two cores with 10 W idle, two workers (1 and 2), and time that the test lets pass."""

    def __init__(self, folder: Path) -> None:
        self.proc = ProcTree(folder / "proc")
        self.meter = Scripted()
        self.account = Account(self.meter, machine(provenance="measured"), proc=self.proc.root)
        self.now = 0.0
        self.cpu = {1: 0.0, 2: 0.0}
        for worker in self.cpu:
            self.proc.process(worker, 0.0)
            self.account.worker_started(worker)
        self.account.sample(self.now)

    def use(self, worker: int, seconds: float) -> None:
        """A worker uses CPU time, as the kernel sees it."""
        self.cpu[worker] += seconds
        self.proc.process(worker, self.cpu[worker])

    def pass_time(self, seconds: float, joules: float, busy: float) -> Usage:
        """And sample."""
        self.now += seconds
        self.meter.joules += joules
        self.proc.work(busy)
        usage = self.account.sample(self.now)
        check(usage)
        return usage


def check(usage: Usage) -> None:
    """What holds of every interval."""
    if usage.meter_j is not None:
        parts = usage.tasks_j + usage.held_j + usage.idle_j + usage.unattributed_j
        assert parts == usage.meter_j + usage.held_before_j
        assert usage.tasks_j == pytest.approx(sum(joules for joules, _ in usage.tasks.values()), abs=1e-6)
        assert min(usage.tasks_j, usage.held_j, usage.idle_j, usage.unattributed_j, usage.overhead_j) >= 0.0
        assert usage.overhead_j <= usage.unattributed_j


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_call_pays_for_its_share_of_the_busy_time_above_idle(scene: Scene) -> None:
    scene.use(1, 0.5)
    scene.account.ended(1, "a", "f", 0.5)
    usage = scene.pass_time(1.0, joules=50.0, busy=2.0)
    assert usage.tasks["a"][0] == pytest.approx(0.5 / 2.0 * 40.0)
    assert usage.idle_j == pytest.approx(10.0)
    assert usage.unattributed_j == pytest.approx(30.0)
    assert usage.functions["f"] == pytest.approx((1, 10.0, 100.0))


def test_the_busier_of_two_calls_pays_more(scene: Scene) -> None:
    for worker, task, seconds in ((1, "a", 0.75), (2, "b", 0.25)):
        scene.use(worker, seconds)
        scene.account.ended(worker, task, "f", seconds)
    usage = scene.pass_time(1.0, joules=30.0, busy=1.0)
    assert (usage.tasks["a"][0], usage.tasks["b"][0]) == pytest.approx((15.0, 5.0))
    assert usage.functions["f"] == pytest.approx((2, 20.0, 250.0))


def test_a_call_that_runs_over_several_intervals_pays_each_at_its_own_price_and_none_twice(scene: Scene) -> None:
    paid = []
    for watts in (30.0, 50.0, 20.0):  # 20, 40 and 10 J above idle for one busy CPU second each
        scene.use(1, 1.0)
        scene.account.running(1, "long", "f")
        paid.append(scene.pass_time(1.0, joules=watts, busy=1.0))
    assert [usage.tasks for usage in paid] == [{}, {}, {}]
    assert [usage.held_j for usage in paid] == [pytest.approx(20.0), pytest.approx(60.0), pytest.approx(70.0)]
    scene.use(1, 0.5)
    scene.account.ended(1, "long", "f", 3.5)
    usage = scene.pass_time(1.0, joules=20.0, busy=1.0)
    assert usage.tasks["long"][0] == pytest.approx(70.0 + 5.0)
    assert usage.held_j == 0.0
    assert scene.account.totals.tasks_j == pytest.approx(75.0)


def test_what_a_worker_does_between_calls_is_overhead(scene: Scene) -> None:
    scene.use(1, 0.5)
    scene.account.ended(1, "a", "f", 0.2)
    usage = scene.pass_time(1.0, joules=20.0, busy=1.0)
    assert usage.overhead_j == pytest.approx(3.0, abs=1e-6)
    assert usage.unattributed_j == pytest.approx(8.0)


def test_our_own_process_is_overhead(scene: Scene) -> None:
    scene.proc.process("self", 0.25)
    usage = scene.pass_time(1.0, joules=20.0, busy=1.0)
    assert usage.overhead_j == pytest.approx(2.5, abs=1e-6)


def test_what_was_taken_for_a_running_call_and_was_not_becomes_overhead(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.running(1, "a", "f")
    scene.pass_time(1.0, joules=20.0, busy=1.0)
    scene.account.ended(1, "a", "f", 0.4)
    usage = scene.pass_time(1.0, joules=10.0, busy=0.0)
    assert usage.tasks["a"][0] == pytest.approx(4.0)
    assert usage.overhead_j == pytest.approx(6.0, abs=1e-6)


def test_a_batch_that_was_half_done_at_the_sample_is_paid_from_what_was_seen(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.running(1, "a", "f")
    scene.pass_time(1.0, joules=30.0, busy=1.0)  # 20 J a CPU second
    scene.use(1, 0.5)
    scene.account.ended_many(1, [("a", "f", 0.6), ("b", "f", 0.4), ("c", "g", 0.5)])
    usage = scene.pass_time(1.0, joules=15.0, busy=0.5)  # 10 J a CPU second
    assert {task: joules for task, (joules, _) in usage.tasks.items()} == {
        "a": pytest.approx(12.0),
        "b": pytest.approx(8.0),
        "c": pytest.approx(5.0),
    }
    assert usage.functions["f"][:2] == pytest.approx((2, 20.0))


def test_a_meter_that_says_less_than_idle_leaves_nothing_for_calls(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.ended(1, "a", "f", 1.0)
    usage = scene.pass_time(1.0, joules=4.0, busy=1.0)
    assert (usage.idle_j, usage.tasks_j, usage.unattributed_j) == pytest.approx((4.0, 0.0, 0.0), abs=1e-6)


def test_the_kernels_ticks_may_show_less_than_the_processes_used_and_the_parts_still_fit(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.use(2, 1.0)
    scene.account.ended(1, "a", "f", 1.0)
    scene.account.ended(2, "b", "f", 1.0)
    usage = scene.pass_time(1.0, joules=50.0, busy=1.98)
    assert usage.tasks_j == pytest.approx(40.0)


# -- unknown readings ------------------------------------------------------------------------------------------------


def test_an_unknown_reading_is_said_and_the_next_good_one_pays_for_the_calls_of_the_gap(scene: Scene) -> None:
    scene.use(1, 0.5)
    scene.account.ended(1, "a", "f", 0.5)
    scene.meter.problem = "the cable is out"
    usage = scene.pass_time(1.0, joules=30.0, busy=1.0)
    assert (usage.meter_j, usage.problem, usage.tasks, usage.unknown) == (None, "the cable is out", {}, ())
    assert usage.energy("a") is None
    scene.meter.problem = ""
    usage = scene.pass_time(1.0, joules=30.0, busy=1.0)
    assert usage.seconds == pytest.approx(2.0)
    assert usage.tasks["a"][0] == pytest.approx(10.0)
    energy = usage.energy("a")
    assert isinstance(energy, Energy)
    assert (energy.joules, energy.spread, energy.provenance) == (*usage.tasks["a"], "measured")


def test_when_the_count_breaks_off_calls_of_that_time_are_unknown_and_never_zero(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.use(2, 1.0)
    scene.account.ended(1, "ended", "f", 1.0)
    scene.account.running(2, "spanning", "f")
    scene.meter.epoch = 1
    usage = scene.pass_time(1.0, joules=50.0, busy=2.0)
    assert (usage.meter_j, usage.unknown, usage.tasks) == (None, ("ended",), {})
    assert usage.energy("ended") == Unknown("the meter's count broke off")
    scene.use(2, 1.0)
    scene.account.ended(2, "spanning", "f", 2.0)
    scene.account.ended(2, "after", "f", 0.5)
    usage = scene.pass_time(1.0, joules=50.0, busy=2.0)
    assert isinstance(usage.energy("spanning"), Unknown)
    assert list(usage.tasks) == ["after"]
    assert usage.tasks["after"][0] == pytest.approx(10.0)
    assert scene.account.totals.unknown_s == pytest.approx(1.0)
    assert scene.account.totals.unknown_calls == 2


def test_a_meter_that_falls_against_its_promise_is_not_believed(scene: Scene) -> None:
    scene.pass_time(1.0, joules=50.0, busy=2.0)
    scene.account.ended(1, "a", "f", 1.0)
    usage = scene.pass_time(1.0, joules=-5.0, busy=2.0)
    assert (usage.meter_j, usage.unknown) == (None, ("a",))


def test_after_a_break_the_account_goes_on_at_once_and_only_the_time_before_is_unknown(tmp_path: Path) -> None:
    tree, proc = RaplTree(tmp_path / "powercap"), ProcTree(tmp_path / "proc")
    tree.zone("intel-rapl:0", "package-0")
    account = Account(Powercap(tree.root), machine("package", provenance="measured"), proc=proc.root)
    proc.process(1, 0.0)
    account.worker_started(1)
    account.sample(0.0)
    account.ended(1, "before", "f", 0.0)
    tree.add("intel-rapl:0", 10_000_000)
    usage = account.sample(3600.0)  # an hour without a reading: the counter may have wrapped more than once
    assert isinstance(usage.energy("before"), Unknown)
    assert "more than once" in usage.problem
    proc.process(1, 1.0)
    proc.work(1.0)
    tree.add("intel-rapl:0", 30_000_000)
    account.ended(1, "after", "f", 1.0)
    usage = account.sample(3601.0)
    assert (usage.meter_j, usage.tasks["after"][0]) == pytest.approx((30.0, 20.0))


def test_a_grain_too_much_in_the_sum_of_calls_is_taken_back_and_nothing_gets_negative() -> None:
    usage = Usage(1.0, "measured", 50.0, idle_j=10.0).balanced(40.0 + GRAIN_J, 1.0)
    assert (usage.tasks_j, usage.unattributed_j, usage.overhead_j) == (40.0, 0.0, 0.0)


def test_joules_held_for_a_call_are_not_lost_when_the_count_breaks_off(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.running(1, "a", "f")
    assert scene.pass_time(1.0, joules=30.0, busy=1.0).held_j == pytest.approx(20.0)
    scene.meter.epoch = 1
    scene.pass_time(1.0, joules=30.0, busy=1.0)
    scene.account.ended(1, "a", "f", 1.0)
    usage = scene.pass_time(1.0, joules=10.0, busy=0.0)
    assert usage.unattributed_j == pytest.approx(20.0)
    totals = scene.account.totals
    assert totals.tasks_j + totals.held_j + totals.idle_j + totals.unattributed_j == totals.meter_j


def test_calls_do_not_wait_for_ever_for_a_reading(scene: Scene) -> None:
    scene.account.ended(1, "a", "f", 1.0)
    scene.meter.problem = "gone"
    assert scene.pass_time(1.0, joules=0.0, busy=1.0).unknown == ()
    assert scene.pass_time(MOST_WAITING_S, joules=0.0, busy=1.0).unknown == ("a",)


def test_a_meter_that_never_works_does_not_make_calls_pile_up(tmp_path: Path) -> None:
    proc, meter = ProcTree(tmp_path), Scripted()
    meter.problem = "there is none"
    account = Account(meter, machine(provenance="measured"), proc=proc.root)
    proc.process(1, 1.0)
    account.worker_started(1)
    account.sample(0.0)
    for number in (1, 2, 3):
        account.ended(1, f"task-{number}", "f", 1.0)
        assert account.sample(number * (MOST_WAITING_S + 1.0)).unknown == (f"task-{number}",)


def test_the_first_reading_opens_the_account(tmp_path: Path) -> None:
    account = Account(Scripted(), machine(provenance="measured"), proc=ProcTree(tmp_path).root)
    usage = account.sample(5.0)
    assert (usage.seconds, usage.meter_j, usage.problem) == (0.0, 0.0, "")


def test_calls_before_the_first_reading_are_unknown(tmp_path: Path) -> None:
    proc = ProcTree(tmp_path)
    account = Account(Scripted(), machine(provenance="measured"), proc=proc.root)
    proc.process(1, 1.0)
    account.worker_started(1)
    account.ended(1, "early", "f", 1.0)
    assert account.sample(0.0).unknown == ("early",)


def test_two_samples_at_one_time_leave_the_interval_open(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.ended(1, "a", "f", 1.0)
    assert scene.pass_time(0.0, joules=0.0, busy=0.0).meter_j is None
    assert scene.pass_time(1.0, joules=30.0, busy=1.0).tasks["a"][0] == pytest.approx(20.0)


# -- children, threads, deaths ---------------------------------------------------------------------------------------


def test_cpu_time_of_children_that_shows_only_at_the_end_is_paid_from_what_nobody_claimed(scene: Scene) -> None:
    for _ in range(3):  # a subprocess is busy all the time; the worker waits for it
        scene.account.running(1, "a", "f")
        usage = scene.pass_time(1.0, joules=30.0, busy=1.0)
        assert usage.unattributed_j == 0.0
    scene.account.ended(1, "a", "f", 3.0)
    usage = scene.pass_time(1.0, joules=10.0, busy=0.0)
    assert usage.tasks["a"][0] == pytest.approx(60.0)
    assert usage.held_j == 0.0


def test_late_cpu_time_does_not_take_from_other_calls(scene: Scene) -> None:
    scene.use(2, 0.5)
    scene.account.ended(1, "late", "f", 100.0)
    scene.account.ended(2, "other", "f", 0.5)
    usage = scene.pass_time(1.0, joules=30.0, busy=1.0)
    assert usage.tasks["other"][0] == pytest.approx(10.0)
    assert usage.tasks["late"][0] == pytest.approx(10.0)
    assert usage.tasks["late"][1] > 1000.0, "what could not be found must show as spread"


def test_joules_nobody_claims_are_given_up_when_nothing_runs_any_more(scene: Scene) -> None:
    scene.account.running(1, "a", "f")
    assert scene.pass_time(1.0, joules=30.0, busy=1.0).held_j == pytest.approx(20.0)
    scene.account.ended(1, "a", "f", 0.0)
    usage = scene.pass_time(1.0, joules=10.0, busy=0.0)
    assert (usage.held_j, usage.unattributed_j) == pytest.approx((0.0, 20.0))


def test_living_children_are_seen_where_the_kernel_shows_them(scene: Scene) -> None:
    scene.proc.child(1, 77)
    scene.proc.process(77, 1.0)
    scene.account.running(1, "a", "f")
    scene.pass_time(1.0, joules=30.0, busy=2.0)  # 10 J a CPU second, when the child ran
    scene.account.ended(1, "a", "f", 1.0)
    usage = scene.pass_time(1.0, joules=50.0, busy=1.0)  # 40 J a CPU second, when it had ended
    assert usage.tasks["a"][0] == pytest.approx(10.0)


def test_what_a_worker_needs_to_start_is_overhead_over_as_many_intervals_as_it_takes(scene: Scene) -> None:
    for _ in range(3):
        scene.use(1, 0.5)
        assert scene.pass_time(1.0, joules=20.0, busy=1.0).overhead_j == pytest.approx(5.0, abs=1e-6)


def test_threads_of_a_call_are_counted(scene: Scene) -> None:
    scene.proc.process(1, 0.5, threads=1.5)
    scene.account.ended(1, "a", "f", 2.0)
    usage = scene.pass_time(1.0, joules=50.0, busy=2.0)
    assert usage.tasks["a"][0] == pytest.approx(40.0)
    assert usage.overhead_j == pytest.approx(0.0, abs=1e-6)


def test_what_a_worker_used_before_it_died_is_the_tasks(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.running(1, "a", "f")
    scene.pass_time(1.0, joules=30.0, busy=1.0)
    scene.account.worker_gone(1)
    scene.proc.end(1)
    usage = scene.pass_time(1.0, joules=10.0, busy=0.0)
    assert usage.tasks["a"][0] == pytest.approx(20.0)
    assert usage.functions == {}, "a call that did not come to its end says nothing about its function"


def test_an_end_that_is_told_after_the_workers_own_end_is_not_lost(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.worker_gone(1)
    scene.account.ended(1, "a", "f", 1.0)
    assert scene.pass_time(1.0, joules=30.0, busy=1.0).tasks["a"][0] == pytest.approx(20.0)


def test_attempts_of_one_task_in_one_interval_add_up(scene: Scene) -> None:
    scene.use(1, 1.0)
    scene.account.ended_many(1, [("a", "f", 0.5), ("a", "f", 0.5)])
    usage = scene.pass_time(1.0, joules=30.0, busy=1.0)
    assert usage.tasks["a"][0] == pytest.approx(20.0)


def test_a_worker_without_any_end_keeps_its_running_call(scene: Scene) -> None:
    scene.account.running(1, "a", "f")
    for _ in range(2):
        scene.use(1, 1.0)
        scene.pass_time(1.0, joules=30.0, busy=1.0)
    scene.account.ended(1, "a", "f", 2.0)
    assert scene.pass_time(1.0, joules=10.0, busy=0.0).tasks["a"][0] == pytest.approx(40.0)


# -- functions that differ -------------------------------------------------------------------------------------------


class Mixed(Scene):
    """The same machine with a meter that measures: `b` draws three times as much as `a`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.meter.model_error = 0.4
        self.meter.resolution_j = 1e-3
        self.account = Account(self.meter, machine(provenance="measured"), proc=self.proc.root)
        self.clock = dict.fromkeys(self.cpu, 0.0)
        for worker in self.cpu:
            self.account.worker_started(worker)
        self.account.sample(self.now)

    def work(self, **seconds: float) -> Usage:
        """Calls of `a` on the first worker and of `b` on the second, for so many CPU seconds, in one second."""
        for worker, function in ((1, "a"), (2, "b")):
            used = seconds.get(function, 0.0)
            self.use(worker, used)
            if used:
                self.account.ended(worker, f"{function}-{self.now}", function, used, self.cpu[worker])
        drawn = 10.0 * seconds.get("a", 0.0) + 30.0 * seconds.get("b", 0.0)
        return self.pass_time(1.0, joules=10.0 + drawn, busy=sum(seconds.values()))


def test_functions_that_differ_come_to_pay_what_they_draw(tmp_path: Path) -> None:
    scene = Mixed(tmp_path)
    first = scene.work(a=0.5, b=0.5)
    assert first.functions["a"][1] == pytest.approx(first.functions["b"][1]), "nothing is known yet"
    for number in range(40):
        scene.work(a=0.2 + 0.6 * (number % 2), b=0.9 - 0.6 * (number % 3 > 0))
    last = scene.work(a=0.5, b=0.5)
    assert last.functions["b"][1] == pytest.approx(15.0, rel=0.15)
    assert last.functions["a"][1] == pytest.approx(5.0, rel=0.3)
    (a,) = [spread / joules for task, (joules, spread) in last.tasks.items() if task.startswith("a")]
    (a_first,) = [spread / joules for task, (joules, spread) in first.tasks.items() if task.startswith("a")]
    assert a < 0.7 * a_first


def test_a_function_that_is_alone_pays_as_if_nothing_were_learned(tmp_path: Path) -> None:
    scene = Mixed(tmp_path)
    for _ in range(5):
        usage = scene.work(b=1.0)
    assert usage.tasks_j == pytest.approx(usage.meter_j - usage.idle_j, abs=1e-5)  # type: ignore[operator]


def test_short_calls_of_functions_that_differ_have_tariffs_that_differ(tmp_path: Path) -> None:
    scene = Mixed(tmp_path)
    for number in range(40):
        scene.work(a=0.2 + 0.6 * (number % 2), b=0.9 - 0.6 * (number % 3 > 0))
    tariffs = {}
    for worker, function in ((1, "a"), (2, "b")):
        scene.use(worker, 0.004)
        tariffs[function] = scene.account.ended_short(worker, function, 0.004, scene.cpu[worker])
    scene.meter.joules += 10.16
    scene.proc.work(0.008)
    usage = scene.account.sample(scene.now + 1.0)
    costs = {name: tariff.energy(0.004) for name, tariff in tariffs.items() if tariff is not None}
    assert all(isinstance(cost, Energy) for cost in costs.values())
    assert costs["b"].joules > 2.0 * costs["a"].joules  # type: ignore[union-attr]
    for name, cost in costs.items():
        each, spread, clock = usage.cpu_second_of[name]
        assert (cost.joules, cost.spread) == pytest.approx((0.004 * each, 0.004 * spread + clock))  # type: ignore[union-attr]


def test_from_a_meter_that_is_itself_cpu_time_nothing_is_learned_of_functions(tmp_path: Path) -> None:
    scene = Mixed(tmp_path)
    scene.meter.provenance = "estimated"
    scene.account = Account(scene.meter, machine(provenance="measured"), proc=scene.proc.root)
    for worker in scene.cpu:
        scene.account.worker_started(worker)
    scene.account.sample(scene.now)
    for number in range(20):
        usage = scene.work(a=0.2 + 0.6 * (number % 2), b=0.9 - 0.6 * (number % 3 > 0))
    assert usage.functions["a"][1] / 0.8 == pytest.approx(usage.functions["b"][1] / 0.3)
    assert all(spread > 0.39 * joules for joules, spread in usage.tasks.values())
    assert usage.cpu_second_of == {}


def test_what_was_taken_for_the_running_call_is_put_right_when_it_is_known_whose_it_was(tmp_path: Path) -> None:
    """By the worker's clock: calls that ended before the reading are heard of only after it."""
    worker = Worker(tmp_path)
    worker.run("first", "a")
    worker.used_s = worker.clock_s = 1.0
    worker.weigh()
    before: dict[str, float] = {"\0own": 0.0}
    worker.tell_apart(before, {})
    assert before == {"\0own": 0.0, "a": 1.0}
    worker.close()
    for function, cpu_s, clock_s in (("a", 0.3, 0.3), ("b", 0.6, 0.95), ("b", 0.1, 1.1)):
        worker.ended.append(("task", function, cpu_s))
        worker.place(function, cpu_s, clock_s)
    worker.running = None
    worker.used_s, worker.clock_s = 0.2, 1.2
    worker.weigh()
    now = {"\0own": 0.0}
    worker.tell_apart(now, before)
    assert before == pytest.approx({"\0own": 0.1, "a": 0.3, "b": 0.6})
    assert now == pytest.approx({"\0own": 0.1, "a": 0.0, "b": 0.1})
