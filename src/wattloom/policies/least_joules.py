"""Our own policy: the joules that the whole cluster will spend more because of this task.

Owns that sum and the two bounds on it. Counted are the task's own watts over the time it takes there, the time its
neighbours lose, the idle power of a node it keeps awake, and a wake-up. A place that takes too long against the fastest
this cluster has is taken only when nothing better is free and waiting for better would not end sooner. A task that may
wait does so rather than wake a node for more than such tasks usually cost. Idle nodes sleep after as long as a wake-up
costs.
"""

from math import inf, isfinite
from typing import ClassVar, Final

from wattloom.cluster.index import FIRST_TIER, UNKNOWN_TIER, Rank
from wattloom.cluster.node_class import Mode, NodeClass
from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import PolicyError
from wattloom.machines.machine import Machine
from wattloom.policies.protocol import Policy, Proposal, Refusal, break_even_s
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.units import MILLI
from wattloom.workload.shape import Shape

MICRO: Final = 6
"""Digits of joules and watts that count: equal places are equal, whatever the last bits of a float say."""
IN_USE: Final = 0.5
"""Share of a cluster's cores that is taken to be in use while there is work, where nodes do not sleep: a second for
which a task holds a core is charged the idle watts of so many cores."""
SLOW_TIER: Final = 1
"""Of places that take too long: they come after all others, fastest first."""
PARTS_OF_A_SECOND: Final = 8192
"""Slow places whose times differ by less are equally slow: the joules decide."""


