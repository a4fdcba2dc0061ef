"""Small policies for tests of the engine: one lets nodes sleep, one waits, one misbehaves, one follows a script.

Owns nothing of scheduling. As every policy they remember nothing: chance comes from the task's name and the time.
"""

from collections.abc import Callable, Iterable
from math import inf, nan
from typing import ClassVar
from zlib import crc32

from wattloom.cluster.node_class import NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.policies.answers import Dismissal, Eviction, Frequency, Migration, Move, Preparation, Resizing
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, Ranked, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.units import GIB
from wattloom.workload.shape import Shape


def least_rise() -> Policy:
    """The plainest policy by watts: no node is given out beyond its cores, and no TDP counts."""
    return MarginalEnergy(tdp=False, guarantee=1.0)


class Lingering(MarginalEnergy):
    """Idle nodes sleep after half a minute."""

    name = "lingering"
    summary = "for tests: marginal-energy, and idle nodes sleep after 30 s"

    def __init__(self, tdp: bool = False, guarantee: float = 1.0) -> None:
        super().__init__(tdp, guarantee)

    def linger(self, cls: NodeClass, view: View) -> float | None:
        return 30.0


class Hesitant(Lingering):
    """Every third task waits first, though there may be room: 20 s, or as long as it may be held back."""

    name = "hesitant"
    summary = "for tests: every third task waits a while first"

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        until = ask.submitted + (ask.task.defer_s or 20.0)
        if crc32(ask.task.id.encode()) % 3 == 0 and view.time < until:
            return Refusal(Reason.WAITING_IS_CHEAPER, until)
        return super().propose(ask, view)


class Restless(Lingering):
    """Every few seconds it changes something of what runs; who finds no room has others make it."""

    name = "restless"
    summary = "for tests: moves, resizes and evicts tasks, sets frequencies, prepares instances"
    reconsider_interval_s = 7.0

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        answer = super().propose(ask, view)
        busy = [name for name in view.names() if view.nodes()[name].tasks]
        if isinstance(answer, Proposal) or not busy:
            return answer
        lot = crc32(f"{ask.task.id} {view.time}".encode())
        name = busy[lot % len(busy)]
        there = sorted(view.nodes()[name].tasks)
        return Proposal(name, 0.0, tuple(there[: 1 + lot % 3]) if lot % 4 else ("nobody",))

    def reconsider(self, view: View) -> Iterable[Move]:
        names = view.names()
        for running in view.running:
            lot = crc32(f"{running.task.id} {view.time}".encode())
            to = names[lot % len(names)]
            yield (
                Migration(running.task.id, to),
                Migration(running.task.id, names[lot // 5 % len(names)]),
                Migration(running.task.id, names[-1]),
                Migration(running.task.id, "nowhere"),
                Resizing(running.task.id, lot % 7 / 2.0, lot % 3 * GIB),
                Resizing(running.task.id, nan, -1),
                Eviction(running.task.id),
                Frequency(to, (0.5, 0.8, 1.0, inf)[lot // 7 % 4]),
                Preparation(to, running.task.function, running.variant),
                Dismissal(to, running.task.function, running.variant),
            )[lot // 3 % 10]


class Moody(Lingering):
    """Now and then it raises, proposes nonsense, or refuses without a reason in the cluster."""

    name = "moody"
    summary = "for tests: fails, lies and refuses now and then"

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        mood = crc32(f"{ask.task.id} {view.time}".encode()) % 12
        if mood == 0:
            raise RuntimeError("not today")
        if mood == 1:
            return Proposal("no-such-node", 0.0)
        if mood == 2 and view.names():
            return Proposal(view.names()[-1], float("nan"))
        if mood == 3:
            return Refusal(Reason.WAITING_IS_CHEAPER)
        if mood == 4:
            return Refusal(Reason.NO_ROOM, until=view.time - 1.0)
        return super().propose(ask, view)

    def linger(self, cls: NodeClass, view: View) -> float | None:
        mood = crc32(f"{view.time}".encode()) % 4
        if mood == 0:
            raise RuntimeError("not now")
        return (0.0, -1.0, float("nan"))[mood - 1]


class Absurd(Moody):
    """Its numbers mean nothing: those it ranks by, what places cost, until when to wait, how long nodes linger."""

    name = "absurd"
    summary = "for tests: answers with numbers that nobody means"
    numbers: ClassVar = (nan, inf, -inf, -0.0, 0.0, 5e-324, 1.79e308, -1.79e308, 2**63, 10**400, -(10**400))

    def rank(self, shape: Shape, site: Site, view: View) -> Ranked | None:
        if super().rank(shape, site, view) is None:
            return None
        return self._number(f"{shape.index} {site.demand}"), self._number(f"{site.memory} {site.cls.index}")

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        mood = crc32(f"{ask.task.id} {view.time} {view.queued}".encode()) % 8
        if mood == 0:
            return Refusal(Reason.WAITING_IS_CHEAPER, min(self._number(f"{ask.task.id}"), view.time + 5e-324))
        answer = super().propose(ask, view)
        if isinstance(answer, Proposal) and mood < 5:
            return Proposal(answer.node, self._number(f"{answer.node} {mood}"))
        return answer

    def linger(self, cls: NodeClass, view: View) -> float | None:
        return self._number(f"{view.time}")

    def _number(self, of: str) -> float:
        number: float = self.numbers[crc32(of.encode()) % len(self.numbers)]
        return number


class Sleepless(LeastJoules):
    """Least joules, without waiting for anything, so that whoever fits has a place."""

    name = "sleepless"
    summary = "for tests: least-joules that never waits"

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        site = view.cheapest(ask.shape, self)
        if site is None:
            return Refusal(view.why_none(ask.shape))
        return Proposal(view.first(ask.shape, site), view.cost(ask.shape, site))


class Scripted(Policy):
    """Answers as a function given by the test does."""

    name = "scripted"
    summary = "for tests: as the script says"

    def __init__(self, script: Callable[[Ask, View], Proposal | Refusal], linger_s: float | None = None) -> None:
        self.script = script
        self.linger_s = linger_s

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return self.script(ask, view)

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        return 0.0

    def linger(self, cls: NodeClass, view: View) -> float | None:
        return self.linger_s
