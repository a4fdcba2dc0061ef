"""One simulated node: how far its tasks have come, and what it has drawn.

Owns the physics of a node. When its load changes all its tasks' speeds change, so work done is kept as one virtual
clock per host: a task ends when the clock has moved by its work, and a change costs one heap operation, not one per
task.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from wattloom.machines.machine import Machine

AWAKE: Final = 0
WAKING: Final = 1
ASLEEP: Final = 2
GONE: Final = 3


class Running:
    """A task on a host."""

    __slots__ = ("attempt", "cpu", "ends_at", "function", "serial", "task", "work")

    def __init__(self, task: str, attempt: int, function: str, cpu: int, work: float, serial: int) -> None:
        self.task: Final = task
        self.attempt: Final = attempt
        self.function: Final = function
        self.cpu: Final = cpu
        self.work: Final = work
        """Seconds alone, without a cold start."""
        self.serial: Final = serial
        self.ends_at: float = 0.0
        """On the host's clock."""


class Host:
    """A node with its tasks, its clock and its meter."""

    __slots__ = (
        "_heap", "_nominal", "_threads", "active_j", "busy_core_s", "clock", "demand", "idle_j", "machine", "mode",
        "name", "prepared", "running", "sleep_j", "speed", "time", "version", "wake_j", "warm", "watts",
    )  # fmt: skip

    def __init__(self, name: str, machine: Machine, asleep: bool, time: float) -> None:
        self.name: Final = name
        self._nominal: Final = machine
        self.machine: Machine = machine
        """At the frequency that it runs at."""
        self._threads: Final = machine.profile.threads * 1000
        self.mode: int = ASLEEP if asleep else AWAKE
        self.time: float = time
        self.clock: float = 0.0
        """Seconds of progress that a task here since the beginning would have made."""
        self.demand: int = 0
        self.speed: float = 1.0
        self.watts: float = machine.sleep_w if asleep else machine.idle_w
        self.version: int = 0
        """Goes up when the next end is somewhere else than announced."""
        self.running: dict[str, Running] = {}
        self._heap: list[tuple[float, int, str]] = []
        self.warm: dict[str, list[float]] = {}
        """By function: until when each idle instance is kept."""
        self.prepared: dict[tuple[str, str], int] = {}
        """By function and build: instances that were asked for, and are kept until somebody uses or unloads them."""
        self.active_j: float = 0.0
        self.idle_j: float = 0.0
        self.sleep_j: float = 0.0
        self.wake_j: float = 0.0
        self.busy_core_s: float = 0.0

    def advance(self, time: float) -> None:
        """Let time pass: work is done and energy drawn."""
        elapsed = time - self.time
        if elapsed <= 0.0:
            return
        self.time = time
        if self.mode == AWAKE:
            idle = self.machine.idle_w
            self.idle_j += idle * elapsed
            if self._heap:  # tasks may want no CPU, and still run
                self.clock += self.speed * elapsed
            if self.demand:
                self.active_j += (self.watts - idle) * elapsed
                self.busy_core_s += min(self.demand, self._threads) / 1000.0 * elapsed
        elif self.mode == ASLEEP:
            self.sleep_j += self.watts * elapsed
        elif self.mode == WAKING:
            self.wake_j += self.watts * elapsed

    def start(self, task: Running, extra: float) -> bool:
        """Begin a task; True if the next end has moved. `extra` is work before its own (a cold start)."""
        task.ends_at = self.clock + task.work + extra
        self.running[task.task] = task
        heappush(self._heap, (task.ends_at, task.serial, task.task))
        return self.set_demand(self.demand + task.cpu) or self._heap[0][1] == task.serial

    def stop(self, name: str) -> Running:
        """Take a task off, ended or not."""
        task = self.running.pop(name)
        if self._heap[0][2] == name:
            heappop(self._heap)
        else:
            self._heap = [entry for entry in self._heap if entry[2] != name]
            heapify(self._heap)
        self.set_demand(self.demand - task.cpu)
        return task

    def first_to_end(self) -> Running:
        """The task that ends next; the clock has reached it."""
        task = self.running[self._heap[0][2]]
        self.clock = max(self.clock, task.ends_at)
        return task

    def next_end(self) -> float:
        """When the next task ends if nothing changes; negative if none runs."""
        if not self._heap:
            return -1.0
        return self.time + max(0.0, self._heap[0][0] - self.clock) / self.speed

    def set_demand(self, demand: int) -> bool:
        """So many millicores are wanted from now on; True if that changes the tasks' speed."""
        self.demand = demand
        speed = self.speed
        self.speed, self.watts = self.machine.load(demand)
        return self.speed != speed

    def set_frequency(self, frequency: int) -> bool:
        """Run at so many thousandths of its frequency; True if that changes the tasks' speed."""
        self.machine = self._nominal if frequency == 1000 else self._nominal.at(frequency)
        return self.set_demand(self.demand)

    def fall_asleep(self) -> None:
        self.mode = ASLEEP
        self.watts = self.machine.sleep_w
        self.warm = {}
        self.prepared = {}

    def begin_waking(self) -> float:
        """Start to wake; how long it takes."""
        seconds = self.machine.profile.wake_s
        joules = self.machine.profile.wake_j
        self.mode = WAKING
        if seconds > 0.0:
            self.watts = joules / seconds
        else:
            self.wake_j += joules
        return seconds

    def awake(self) -> None:
        self.mode = AWAKE
        self.watts = self.machine.idle_w

    def vanish(self) -> None:
        """Lost: it runs and draws nothing any more."""
        self.mode = GONE
        self.watts = 0.0
        self.running = {}
        self._heap = []
        self.demand = 0

    def take_warm(self, function: str, time: float) -> bool:
        """Use an instance that is still kept, if there is one."""
        kept = self.warm.get(function)
        while kept:
            if kept.pop() >= time:
                return True
        return False

    def take_prepared(self, function: str, variant: str) -> bool:
        """Use or unload an instance that was prepared, if there is one."""
        count = self.prepared.get((function, variant), 0)
        if count:
            self.prepared[function, variant] = count - 1
        return count > 0

    def keep_warm(self, function: str, until: float) -> None:
        self.warm.setdefault(function, []).append(until)
