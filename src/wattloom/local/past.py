"""What the next run of a journal has to know of a call beyond what the engine does.

Owns the joules of attempts that came to nothing, and the numbers by which workers know a call.
"""

import msgspec

from wattloom.energy.measured import Energy
from wattloom.local.job import Job
from wattloom.scheduling import events as ev
from wattloom.scheduling.state import TaskRecord


def past_of(record: TaskRecord, past: ev.Past, job: Job) -> ev.Past:
    """With the joules of this life, and of those before."""
    joules, spread, provenance = None, None, ""
    if job.past is not None and job.past.joules is not None:
        joules, spread, provenance = job.past.joules, job.past.spread_j or 0.0, job.past.provenance
    known = job.future._known_energy()
    if isinstance(known, Energy):
        joules, spread = (joules or 0.0) + known.joules, (spread or 0.0) + known.spread
        provenance = known.provenance
    place, share = (job.number, job.share) if record.on_a_node else (0, 0)
    return msgspec.structs.replace(
        past, joules=joules, spread_j=spread, provenance=provenance, place=place, share=share
    )
