"""Selectors by label: the index finds whom a plain comparison with every selector finds, and compares few."""

from hypothesis import given
from hypothesis import strategies as st

from wattloom.cluster.index import Index
from wattloom.cluster.selector_index import MOST_KEYS, SelectorIndex, ShapeIndex, are_meant
from wattloom.cluster.shape_constraints import ShapeConstraints
from wattloom.cluster.task_group import Selection, TaskGroup
from wattloom.cluster.task_groups import FEW, TaskGroups
from wattloom.testing import builders
from wattloom.workload.constraints import AffinityTerm, Constraints, Expression
from wattloom.workload.requirements import Requirements
from wattloom.workload.shape import Shape

NAMES = ("app", "tier", "")
VALUES = ("web", "db", "1", "7", "")
NAMESPACES = ("", "prod", "test")
MANY_VALUES = tuple(f"v{number}" for number in range(MOST_KEYS)) + VALUES[:2]
MANY_NAMESPACES = tuple(f"s{number}" for number in range(MOST_KEYS)) + NAMESPACES[:2]
MANY = 1_000

names = st.sampled_from(NAMES)
values = st.lists(st.sampled_from(VALUES), max_size=4).map(tuple) | st.just(MANY_VALUES)
"""Also none at all, and some twice."""
expressions = st.builds(
    Expression, names, st.sampled_from(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")), values
)
some = st.lists(expressions, max_size=3).map(tuple)
selectors = st.one_of(some, some, some, st.none())
namespaces = st.just(()) | st.lists(st.sampled_from(NAMESPACES), max_size=3).map(tuple) | st.just(MANY_NAMESPACES)
one = st.tuples(st.tuples(selectors, namespaces))
several = st.one_of(one, one, st.lists(st.tuples(some, namespaces), min_size=2, max_size=3).map(tuple))
tasks = st.builds(
    lambda labels, namespace: Requirements(1.0, task_labels=tuple(sorted(labels.items())), namespace=namespace),
    st.dictionaries(names, st.sampled_from(VALUES), max_size=3),
    st.sampled_from(NAMESPACES),
)


def shape_constraints(number: int, needs: Requirements) -> ShapeConstraints:
    return ShapeConstraints(Shape(number, builders.function("f"), needs, 0.5, False))


@given(
    st.lists(st.tuples(several, st.integers(0, 5)), min_size=5, max_size=20), st.lists(tasks, min_size=4, max_size=8)
)
def test_the_groups_of_a_task_are_those_that_a_comparison_with_every_selector_finds(
    entered: list[tuple[tuple[Selection, ...], int]], asked: list[Requirements]
) -> None:
    groups = [TaskGroup(number) for number in range(6)]
    index = SelectorIndex()
    for count, (selections, number) in enumerate(entered):
        index.add(selections, groups[number])
        for needs in asked:
            labels = dict(needs.task_labels)
            plain = {mine for all_of, mine in entered[: count + 1] if are_meant(all_of, labels, needs.namespace)}
            assert [group.number for group in index.groups(labels, needs.namespace)] == sorted(plain)


@given(st.lists(tasks, min_size=4, max_size=15), st.lists(several, min_size=4, max_size=10))
def test_the_shapes_that_selectors_mean_are_those_that_a_comparison_with_every_shape_finds(
    known: list[Requirements], asked: list[tuple[Selection, ...]]
) -> None:
    index = ShapeIndex()
    for number, needs in enumerate(known):
        index.add(shape_constraints(number, needs))
    for selections in asked:
        plain = [n for n, needs in enumerate(known) if are_meant(selections, dict(needs.task_labels), needs.namespace)]
        assert sorted(each.shape.index for each in index.meant(selections)) == plain


# -- how much is compared ----------------------------------------------------------------------------------------------


class Counted(dict[str, str]):
    """Labels that know how often a selector has looked at them."""

    looks = 0

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.looks += 1
        return super().get(name, default)


def looks(*selectors: tuple[Expression, ...], namespaces: tuple[str, ...] = ()) -> int:
    """How often the labels of one task are looked at, among all these selectors."""
    index = SelectorIndex()
    for number, selector in enumerate(selectors):
        index.add(((selector, namespaces),), TaskGroup(number))
    labels = Counted(app="web", tier="front")
    index.groups(labels, "prod")
    return labels.looks


def test_selectors_that_want_other_values_are_not_compared() -> None:
    assert looks(*[(Expression("app", "In", (f"x{number}",)),) for number in range(MANY)]) == 0


def test_selectors_that_want_other_labels_are_not_compared() -> None:
    assert looks(*[(Expression(f"x{number}", "Exists"),) for number in range(MANY)]) == 0


def test_selectors_that_forbid_what_a_task_has_are_not_compared() -> None:
    forbids = Expression("app", "DoesNotExist"), Expression("tier", "NotIn", ("front", "back"))
    others = [Expression("x", "NotIn", (str(number),)) for number in range(MANY)]
    assert looks(*[(forbids[number % 2], other) for number, other in enumerate(others)]) == 0


def test_selectors_of_other_spaces_are_not_compared() -> None:
    assert looks(*[(Expression("app", "In", ("web",)),)] * MANY, namespaces=("test",)) == 0


def test_a_selector_is_entered_under_the_label_that_fewest_others_want() -> None:
    everywhere = Expression("app", "In", ("web",))
    each_its_own = [Expression("tier", "In", (f"x{number}",)) for number in range(MANY)]
    assert looks(*[(everywhere, own) for own in each_its_own]) <= 2


def test_many_wishes_of_a_task_to_be_apart_are_counted_as_one_and_a_few_are_shared() -> None:
    terms = tuple(AffinityTerm("host", (Expression("app", "In", (f"x{n}",)),)) for n in range(MANY))
    groups = TaskGroups(Index())
    for number, anti_affinity in enumerate((terms, terms[:FEW], terms[:FEW])):
        needs = Requirements(
            1.0, constraints=Constraints(anti_affinity=anti_affinity), task_labels=(("app", f"x{number}"),)
        )
        groups.shape_constraints(Shape(number, builders.function("f"), needs, 0.5, False))
    many, few, same = (groups.known(number) for number in range(3))
    assert many is not None
    assert few is not None
    assert same is not None
    assert len(many.unwanted) == 1
    assert few.unwanted == same.unwanted
    assert [len(each.kept_by) for each in (many, few, same)] == [2, 2, 2]
    assert len(many.counted_by) == 3, "as one who is unwanted, of many and of few, and as one who keeps others away"
