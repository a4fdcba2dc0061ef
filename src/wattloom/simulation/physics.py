"""All hosts together in virtual time: what is due next, and what the cluster draws.

Owns the hosts, the heap of things due and the power trace. It decides nothing and knows no engine: the loop tells it
what starts where, and `run_placed` runs tasks whose places are given.
"""

from heapq import heappop, heappush
from typing import Final

from wattloom.energy.split import EnergySplit
from wattloom.machines.machine import Machine
from wattloom.simulation.host import Host, Running
from wattloom.simulation.power_trace import PowerTrace
from wattloom.units import Joules

# Kinds of things due, in the order they happen at the same moment.
HAPPENS: Final = 0
ENDS: Final = 1
WAKES: Final = 2
EVICTED: Final = 3
ARRIVES: Final = 4
MEASURED: Final = 5
MIGRATED: Final = 6
PREPARED: Final = 7

Due = tuple[float, int, int, str, int]
"""Time, kind, sequence, what, version."""


class PlacedTask:
    """A task that needs no decision."""

    __slots__ = ("cpu", "host", "start_s", "task", "work")

    def __init__(self, start_s: float, host: str, task: str, cpu: int, work: float) -> None:
        self.start_s: Final = start_s
        self.host: Final = host
        self.task: Final = task
        self.cpu: Final = cpu
        """Millicores."""
        self.work: Final = work
        """Seconds alone."""


class Physics:
    """Every host of the cluster."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.gone: list[Host] = []
        self.due: list[Due] = []
        self.power: Final = PowerTrace()
        self._sequence: int = 0
        self._watts: float = 0.0

    def at(self, time: float, kind: int, what: str, version: int) -> None:
        """Put something in the order of virtual time."""
        self._sequence += 1
        heappush(self.due, (time, kind, self._sequence, what, version))

    def still(self, what: str, version: int) -> Host | None:
        """The host of something due, if it was not made void since."""
        host = self.hosts.get(what)
        return host if host is not None and host.version == version else None

    # -- tasks -------------------------------------------------------------------------------------------------------

    def start(self, host: Host, task: str, attempt: int, function: str, cpu: int, work: float, extra: float) -> None:
        """Begin a task now on a host that is settled (`change`). `extra` is work before its own, a cold start."""
        self._sequence += 1
        if host.start(Running(task, attempt, function, cpu, work, self._sequence), extra):
            self._announce(host)

    def end_first(self, host: Host, time: float) -> Running:
        """The task whose end was due: take it off."""
        self.change(host, time)
        return self._take_off(host, host.first_to_end().task, time)

    def stop(self, host: Host, task: str, time: float) -> Running:
        """Take a task off before its end."""
        self.change(host, time)
        return self._take_off(host, task, time)

    def move(self, host: Host, to: Host, task: str, time: float, work: float) -> None:
        """It goes on on another host, where the whole of it takes so many seconds alone: the same share is left."""
        running = self.stop(host, task, time)
        left = max(0.0, running.ends_at - host.clock) / running.work if running.work > 0.0 else 0.0
        self.change(to, time)
        self.start(to, task, running.attempt, running.function, running.cpu, work, (left - 1.0) * work)
        self.changed(to, time)

    def _take_off(self, host: Host, task: str, time: float) -> Running:
        running = host.stop(task)
        self._announce(host)
        self.changed(host, time)
        return running

    def _announce(self, host: Host) -> None:
        """Say when the host's next task ends; what was said before is void."""
        host.version += 1
        end = host.next_end()
        if end >= 0.0:
            self.at(end, ENDS, host.name, host.version)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def join(self, name: str, machine: Machine, asleep: bool, time: float) -> None:
        host = Host(name, machine, asleep, time)
        for gone in self.gone:
            if gone.name == name:
                host.version = gone.version + 1  # what was announced for its former life must not happen in this one
        self.hosts[name] = host
        self.changed(host, time)

    def lose(self, name: str, time: float) -> bool:
        """It is gone; False if it was not there."""
        host = self.hosts.pop(name, None)
        if host is None:
            return False
        self.change(host, time)
        host.vanish()
        self.changed(host, time)
        self.gone.append(host)
        return True

    def sleep(self, host: Host, time: float) -> None:
        self.change(host, time)
        host.fall_asleep()
        self.changed(host, time)

    def wake(self, host: Host, time: float) -> None:
        """Begin to wake; that it is awake becomes due."""
        self.change(host, time)
        seconds = host.begin_waking()
        self.changed(host, time)
        if seconds == 0.0:
            self.power.add(time, host.machine.profile.wake_j)
        host.version += 1
        self.at(time + seconds, WAKES, host.name, host.version)

    def awake(self, host: Host, time: float) -> None:
        self.change(host, time)
        host.awake()
        self.changed(host, time)

    def set_frequency(self, host: Host, frequency: int, time: float) -> None:
        """In thousandths of what it runs at by itself. Only for one that is awake."""
        self.change(host, time)
        if host.set_frequency(frequency):
            self._announce(host)
        self.changed(host, time)

    # -- power -------------------------------------------------------------------------------------------------------

    def change(self, host: Host, time: float) -> None:
        """Something will change on this host: settle what it has done and drawn so far."""
        host.advance(time)
        self._watts -= host.watts

    def changed(self, host: Host, time: float) -> None:
        self._watts += host.watts
        self.power.change(time, self._watts)

    def settle(self, time: float) -> list[Host]:
        """All hosts there ever were, with what they have drawn up to now."""
        hosts = [*self.gone, *self.hosts.values()]
        for host in hosts:
            host.advance(time)
        return hosts

    # -- without an engine -------------------------------------------------------------------------------------------

    def run_placed(self, tasks: list[PlacedTask]) -> float:
        """Run tasks, in order of their start, at their given places; the end of the last one."""
        due = self.due
        position = 0
        count = len(tasks)
        end = 0.0
        while position < count or due:
            if position < count and (not due or tasks[position].start_s < due[0][0]):
                task = tasks[position]
                position += 1
                host = self.hosts[task.host]
                self.change(host, task.start_s)
                self.start(host, task.task, 1, "", task.cpu, task.work, 0.0)
                self.changed(host, task.start_s)
            else:
                entry = heappop(due)
                ended_on = self.still(entry[3], entry[4])
                if ended_on is not None:
                    self.end_first(ended_on, entry[0])
                    end = entry[0]
        return end


def energy_of(hosts: list[Host], scheduler: Joules) -> EnergySplit:
    """What hosts have drawn, by parts, and what deciding cost."""
    return EnergySplit(
        active=Joules(sum(host.active_j for host in hosts)),
        idle=Joules(sum(host.idle_j for host in hosts)),
        sleep=Joules(sum(host.sleep_j for host in hosts)),
        wake=Joules(sum(host.wake_j for host in hosts)),
        scheduler=scheduler,
    )


def threads_of(hosts: list[Host]) -> int:
    """Hardware threads of the cluster; a node that was lost and came back counts once."""
    return sum({host.name: host.machine.profile.threads for host in hosts}.values())
