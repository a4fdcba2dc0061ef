"""The index finds what a scan over all nodes finds, whatever moved."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from tests.local.chaos.patience import within_seconds

from wattloom.cluster import index as index_module
from wattloom.cluster.index import Index, Rank, rank_of
from wattloom.cluster.node_class import Mode
from wattloom.cluster.site import Site
from wattloom.machines.machine import Machine
from wattloom.testing.builders import CONCAVE, CONVEX, LINEAR, node

MACHINES = [Machine(profile) for profile in (LINEAR, CONCAVE, CONVEX)]

MOVES = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "take", "give", "mode", "change", "ask"]), st.integers(0, 200)),
    max_size=120,
)


def cost(site: Site) -> Rank | None:
    """Many ties on purpose; full sites have none."""
    if site.demand >= 4_000 or site.mode == Mode.HELD:
        return None
    return site.cls.index % 2, float(site.demand // 2_000), -float(site.mode)


def brute_force(index: Index, among: list[str] | None = None) -> str | None:
    """The stated rule over all nodes, or some: tier, cost, second key, name."""
    ranked: list[tuple[int, float, float, str]] = []
    for name, state in index.nodes.items():
        if among is not None and name not in among:
            continue
        assert state.site is not None
        rank = cost(state.site)
        if rank is not None:
            ranked.append((*rank, name))
    return min(ranked)[3] if ranked else None


def move(index: Index, what: str, number: int) -> None:
    names = sorted(index.nodes)
    name = names[number % len(names)] if names else ""
    if what == "add":
        fresh = f"n{number}"
        if fresh not in index.nodes:
            machine = MACHINES[number % 3]
            index.add(node(fresh, machine.profile, labels={"rack": str(number % 2)}), machine)
        return
    if not names:
        return
    state = index.nodes[name]
    if what == "remove":
        index.remove(state)
    elif what == "change":
        machine = MACHINES[number % 2]
        index.reclassify(state, node(name, machine.profile), machine)
        index.place(state)
    elif what in ("take", "give", "mode"):
        if what == "take":
            state.demand += 1_000
        elif what == "give":
            state.demand = max(0, state.demand - 1_000)
        else:
            state.mode = Mode(number % 4)
        index.place(state)


def agree(index: Index) -> None:
    ranking = index.rankings.get(0) or index.rank_by(0, cost)
    best = ranking.best()
    assert (None if best is None else best.first()) == brute_force(index)
    assert ranking.best_where(lambda site: True) is best
    assert ranking.best_where(lambda site: False) is None
    other = ranking.best_where(lambda site: site is not best)
    names = [name for name in index.nodes if best is None or name not in best.members()]
    assert (None if other is None else other.first()) == brute_force(index, names)
    assert ranking.best() is best


@given(MOVES)
def test_the_best_site_is_the_one_a_scan_over_all_nodes_finds(moves: list[tuple[str, int]]) -> None:
    index = Index()
    for what, number in moves:
        move(index, what, number)
        if what == "ask":
            agree(index)
    agree(index)


@settings(max_examples=50)
@given(MOVES)
def test_it_is_still_found_when_the_index_has_been_trimmed(moves: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "FRESH_LIMIT", 3)
        patch.setattr(index_module, "EMPTY_LIMIT", 2)
        patch.setattr(index_module, "CLASSES_LIMIT", 2)
        index = Index()
        index._most_classes = 2
        for what, number in moves:
            move(index, what, number)
            if what == "ask":
                agree(index)
            sites = {id(state.site) for state in index.nodes.values()}
            assert {id(site) for site in index.sites()} == sites
        agree(index)


@given(MOVES)
def test_watts_counts_and_names_are_those_of_the_nodes(moves: list[tuple[str, int]]) -> None:
    index = Index()
    for what, number in moves:
        move(index, what, number)
    sites = [state.site for state in index.nodes.values() if state.site is not None]
    assert index.microwatts == sum(site.microwatts for site in sites)
    assert index.names == sorted(index.nodes)
    assert sum(site.count for site in index.sites()) == len(index.nodes)
    for site in index.sites():
        assert len(site.members()) == site.count
        assert site.first() == site.members()[0]
    assert sum(cls.size for cls in index.classes) == len(index.nodes)


def test_nodes_that_join_in_any_order_are_found_by_name() -> None:
    index = Index()
    for name in ("m", "z", "a", "k", "b"):
        index.add(node(name), MACHINES[0])
        (site,) = index.sites()
        assert site.first() == min(index.nodes)
        assert site.members() == sorted(index.nodes)


def test_numbers_of_nodes_that_have_gone_are_given_out_again() -> None:
    index = Index()
    for number in range(5_000):
        index.add(node(f"n{number:05d}"), MACHINES[0])
        if number >= 3:
            index.remove(index.nodes[f"n{number - 3:05d}"])
        assert index.sites()[0].first() == min(index.nodes)
    assert len(index.numbering.at) < 2_000


ABSURD = [
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    5e-324,
    1.79e308,
    -1.79e308,
    10**400,
    -(10**400),
    2**63,
    True,
]


def absurd(site: Site) -> tuple[float, float] | None:
    """Every number that a policy may come up with, whatever it means by it."""
    number = ABSURD[(site.demand // 1_000 + 3 * site.cls.index) % len(ABSURD)]
    other = ABSURD[(site.demand // 1_000 + site.mode) % len(ABSURD)]
    return (number, other) if site.mode != Mode.HELD else None


@given(MOVES, st.integers(0, 2**12 - 1))
def test_whatever_the_ranks_are_every_search_comes_to_its_end(moves: list[tuple[str, int]], nodes: int) -> None:
    index = Index()
    index.noting = True
    for what, number in moves:
        move(index, what, number)
    index.numbering.settle()
    with within_seconds(10):
        searches_end(index, nodes)


def searches_end(index: Index, nodes: int) -> None:
    ranking = index.rank_by(0, absurd)
    ranked = {site: rank_of(absurd(site)) for site in index.sites()}
    order = sorted((*rank, site.first()) for site, rank in ranked.items() if rank is not None)
    best = ranking.best()
    assert (None if best is None else best.first()) == (order[0][3] if order else None)
    asked: list[Site] = []

    def never(site: Site) -> bool:
        asked.append(site)
        return False

    assert ranking.best_where(never) is None
    assert len(asked) == len(set(asked)) == len(order)
    among = [(*rank, name) for site, rank in ranked.items() if rank and (name := site.first_of(nodes)) is not None]
    found = ranking.best_among(nodes)
    assert (None if found is None else found.first_of(nodes)) == (min(among)[3] if among else None)
    assert ranking.best() is best


def test_a_search_that_is_cut_off_forgets_no_site() -> None:
    index = Index()
    for number in range(4):
        move(index, "add", number)
    ranking = index.rank_by(0, cost)
    before = ranking.best()

    def fail(site: Site) -> bool:
        raise RuntimeError("in the middle of it")

    with pytest.raises(RuntimeError):
        ranking.best_where(fail)
    assert ranking.best() is before
    with pytest.raises(RuntimeError):
        ranking.best_among(15, fail)
    assert ranking.best() is before
    assert len(ranking.heap) == len(index.sites())


def test_a_policy_that_fails_while_the_index_is_trimmed_is_asked_anew() -> None:
    """Trimming comes in the middle of a change: nothing may fail there."""
    angry = False

    def moody(site: Site) -> Rank | None:
        if angry:
            raise RuntimeError("not today")
        return cost(site)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "FRESH_LIMIT", 3)
        index = Index()
        move(index, "add", 0)
        index.rank_by(0, moody)
        angry = True
        for number in range(1, 9):
            move(index, "add", number)
            move(index, "take", number)
        assert 0 not in index.rankings
        angry = False
        best = index.rank_by(0, moody).best()
        assert (None if best is None else best.first()) == brute_force(index)
