"""Heavy and light CPU seconds, by what was counted in them; the counts come from a processor the test makes up."""

from wattloom.attribution.counter_model import CounterModel
from wattloom.metering.perf_events import CYCLES, INSTRUCTIONS, Event
from wattloom.monitoring.cgroup_names import NOWHERE
from wattloom.monitoring.cpu_weights import MOST_COUNTED, ByCounters, ByCpuTime, best_cpu_weights
from wattloom.monitoring.process import Process
from wattloom.monitoring.split import Departed, Who

HZ = 2e9
JOULES = (2.0, 3.0)
"""Of 10^9 cycles and 10^9 instructions."""


class Silicon:
    """Counts as a processor would: each process has its instructions per cycle."""

    events: tuple[Event, ...] = (CYCLES, INSTRUCTIONS)

    def __init__(self) -> None:
        self.per_cycle: dict[int, float] = {}
        self.counted: dict[int, list[float]] = {}
        self.watched: set[int] = set()
        self.refuse = False

    def __len__(self) -> int:
        return len(self.watched)

    def __contains__(self, pid: int) -> bool:
        return pid in self.watched

    def watch(self, pid: int) -> str | None:
        if self.refuse:
            return "too many files are open"
        self.watched.add(pid)
        return None

    def read(self, pid: int) -> tuple[float, ...] | None:
        return tuple(self.counted.setdefault(pid, [0.0, 0.0])) if pid in self.watched else None

    def unwatch(self, pid: int) -> None:
        self.watched.discard(pid)

    def run(self, process: Process, seconds: float) -> float:
        """The process runs; what that draws above idle."""
        cycles = seconds * HZ
        rise = (cycles, cycles * self.per_cycle[process.pid])
        counts = self.counted.setdefault(process.pid, [0.0, 0.0])
        for number, more in enumerate(rise):
            counts[number] += more
        return sum(joules * more / 1e9 for joules, more in zip(JOULES, rise, strict=True))


def scene() -> tuple[Silicon, ByCounters, Process, Process]:
    silicon = Silicon()
    heavy, light = Process(10, 1), Process(11, 2)
    silicon.per_cycle = {10: 3.0, 11: 0.5}
    return silicon, ByCounters(silicon, CounterModel(2)), heavy, light


def live(silicon: Silicon, cpu_weights: ByCounters, shares: list[dict[Process, float]]) -> None:
    for used in shares:
        joules = sum(silicon.run(process, seconds) for process, seconds in used.items())
        together: dict[Who, float] = dict(used.items())
        cpu_weights.observe(together)
        cpu_weights.learn(joules, 1.0)


def test_a_process_whose_cpu_seconds_draw_more_is_heavier() -> None:
    silicon, cpu_weights, heavy, light = scene()
    mixes = [{heavy: 0.2 + 0.07 * n, light: 0.9 - 0.05 * n} for n in range(12)]
    live(silicon, cpu_weights, mixes * 2)
    truth = (2.0 + 3.0 * 3.0) / (2.0 + 3.0 * 0.5)
    assert cpu_weights.factor(heavy) / cpu_weights.factor(light) > 0.85 * truth
    assert cpu_weights.factor(heavy) / cpu_weights.factor(light) < 1.15 * truth


def test_before_anything_was_learned_all_weigh_the_same() -> None:
    silicon, cpu_weights, heavy, light = scene()
    live(silicon, cpu_weights, [{heavy: 0.5, light: 0.5}] * 2)
    assert cpu_weights.factor(heavy) == cpu_weights.factor(light) == 1.0


def test_who_is_not_counted_weighs_as_the_mean() -> None:
    silicon, cpu_weights, heavy, light = scene()
    live(silicon, cpu_weights, [{heavy: 0.3 + 0.05 * n, light: 0.5} for n in range(12)])
    assert cpu_weights.factor(Departed(NOWHERE, "make")) == 1.0
    assert cpu_weights.factor(Process(12, 3)) == 1.0


def test_only_the_busiest_are_counted_and_idle_ones_are_forgotten() -> None:
    silicon, cpu_weights, heavy, _ = scene()
    crowd = [Process(100 + number, number) for number in range(MOST_COUNTED + 20)]
    silicon.per_cycle |= {process.pid: 1.0 for process in crowd}
    used: dict[Who, float] = {process: 1.0 + number * 0.01 for number, process in enumerate(crowd)}
    cpu_weights.observe(used)
    assert len(silicon) == MOST_COUNTED
    assert crowd[0].pid not in silicon
    cpu_weights.observe({heavy: 1.0})
    assert silicon.watched == {heavy.pid}


def test_a_process_that_may_not_be_counted_is_no_error() -> None:
    silicon, cpu_weights, heavy, light = scene()
    silicon.refuse = True
    live(silicon, cpu_weights, [{heavy: 0.5, light: 0.5}] * 20)
    assert cpu_weights.factor(heavy) == 1.0


def test_without_counters_the_reason_is_named() -> None:
    assert ByCpuTime("this machine does not count").summary == "CPU time (this machine does not count)"
    assert best_cpu_weights().summary
