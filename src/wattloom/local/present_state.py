"""How the calls of a run stand, as events that tell the engine of the next run the same.

Owns which events these are and their order. Nodes, functions and what was learned of them are told before, as at every
beginning. Not told: back-offs, how long somebody was overtaken, and what has ended.
"""

from collections.abc import Iterator, Mapping

import msgspec

from wattloom.energy.measured import Energy
from wattloom.local.job import Job
from wattloom.scheduling import events as ev
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.state import Stage, TaskRecord


def present_state(engine: Engine, jobs: Mapping[str, Job], now: float) -> list[ev.AnyEvent]:
    """Those on a node first, each share with all that stand behind; then those that wait, in order. No node may be
    waking."""
    records = sorted(engine.ledger.tasks.values(), key=lambda each: each.order[1])
    placed = [each for each in records if each.on_a_node]
    return [
        *_found(placed, jobs, now),
        *(ev.CancelRequested(now, each.name) for each in placed if each.stage == Stage.CANCELLING),
        *(_waiting(each, jobs[each.name], now) for each in records if not each.on_a_node),
    ]


def _found(placed: list[TaskRecord], jobs: Mapping[str, Job], now: float) -> Iterator[ev.AnyEvent]:
    for record in placed:
        if record.home is not None:
            yield _on_its_node(record, jobs[record.name], now)
            for behind in record.lease.behind.values() if record.lease is not None else ():
                yield _on_its_node(behind, jobs[behind.name], now, record.name)


def _on_its_node(record: TaskRecord, job: Job, now: float, behind: str = "") -> ev.AnyEvent:
    past = past_of(record, job, job.number, job.share)
    return ev.TaskFound(now, record.task, record.node, record.attempt, record.started, past, behind)


def _waiting(record: TaskRecord, job: Job, now: float) -> ev.AnyEvent:
    """What it came after and has finished is not known any more."""
    after = tuple(name for name in record.task.after if name in record.after)
    return ev.TaskSubmitted(now, msgspec.structs.replace(record.task, after=after), past_of(record, job))


def past_of(record: TaskRecord, job: Job, place: int = 0, share: int = 0) -> ev.Past:
    """With the joules of attempts that came to nothing: in this life, and in those before."""
    joules, spread, provenance = None, None, ""
    if job.past is not None and job.past.joules is not None:
        joules, spread, provenance = job.past.joules, job.past.spread_j or 0.0, job.past.provenance
    known = job.future._known_energy()
    if isinstance(known, Energy):
        joules, spread = (joules or 0.0) + known.joules, (spread or 0.0) + known.spread
        provenance = known.provenance
    return ev.Past(
        attempts=record.attempt,
        failures=record.failures,
        losses=record.losses,
        submitted=record.submitted,
        joules=joules,
        spread_j=spread,
        provenance=provenance,
        place=place,
        share=share,
    )
