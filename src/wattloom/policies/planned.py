"""A plan carried out: calls of a function go to the server that the plan gives it, within the cores that are its own.

Owns the rule of following a plan, and of not following it. A function's calls go where the plan says, with the build it
says, while they have fewer cores there than are the function's own. If all of these are in use, or the server has no
room, a call waits; after so many times as long as an execution is planned to take it goes elsewhere. Where the plan
says nothing (it does not have the function, its server is not here or cannot take it), and after that wait, the call
goes by least joules. Of a function that is split, the part goes first that is used least against what was planned.

Which plan holds is the engine's to say (`view.plan`, by `plan-changed`); until something is said, the one that the
option names. It is found by its digest, so that a replay decides by the same one.
"""

from functools import lru_cache
from math import inf
from pathlib import Path
from typing import ClassVar, Final

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.energy.forecast import Unknown
from wattloom.errors import InputError, PolicyError
from wattloom.planning.plan import Assignment, Plan
from wattloom.planning.plan_file import read_plan
from wattloom.planning.plan_store import find_plan, is_digest, keep_plan
from wattloom.policies.answers import Citation
from wattloom.policies.least_joules import LeastJoules
from wattloom.policies.protocol import Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.units import MILLI

KEPT: Final = 64
USUAL_WAIT: Final = 10.0
WORTH_WAITING: Final = (Reason.PLANNED_SHARE_IN_USE, Reason.PLANNED_SERVER_FULL)
"""What passes by itself."""

Parts = dict[str, tuple[Assignment, ...]]
"""By function."""


class Direction:
    """What the plan says of a task now."""

    __slots__ = ("estimate", "in_use", "instead", "part", "plan")

    def __init__(
        self,
        plan: str,
        instead: Reason | None,
        part: Assignment | None = None,
        in_use: int = 0,
        estimate: PlacementEstimate | None = None,
    ) -> None:
        self.plan: Final = plan
        self.instead: Final = instead
        """Why it cannot be followed now; None: it can."""
        self.part: Final = part
        self.in_use: Final = in_use
        """Millicores of the function there."""
        self.estimate: Final = estimate

    @property
    def fill(self) -> float:
        """How much is used of what is planned to be, on average, busy."""
        return 0.0 if self.part is None else self.in_use * self.part.per_core_s / max(self.part.rate, 1e-12)


