"""Prometheus' text format, read by line: a page may show thousands of processes, and a meter wants two figures of it.

Owns the search for the lines that count and the choice of one node. The grammar is prometheus_client's.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from math import isfinite
from typing import Final

import msgspec

from wattloom.metering.source import SourceProblem

NODE_LABELS: Final = ("node_name", "node", "instance", "exported_instance")
"""Where exporters and those who collect from them write whose figure it is, the surest first."""


class Line(msgspec.Struct, frozen=True):
    """One figure."""

    name: str
    labels: dict[str, str]
    value: float


def figures(page: bytes, names: Iterable[str], where: str) -> list[Line]:
    """The figures with these names, in the page's order."""
    from prometheus_client.parser import text_string_to_metric_families

    lines = b"\n".join(_lines(tuple(names)).findall(page))
    if not lines:
        if page[:200].lstrip().lower().startswith((b"<!doctype", b"<html")):
            raise SourceProblem(f"{where} is a web page and no metrics: its path often ends with /metrics")
        return []
    try:
        families = text_string_to_metric_families(lines.decode() + "\n")
        found = [Line(each.name, each.labels, float(each.value)) for family in families for each in family.samples]
    except (ValueError, OverflowError, KeyError, IndexError) as problem:  # UnicodeDecodeError is a ValueError
        raise SourceProblem(f"{where} shows metrics that cannot be read") from problem
    for each in found:
        if not isfinite(each.value) or each.value < 0.0:
            raise SourceProblem(f"{where} shows {each.value} as {each.name}, which cannot be")
    return found


@lru_cache(maxsize=16)
def _lines(names: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(rb"^(?:%s)[{ \t][^\n]*" % b"|".join(re.escape(name.encode()) for name in names), re.MULTILINE)


def of_node(found: list[Line], node: str, where: str, setting: str) -> list[Line]:
    """The figures of one node: of that which is named, else of the only one."""
    if node:
        chosen = [each for each in found if node in (each.labels.get(label) for label in NODE_LABELS)]
        if found and not chosen:
            raise SourceProblem(f"{where} shows no node {node!r}, but {_listed(nodes(found))}")
        return chosen
    several = nodes(found)
    if len(several) > 1:
        raise SourceProblem(f"{where} shows several nodes: {_listed(several)}. Set {setting} to the one that is meant")
    return found


def nodes(found: list[Line]) -> list[str]:
    """Whose figures these are, by the first label that all of them bear."""
    for label in NODE_LABELS:
        if found and all(label in each.labels for each in found):
            return sorted({each.labels[label] for each in found})
    return []


def _listed(names: list[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none by name") + rest
