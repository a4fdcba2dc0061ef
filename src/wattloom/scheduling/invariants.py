"""What must be true of an engine after every event, callable at any time.

Owns the checks. They look at everything and are slow on purpose: for tests, fault plans and debugging.
"""

from collections import Counter

from wattloom.cluster.node_class import Mode
from wattloom.cluster.site import FULL
from wattloom.errors import InvariantBroken
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.state import ON_A_NODE, STAGES, Stage
from wattloom.units import MILLI


def check(engine: Engine) -> None:
    """Raise InvariantBroken if the engine's state contradicts itself."""
    _nodes_hold_what_their_tasks_take(engine)
    _nothing_is_over_capacity(engine)
    _waking_nodes_can_hold_what_they_wake_for(engine)
    _the_index_knows_every_node(engine)
    _tasks_have_one_place(engine)
    _queued_tasks_are_counted(engine)
    _nodes_are_kept_for_queued_tasks(engine)
    _who_waits_for_time_has_a_timer(engine)
    _shapes_count_their_tasks(engine)
    _shares_have_one_holder(engine)
    _what_was_asked_of_nodes_is_asked_of_nodes_here(engine)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvariantBroken(message)


def _nodes_hold_what_their_tasks_take(engine: Engine) -> None:
    ledger = engine.ledger
    for name, node in ledger.index.nodes.items():
        records = [ledger.tasks[task] for task in node.tasks]
        _require(all(r.at(node).node is node for r in records), f"{name} lists a task that is elsewhere")
        _require(node.demand == sum(r.shape.cpu for r in records), f"{name}: demand is not its tasks'")
        _require(node.allocated == sum(r.at(node).guaranteed for r in records), f"{name}: allocation is not its tasks'")
        _require(
            node.memory == sum(r.at(node).memory_of(r.shape) for r in records), f"{name}: memory is not its tasks'"
        )
        for (resource, _), taken in zip(node.cls.resources.items(), node.resources, strict=True):
            wanted = sum(dict(r.shape.resources).get(resource, 0) for r in records)
            _require(taken == wanted, f"{name}: {resource} is not its tasks'")
        shares = Counter[tuple[str, int]]()
        for share in (share for r in records for share in r.at(node).devices):
            shares[share.kind, share.position] += share.share
        for (kind, _), use in zip(node.cls.devices, node.devices, strict=True):
            for index, used in enumerate(use):
                _require(used == shares.pop((kind, index), 0), f"{name}: device {kind}.{index} is not its tasks'")
        _require(not shares, f"{name}: tasks have devices that it has not: {list(shares)}")


def _nothing_is_over_capacity(engine: Engine) -> None:
    for name, node in engine.ledger.index.nodes.items():
        _require(bool(node.tasks) or not node.over, f"{name} has nothing on it, and yet may have too much")
        _require(node.allocated >= 0 and node.memory >= 0, f"{name} was given back more than was taken")
        if not node.over:
            _require(node.allocated <= node.cls.cpu, f"{name} has more CPU given out than it has")
            _require(node.memory <= node.cls.memory, f"{name} has more memory given out than it has")
            there = node.cls.resources.values()
            fits = all(taken <= amount for taken, amount in zip(node.resources, there, strict=True))
            _require(fits, f"{name} has more of a resource given out than it has")
        used = [share for use in node.devices for share in use]
        _require(all(0 <= share <= MILLI for share in used), f"{name} has a device given out twice")
        _require(not (node.tasks and node.mode == Mode.ASLEEP), f"{name} is asleep with tasks")


def _waking_nodes_can_hold_what_they_wake_for(engine: Engine) -> None:
    """Nothing of it has begun, so nothing excuses that it does not fit."""
    ledger = engine.ledger
    for name, node in ledger.index.nodes.items():
        if node.mode != Mode.WAKING:
            continue
        site, cap_w = node.site, node.cls.cap_w
        assert site is not None
        _require(not node.over, f"{name} wakes up for more than it has")
        refused = [task for task in node.tasks if ledger.estimates.never(ledger.tasks[task].shape, site) is not None]
        _require(not refused, f"{name} wakes up for {refused}, which it may not take")
        draws = node.cls.machine.waking_watts(node.demand)
        _require(not node.tasks or cap_w is None or draws <= cap_w, f"{name} wakes up for more than its cap allows")