class Planned(LeastJoules):
    """As the plan says, else least joules."""

    name = "planned"
    summary = "as a plan says (`wattloom plan make`), at most its cores for each function; else by least joules"
    sleep_options = ()
    goes_by_plan = True
    options: ClassVar[dict[str, str]] = {
        "plan": "the plan that holds from the beginning: a file, or the digest of a plan that was kept (`wattloom plan "
        "keep`). A log names the digest. Left out: the plan that the scenario names or `wattloom plan drive` follows; "
        "without any, all goes by least joules",
        "wait": "how long a call waits for its function's cores before it goes elsewhere, in times of what an "
        f"execution is planned to take (default {USUAL_WAIT:g}; inf: it never goes elsewhere)",
        "sleep": "send idle nodes to sleep (true or false; default true)",
    }

    def __init__(self, plan: str = "", wait: float = USUAL_WAIT, sleep: bool = True) -> None:
        super().__init__(sleep=sleep)
        if not wait >= 0.0:
            raise PolicyError("wait", f"must not be negative, not {wait}")
        self.wait: Final = wait
        given = None if not plan else _named(plan)
        self._first: Final = "" if given is None else given.digest
        self._first_parts: Final[Parts] = {} if given is None else _by_function(given)

    @classmethod
    def recorded(cls, options: dict[str, str]) -> dict[str, str]:
        """A file may change: a log names the plan's digest, by which it is found again."""
        named = options.get("plan", "")
        return options if not named or is_digest(named) else {**options, "plan": keep_plan(_named(named))}

    def plan_problem(self, digest: str) -> str:
        try:
            self._parts(digest)
        except InputError as problem:
            return str(problem)
        return ""

    # -- what the plan says ------------------------------------------------------------------------------------------

    def _parts(self, digest: str) -> Parts:
        return self._first_parts if digest == self._first else _kept_parts(digest)

    def direction(self, ask: Ask, view: View) -> Direction:
        """What the plan says of the task, and whether that can be done now."""
        digest = view.plan or self._first
        if not digest:
            return Direction("", Reason.NO_PLAN)
        parts = self._parts(digest).get(ask.shape.function.name, ())
        found = [self._look(digest, part, ask, view) for part in parts]
        open_ones = [each for each in found if each.instead is None]
        if open_ones:
            return min(open_ones, key=lambda each: each.fill)
        soon = [each for each in found if each.instead in WORTH_WAITING]
        return (soon or found or [Direction(digest, Reason.NOT_IN_PLAN)])[0]

    def _look(self, digest: str, part: Assignment, ask: Ask, view: View) -> Direction:
        node, shape = view.nodes().get(part.server), ask.shape
        if node is None or node.site is None:
            return Direction(digest, Reason.PLANNED_SERVER_GONE, part)
        used = view.in_use(node, part.function)
        if used and used + shape.cpu > part.cores * MILLI:
            return Direction(digest, Reason.PLANNED_SHARE_IN_USE, part, used)
        if view.never(shape, node) is not None:
            return Direction(digest, Reason.PLANNED_SERVER_UNFIT, part, used)
        estimate = view.with_variant(shape, node.site, part.variant)
        if estimate == Reason.NO_SUCH_BUILD:
            return Direction(digest, Reason.PLANNED_SERVER_UNFIT, part, used)
        if isinstance(estimate, Reason) or not view.takes(shape, node):
            return Direction(digest, Reason.PLANNED_SERVER_FULL, part, used)
        return Direction(digest, None, part, used, estimate)

    def _waits_until(self, ask: Ask, view: View, said: Direction) -> float | None:
        """Until when it waits for its own cores; None: it does not, or not any more."""
        if said.part is None or said.instead not in WORTH_WAITING:
            return None
        until = ask.submitted + self.wait / said.part.per_core_s
        if view.time >= until:
            return None
        return until if next(view.fitting(ask.shape), None) is not None else None

    # -- the answers -------------------------------------------------------------------------------------------------

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        said = self.direction(ask, view)
        if said.part is not None and said.estimate is not None:
            site = view.nodes()[said.part.server].site
            assert site is not None
            known = said.estimate.unknown is None
            cost = self.joules(ask.shape, site, said.estimate) if known else inf
            return Proposal(said.part.server, cost, variant=said.part.variant)
        until = self._waits_until(ask, view, said)
        if until is not None:
            assert said.instead is not None
            return Refusal(said.instead, until)
        return super().propose(ask, view)

    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float | Unknown | Reason:
        said = self.direction(ask, view)
        followed = said.instead is None
        if not followed and self._waits_until(ask, view, said) is None:
            return super().judge(ask, site, estimate, view)
        node = view.nodes().get(said.part.server) if said.part is not None else None
        if node is None or node.site is not site:
            return Reason.PLANNED_ELSEWHERE
        if said.instead is not None:
            return said.instead
        found = said.estimate or estimate
        return self.joules(ask.shape, site, found) if found.unknown is None else Unknown(str(found.unknown))

    def cite(self, ask: Ask, view: View) -> Citation | None:
        said = self.direction(ask, view)
        part = said.part
        if part is None:
            return Citation(said.plan, "", "", 0, 0.0, 0.0, said.instead)
        return Citation(said.plan, part.server, part.variant, part.cores, said.in_use / MILLI, part.rate, said.instead)


def _named(plan: str) -> Plan:
    """A plan by its file, or by its digest. PolicyError says what is wrong."""
    try:
        return find_plan(plan) if is_digest(plan) else read_plan(Path(plan))
    except InputError as problem:
        raise PolicyError("plan", str(problem)) from problem


@lru_cache(maxsize=KEPT)
def _kept_parts(digest: str) -> Parts:
    return _by_function(find_plan(digest))


def _by_function(plan: Plan) -> Parts:
    found: Parts = {}
    for each in plan.assignments:
        found[each.function] = (*found.get(each.function, ()), each)
    return found
