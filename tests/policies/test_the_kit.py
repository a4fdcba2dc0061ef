"""The conformance kit catches policies that break a rule, each by the check made for it."""

import itertools

import pytest

from wattloom.cluster.reasons import Reason
from wattloom.cluster.site import Site
from wattloom.policies.fifo import Fifo
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Policy, Proposal, Refusal
from wattloom.policies.view import Ask, View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.testing import policy_conformance as kit
from wattloom.workload.shape import Shape


class Rogue(Fifo):
    name = "rogue"
    summary = "breaks a rule"


class ProposesAnyNode(Rogue):
    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return Proposal(view.names()[0], 0.0) if view.names() else Refusal(Reason.NO_NODES)


class FailsWithoutNodes(Rogue):
    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return Proposal(min(site.first() for site, _ in view.fitting(ask.shape)), 0.0)


class Meddles(Rogue):
    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        view.last_node = "somewhere"
        return super().propose(ask, view)


class Remembers(Rogue):
    def __init__(self) -> None:
        self.turn = itertools.count()

    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        names = sorted(site.first() for site, _ in view.fitting(ask.shape))
        return Proposal(names[next(self.turn) % len(names)], 0.0) if names else Refusal(view.why_none(ask.shape))


class CostsChange(Rogue):
    """Its cost depends on the moment, though what was ranked is kept."""

    calls = 0

    def cost(self, shape: Shape, site: Site, estimate: PlacementEstimate) -> float:
        CostsChange.calls += 1
        return float(CostsChange.calls * 7919 % 101)


class NeverPlaces(Rogue):
    def propose(self, ask: Ask, view: View) -> Proposal | Refusal:
        return Refusal(Reason.WAITING_IS_CHEAPER)


class LovesTheUnknown(MarginalEnergy):
    """An unknown node costs 0, and so comes first."""

    needs_power = False


class JudgesOtherwise(Rogue):
    def judge(self, ask: Ask, site: Site, estimate: PlacementEstimate, view: View) -> float:
        return -float(ord(site.first()[-1]))


class SaysNothing(Rogue):
    summary = ""


CAUGHT: list[tuple[type[Policy], kit.Check]] = [
    (SaysNothing, kit.it_describes_itself),
    (FailsWithoutNodes, kit.it_copes_with_odd_clusters),
    (ProposesAnyNode, kit.it_proposes_only_nodes_with_room),
    (Meddles, kit.it_changes_nothing),
    (Remembers, kit.it_gives_the_same_answer_to_the_same_question),
    (CostsChange, kit.it_gives_the_same_answer_to_the_same_question),
    (CostsChange, kit.it_replays_to_the_same_instructions),
    (NeverPlaces, kit.it_takes_the_only_node_that_fits),
    (NeverPlaces, kit.it_holds_tasks_back_only_for_a_stated_reason),
    (NeverPlaces, kit.it_leaves_nobody_waiting),
    (LovesTheUnknown, kit.it_never_prefers_the_unknown),
    (JudgesOtherwise, kit.it_judges_as_it_proposes),
    (ProposesAnyNode, kit.it_can_be_explained),
]


@pytest.mark.parametrize(("rogue", "check"), CAUGHT)
def test_a_rogue_is_caught(rogue: type[Policy], check: kit.Check) -> None:
    with pytest.raises(AssertionError):
        check(rogue)


def test_every_check_catches_somebody() -> None:
    assert {check for _, check in CAUGHT} == set(kit.CHECKS)


def test_one_line_is_enough() -> None:
    kit.check_policy(Fifo)