class LeastJoules(Policy):
    """Least additional joules of the whole cluster."""

    name = "least-joules"
    summary = "least joules the whole cluster spends more because of the task; idle nodes sleep (our own)"
    measure = "J"
    sleep_options: ClassVar[tuple[str, ...]] = ("linger",)
    options: ClassVar[dict[str, str]] = {
        "stretch": "how much longer than on the fastest machine a task of energy weight 0.5 may take (default 1.6)",
        "sleep": "send idle nodes to sleep (true or false; default true)",
        "linger": "idle time before sleep, in times of what a wake-up costs (default 1)",
        "company": "share of its cores that an empty node is expected to have in use soon (default 0.25)",
        "wait_margin": "a deferrable task waits, rather than wake a node, if such tasks usually cost below this share "
        "(default 0.9)",
    }

    def __init__(
        self,
        stretch: float = 1.6,
        sleep: bool = True,
        linger: float = 1.0,
        company: float = 0.25,
        wait_margin: float = 0.9,
    ) -> None:
        if not (stretch >= 1.0 and isfinite(stretch)):
            raise PolicyError("stretch", f"must be at least 1, not {stretch}")
        if not (linger >= 0.0 and isfinite(linger)):
            raise PolicyError("linger", f"must not be negative, not {linger}")
        if not 0.0 <= company <= 1.0:
            raise PolicyError("company", f"must be between 0 and 1, not {company}")
        if not 0.0 <= wait_margin <= 1.0:
            raise PolicyError("wait_margin", f"must be between 0 and 1, not {wait_margin}")
        self.stretch = stretch
        self.sleeps = sleep
        self.linger_factor = linger
        self.company = company
        self.wait_margin = wait_margin

    # -- what a place costs ------------------------------------------------------------------------------------------

    def joules(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        """What the cluster spends more if the task goes there."""
        machine = site.cls.machine
        seconds = estimate.seconds
        slower = 1.0 - machine.speed(site.demand + shape.cpu) / machine.speed(site.demand)
        neighbours = (machine.watts(site.demand) - machine.idle_w) * slower * seconds
        awake = self._floor(machine) * seconds * self._share_of_staying(shape, site)
        waking = machine.profile.wake_j if site.mode == Mode.ASLEEP else 0.0
        return round(estimate.joules + neighbours + awake + waking, MICRO)

    def _floor(self, machine: Machine) -> float:
        """Watts that a node draws only because it is awake: longer for this task, or, where none sleeps, until the last
        task of all has ended."""
        if not self.sleeps:
            return machine.idle_w
        return machine.idle_w - machine.sleep_w if machine.can_sleep else 0.0

    def _share_of_staying(self, shape: Shape, site: Site) -> float:
        """How much of the floor its run is charged: as much as it makes up of the company it has, or will get; where
        no node sleeps, of the cores that are in use while there is work, wherever it goes."""
        if not self.sleeps:
            cores = max(1, min(site.cls.cpu, site.cls.machine.profile.cores * MILLI))
            return shape.cpu / (IN_USE * cores)
        expected = self.company * min(site.cls.cpu, site.cls.machine.profile.cores * MILLI)
        wanted = max(site.demand, expected) + shape.cpu
        return shape.cpu / wanted if shape.cpu else 1.0

    def _limit(self, shape: Shape, view: View) -> float:
        """Seconds a task of this shape may take: its energy weight stretches the fastest time of this cluster."""
        return view.fastest(shape) * (1.0 + (self.stretch - 1.0) * 2.0 * shape.energy_weight)

    def rank(self, shape: Shape, site: Site, view: View) -> Rank | None:
        estimate = view.room(shape, site)
        if isinstance(estimate, Reason):
            return None
        if estimate.unknown is not None:
            return UNKNOWN_TIER, inf, (round(estimate.watts, MICRO) if site.cls.machine.knows_power else inf)
        seconds = estimate.seconds + _waking_time(site)
        joules = self.joules(shape, site, estimate)
        if seconds > self._limit(shape, view):
            return SLOW_TIER, round(seconds * PARTS_OF_A_SECOND) / PARTS_OF_A_SECOND, joules
        return FIRST_TIER, joules, -float(site.demand)

    # -- the answers -------------------------------------------------------------------------------------------------

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        best = view.best(ask, self)
        if best is None:
            return Refusal(view.why_none(ask.shape))
        rank, node, site = best
        wait = self._wait(ask, site, rank, view)
        if wait is not None:
            return wait
        tier, cost, joules = rank
        return Proposal(node, joules if tier == SLOW_TIER else cost)

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        if estimate.unknown is not None:
            return Unknown(str(estimate.unknown))
        if estimate.seconds + _waking_time(site) > self._limit(ask.shape, view):
            return Reason.TOO_SLOW
        return self.joules(ask.shape, site, estimate)

    def linger(self, cls: NodeClass, view: View) -> float | None:
        """So many times as long as it takes for idling to cost what a wake-up does."""
        if not self.sleeps or break_even_s(cls) is None:
            return None
        machine = cls.machine
        return self.linger_factor * machine.profile.wake_j / (machine.idle_w - machine.sleep_w)

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _wait(self, ask: Ask, site: Site, rank: Rank, view: View) -> Refusal | None:
        """Whether to hold the task back although there is room, and until when at the latest."""
        tier, cost, _ = rank
        if tier == UNKNOWN_TIER:
            return None
        shape = ask.shape
        if tier == SLOW_TIER:
            better = self._sooner(shape, view)
            until = ask.submitted + cost - better
            if better < cost and view.time < until:
                return Refusal(Reason.WAITING_IS_SOONER, until)
            return None
        if shape.waits and site.mode == Mode.ASLEEP:
            until = self._latest_start(ask, site, view)
            usual = view.usual_cost.get(shape.index, inf)
            if view.time < until and usual < self.wait_margin * cost:
                return Refusal(Reason.WAITING_IS_CHEAPER, until)
        return None

    def _sooner(self, shape: Shape, view: View) -> float:
        """Seconds until the end if it waits for its turn on awake nodes that are fast enough; inf if there are none."""
        slots = 0.0
        limit = self._limit(shape, view)
        for cls, alone in view.runs_on(shape):
            if alone <= limit and shape.cpu:
                slots += cls.awake * (cls.cpu // shape.cpu)
        fastest = view.fastest(shape)
        return inf if slots == 0.0 else fastest * (1.0 + (view.queued + 1) / slots)

    def _latest_start(self, ask: Ask, site: Site, view: View) -> float:
        """The end of its patience: what it allows, and what its deadline leaves."""
        task = ask.task
        until = ask.submitted + task.defer_s
        if task.deadline_s is not None:
            slack = ask.submitted + task.deadline_s - self._limit(ask.shape, view) - _waking_time(site)
            until = min(until, slack) if task.defer_s > 0.0 else slack
        return until


def _waking_time(site: Site) -> float:
    return site.cls.machine.profile.wake_s if site.mode in (Mode.ASLEEP, Mode.WAKING) else 0.0