def _the_index_knows_every_node(engine: Engine) -> None:
    index = engine.ledger.index
    _require(set(index.nodes) == set(engine.ledger.nodes), "the index and the list of nodes differ")
    total = 0
    counts: Counter[int] = Counter()
    for name, node in index.nodes.items():
        site = node.site
        if site is None:
            raise InvariantBroken(f"{name} is in no site")
        same = (site.demand, site.allocated, site.memory, site.devices, site.mode, site.cls, site.resources) == (
            node.demand, node.allocated, node.memory, node.devices, node.mode, node.cls, node.resources,
        )  # fmt: skip
        _require(site.frequency == node.frequency, f"{name} is in a site of another frequency")
        _require(same, f"{name} is in a site that is not its own")
        _require(name in site.members(), f"{name} cannot be found in its site")
        total += site.microwatts
        counts[site.serial] += 1
    _require(total == index.microwatts, "the cluster's watts are not the sum of its nodes'")
    _require(all(site.count == counts[site.serial] for site in index.sites()), "a site miscounts its nodes")
    awake = Counter(node.cls.index for node in index.nodes.values() if node.mode.is_awake)
    _require(all(cls.awake == awake[cls.index] for cls in index.classes), "a class miscounts its awake nodes")
    sizes = Counter(node.cls.index for node in index.nodes.values())
    _require(all(cls.size == sizes[cls.index] for cls in index.classes), "a class miscounts its nodes")


def _tasks_have_one_place(engine: Engine) -> None:
    ledger = engine.ledger
    for name, record in ledger.tasks.items():
        _require(name not in ledger.ended, f"{name} has ended and is still here")
        on_node, has = record.stage in ON_A_NODE, record.allocation
        _require(on_node == (has is not None), f"{name} is {STAGES[record.stage]} with node {record.node!r}")
        _require(record.stage not in (Stage.NEW, Stage.ENDED), f"{name} is {STAGES[record.stage]} between events")
        _require(has is None or has.attempt == record.attempt, f"{name} has a place of another attempt")
        _require(has is None or has.started or record.stage != Stage.RUNNING, f"{name} runs and was not started")
        if has is not None and not has.taken:
            _require(has.lease is not None and name in has.lease.behind, f"{name} stands behind nobody")
            _require(
                record.stage in (Stage.BEHIND, Stage.CANCELLING), f"{name} is {STAGES[record.stage]} behind another"
            )
        elif on_node:
            node = ledger.index.nodes.get(record.node)
            if node is None or name not in node.tasks:
                raise InvariantBroken(f"{name} is not on its node {record.node}")
            as_its_node = (node.mode == Mode.WAKING) == (record.stage == Stage.ASSIGNED)
            _require(as_its_node, f"{name} is {STAGES[record.stage]} on a node that is {node.mode.name}")
        if has is not None and has.target is not None:
            there = ledger.index.nodes.get(has.target.node.name)
            _require(there is has.target.node and there is not has.node, f"{name} moves to a node that is not there")
            _require(name in has.target.node.tasks and has.taken, f"{name} moves to a node that does not know it")
            _require(has.target.node.mode.is_awake, f"{name} moves to a node that is not awake")
        if record.stage == Stage.HELD_BACK:
            _require(bool(record.after), f"{name} waits for nothing")
            _require(all(other in ledger.tasks for other in record.after), f"{name} waits for a task that is gone")


