"""Selectors by the labels they ask for, and shapes by the labels they have: who could be meant, without asking all.

Owns both indexes. A selector that wants a label with one of some values is found under each of these values, one that
wants a label to be there under its name; one that only forbids labels, or wants nothing, under its namespaces, less
those that forbid what the task has. What is found is compared in full, so an index never changes an answer. Knows
neither nodes nor counts.
"""

from collections.abc import Iterable
from typing import Final

from wattloom.cluster.shape_constraints import ShapeConstraints
from wattloom.cluster.task_group import Selection, TaskGroup, is_meant
from wattloom.workload.constraints import Expression

MOST_KEYS: Final = 32
"""Under which one selector is entered. With more values or namespaces it takes no more room: a wider way finds it."""
BY_VALUE: Final = 0
BY_NAME: Final = 1
BY_NAMESPACE: Final = 2
"""How narrow a way to a selector is: fewer tasks take the first than the second, all take the third."""

Key = tuple[str | None, str | None, str | None]
"""Space, name of a label and its value; None: any."""
Entry = tuple[tuple[Selection, ...], TaskGroup]


class Bucket:
    """Selectors that are found in the same way, and the labels that some of them forbid."""

    __slots__ = ("_forbidding", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._forbidding: dict[tuple[str, str | None], list[int]] = {}
        """Entries by number, by name and value of what they do not want; None: no value of it."""

    def add(self, entry: Entry, wide: bool) -> None:
        """`wide`: many tasks come this way, and are told at once what is not for them."""
        if wide:
            for label in _forbidden(entry[0]):
                self._forbidding.setdefault(label, []).append(len(self.entries))
        self.entries.append(entry)

    def left(self, labels: dict[str, str]) -> list[Entry]:
        """Those that forbid none of these labels, as far as is known here."""
        if not self._forbidding:
            return self.entries
        forbid: set[int] = set()
        for name, value in labels.items():
            forbid.update(self._forbidding.get((name, value), ()))
            forbid.update(self._forbidding.get((name, None), ()))
        return [entry for number, entry in enumerate(self.entries) if number not in forbid] if forbid else self.entries


class SelectorIndex:
    """TaskGroups by the selections that make a task belong to them."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: dict[Key, Bucket] = {}

    def clear(self) -> None:
        self._buckets.clear()

    def add(self, selections: tuple[Selection, ...], group: TaskGroup) -> None:
        """Whom all of these mean belongs to the group. A group may be entered several times."""
        for key in self._narrowest(selections):
            bucket = self._buckets.get(key)
            if bucket is None:
                bucket = Bucket()
                self._buckets[key] = bucket
            bucket.add((selections, group), key[2] is None)

    def groups(self, labels: dict[str, str], namespace: str) -> list[TaskGroup]:
        """Those that a task with these labels belongs to, each once, in the order in which they were made."""
        found: set[TaskGroup] = set()
        for key in _asked(labels, namespace):
            bucket = self._buckets.get(key)
            if bucket is not None:
                for selections, group in bucket.left(labels):
                    if group not in found and are_meant(selections, labels, namespace):
                        found.add(group)
        return sorted(found, key=_number)

    def _narrowest(self, selections: tuple[Selection, ...]) -> list[Key]:
        """Under which keys to enter it: each task it can mean asks for one of them, and few others do."""
        narrowest: list[Key] = [(None, None, None)]
        best = (BY_NAMESPACE + 1, 0)
        for selection in selections:
            if selection[0] is None:
                return []
            for width, keys in _ways(selection):
                rank = (width, sum([len(self._buckets[key].entries) for key in keys if key in self._buckets]))
                if rank < best:
                    narrowest, best = keys, rank
        return narrowest


class ShapeIndex:
    """Shapes by their namespaces and labels."""

    __slots__ = ("_by_label", "_by_namespace")

    def __init__(self) -> None:
        self._by_namespace: dict[str | None, list[ShapeConstraints]] = {}
        """None: of all namespaces."""
        self._by_label: dict[tuple[str | None, str], dict[str, list[ShapeConstraints]]] = {}
        """By namespace and name of the label, then by its value."""

    def clear(self) -> None:
        self._by_namespace.clear()
        self._by_label.clear()

    def add(self, shape_constraints: ShapeConstraints) -> None:
        namespaces: tuple[str | None, ...] = (shape_constraints.namespace, None)
        for namespace in namespaces:
            self._by_namespace.setdefault(namespace, []).append(shape_constraints)
            for name, value in shape_constraints.labels.items():
                self._by_label.setdefault((namespace, name), {}).setdefault(value, []).append(shape_constraints)

    def meant(self, selections: tuple[Selection, ...]) -> list[ShapeConstraints]:
        """The shapes whose tasks all of these mean, each once."""
        if not selections or any(selector is None for selector, _ in selections):
            return []
        found: list[ShapeConstraints] = []
        for some in self._fewest(selections):
            found += [each for each in some if are_meant(selections, each.labels, each.namespace)]
        return found

    def _fewest(self, selections: tuple[Selection, ...]) -> list[list[ShapeConstraints]]:
        """The shortest lists that hold all who can be meant."""
        fewest: list[list[ShapeConstraints]] = []
        least = -1
        for selector, namespaces in selections:
            wanted: list[Expression | None] = [each for each in selector or () if _wants(each)]
            for expression in wanted or [None]:
                lists = self._lists(_namespaces(namespaces, 1), expression)
                size = sum([len(each) for each in lists])
                if least < 0 or size < least:
                    fewest, least = lists, size
            if least == 0:
                return []
        return fewest

    def _lists(self, namespaces: list[str | None], expression: Expression | None) -> list[list[ShapeConstraints]]:
        found: list[list[ShapeConstraints]] = []
        for namespace in namespaces:
            if expression is None:
                found.append(self._by_namespace.get(namespace, []))
                continue
            by_value = self._by_label.get((namespace, expression.key))
            if by_value is None:
                continue
            values: Iterable[str] = dict.fromkeys(expression.values) if expression.operator == "In" else by_value
            found += [by_value[value] for value in values if value in by_value]
        return found


def are_meant(selections: tuple[Selection, ...], labels: dict[str, str], namespace: str) -> bool:
    """Whether all of these mean a task with these labels."""
    return all(is_meant(selection, labels, namespace) for selection in selections)


def _wants(expression: Expression) -> bool:
    """Whether it can hold only where the label is."""
    return expression.operator not in ("NotIn", "DoesNotExist")


def _ways(selection: Selection) -> list[tuple[int, list[Key]]]:
    """How its tasks can be told from others: by each label that it wants, or by their namespaces alone."""
    selector, named = selection
    found: list[tuple[int, list[Key]]] = []
    for each in selector or ():
        values = dict.fromkeys(each.values)
        if each.operator == "In" and len(values) <= MOST_KEYS:
            namespaces = _namespaces(named, len(values))
            found.append((BY_VALUE, [(namespace, each.key, value) for namespace in namespaces for value in values]))
        elif _wants(each):
            found.append((BY_NAME, [(namespace, each.key, None) for namespace in _namespaces(named, 1)]))
    return found or [(BY_NAMESPACE, [(namespace, None, None) for namespace in _namespaces(named, 1)])]


def _namespaces(named: tuple[str, ...], values: int) -> list[str | None]:
    """Under which namespaces to enter so many values: those it looks in, or all of them at once."""
    return [*dict.fromkeys(named)] if 0 < len(named) * values <= MOST_KEYS else [None]


def _forbidden(selections: tuple[Selection, ...]) -> list[tuple[str, str | None]]:
    """Labels, each once, with which a task is not meant; not all of a selector that names very many."""
    found: dict[tuple[str, str | None], None] = {}
    for selector, _ in selections:
        for each in selector or ():
            if each.operator == "DoesNotExist":
                found[each.key, None] = None
            elif each.operator == "NotIn" and len(each.values) <= MOST_KEYS:
                found.update({(each.key, value): None for value in each.values})
    return list(found)


def _asked(labels: dict[str, str], namespace: str) -> list[Key]:
    """All keys under which a selector can be that means a task with these labels."""
    found: list[Key] = []
    namespaces: tuple[str | None, ...] = (namespace, None)
    for each in namespaces:
        found.append((each, None, None))
        for name, value in labels.items():
            found.append((each, name, value))
            found.append((each, name, None))
    return found


def _number(group: TaskGroup) -> int:
    return group.number
