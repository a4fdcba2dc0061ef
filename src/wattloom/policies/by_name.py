"""Walking over the nodes in the order of their names, for the policies that take turns or draw lots.

Owns the walk. A site answers for the room on all its nodes, so each site is asked once per walk; rules may tell nodes
of a site apart.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain

from wattloom.cluster.site import Site
from wattloom.cluster.topology import EVERY
from wattloom.policies.view import View
from wattloom.prediction.placement_estimate import PlacementEstimate
from wattloom.workload.shape import Shape


def nodes_with_room(shape: Shape, view: View, after: str = "") -> Iterator[tuple[int, str]]:
    """(steps from `after`, name) of every node that has room, by name from the one after `after` and once around."""
    names, nodes, allowed = view.names(), view.nodes(), view.allowed(shape)
    start = bisect_right(names, after)
    asked: dict[Site | None, bool] = {None: False}
    for steps, position in enumerate(chain(range(start, len(names)), range(start))):
        node = nodes[names[position]]
        if allowed != EVERY and not allowed >> node.number & 1:
            continue
        site = node.site
        fits = asked.get(site)
        if fits is None:
            fits = has_room(shape, site, view)
            asked[site] = fits
        if fits:
            yield steps, names[position]


def has_room(shape: Shape, site: Site | None, view: View) -> bool:
    return site is not None and isinstance(view.estimate(shape, site), PlacementEstimate)


def steps_to(shape: Shape, site: Site, view: View, after: str) -> int:
    """How many names lie between `after` and the nearest node of this site that the shape may go to."""
    names, nodes, allowed = view.names(), view.nodes(), view.allowed(shape)
    start = bisect_right(names, after)
    members = [name for name in site.members() if allowed >> nodes[name].number & 1]
    return min((bisect_right(names, name) - 1 - start) % len(names) for name in members or site.members())