def _queued_tasks_are_counted(engine: Engine) -> None:
    ledger = engine.ledger
    queued = [record for record in ledger.tasks.values() if record.stage == Stage.QUEUED]
    _require(ledger.view.queued == len(queued), f"{len(queued)} tasks are queued, {ledger.view.queued} counted")
    for record in queued:
        lane = engine.queue.lanes.get(record.shape.index)
        standing = lane is not None and any(e[3] is record and e[2] == record.epoch for e in lane.entries)
        _require(standing, f"{record.name} is queued and stands in no lane")
        assert lane is not None
        _require(lane.blocked_by is not None, f"{record.name} is queued, not blocked, and was not asked")


def _nodes_are_kept_for_queued_tasks(engine: Engine) -> None:
    ledger = engine.ledger
    held = {name for name, node in ledger.index.nodes.items() if node.mode == Mode.HELD}
    _require(held == set(engine.reservations.held), "the nodes kept free are not those in the list")
    first = engine.reservations.first
    waiting = [*engine.reservations.held.values(), *([] if first is None else [first])]
    for record in waiting:
        here = ledger.tasks.get(record.name) is record and record.stage == Stage.QUEUED
        _require(here, f"something is kept free for {record.name}, which does not wait")


def _who_waits_for_time_has_a_timer(engine: Engine) -> None:
    timers = {(timer.kind, timer.name, timer.mark) for timer in engine.timers._heap}
    for name, record in engine.ledger.tasks.items():
        if record.stage == Stage.BACKING_OFF:
            _require(("back-off", name, record.epoch) in timers, f"{name} backs off for ever")
        elif record.stage == Stage.QUEUED and record.by_choice:
            _require(("ask-again", name, record.epoch) in timers, f"{name} waits by choice for ever")
    _require(all(timer.time > engine.time for timer in engine.timers._heap), "a timer is overdue")


def _shapes_count_their_tasks(engine: Engine) -> None:
    live = Counter(record.shape.index for record in engine.ledger.tasks.values())
    for index, shape in engine.ledger.shapes.items():
        _require(shape.live == live[index], f"{shape} miscounts its tasks")
    _require(set(live) <= set(engine.ledger.shapes), "a task has a shape that was forgotten")


def _shares_have_one_holder(engine: Engine) -> None:
    terms, ledger = engine.leases.terms, engine.ledger
    leases = [lease for held in engine.leases.by_shape.values() for lease in held]
    _require(terms is not None or not leases, "a lease was given without terms")
    for lease in leases:
        holder = lease.holder
        _require(
            holder.holding.lease is lease and holder.holding.taken, f"{holder.name} has a share and does not know it"
        )
        _require(ledger.tasks.get(holder.name) is holder, f"{holder.name} has ended and still has a share")
        _require(holder.name in lease.node.tasks, f"{holder.name} has a share of a node that it is not on")
        _require(terms is None or len(lease.behind) <= terms.most, f"too many stand behind {holder.name}")
        for name, record in lease.behind.items():
            has = record.holding
            _require(
                has.lease is lease and not has.taken and ledger.tasks.get(name) is record,
                f"{name} stands behind by mistake",
            )
            _require(record.shape is lease.shape, f"{name} is of another shape than {holder.name}")
            _require(name not in lease.node.tasks, f"{name} stands behind another and takes room")
    known = sum(len(lease.behind) + 1 for lease in leases)
    with_lease = sum(
        has is not None and has.lease is not None for has in (each.allocation for each in ledger.tasks.values())
    )
    _require(known == with_lease, f"{with_lease} tasks have a lease, {known} are known to leases")


def _what_was_asked_of_nodes_is_asked_of_nodes_here(engine: Engine) -> None:
    nodes, instances = engine.ledger.index.nodes, engine.ledger.view.instances
    awake = {name for name, node in nodes.items() if node.mode.is_awake}
    _require(set(engine.moves.frequencies) <= awake, "a node was asked for another frequency that is not awake")
    for counts in (instances.ready, instances.coming, instances.going):
        _require({node for node, _, _ in counts} <= awake, "a node that is not awake has instances")
        _require(all(count > 0 for count in counts.values()), "a count of instances is not positive")
    _require(all(1 <= node.frequency <= FULL for node in nodes.values()), "a node has no frequency")
