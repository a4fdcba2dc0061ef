"""On a host: watches its virtual machines and writes each one's share until it is told to stop.

Owns the loop, its clock, and what is said when a share cannot be written.
"""

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Literal

from wattloom.attribution.idle_policy import IdlePolicy
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter
from wattloom.metering.count import seconds_asleep
from wattloom.metering.host_share import Shared
from wattloom.metering.patient_meter import PatientMeter
from wattloom.metering.protocol import Meter
from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.census import Census
from wattloom.monitoring.snapshot import Snapshot
from wattloom.monitoring.vm_shares import VmShares


def share_out_to_guests(
    folder: Path,
    *,
    meter: str | Meter = "auto",
    every_s: float = 1.0,
    idle: IdlePolicy = "node",
    stop: Event | None = None,
    told: Callable[[Snapshot, list[str]], None] | None = None,
) -> None:
    """Write what each virtual machine used, again and again. `told` hears of every look, and of what went wrong."""
    here = this_machine()
    used = choose_meter(here, "" if meter == "auto" else meter) if isinstance(meter, str) else meter
    of: Literal["wall", "package"] = "wall" if used.quantity == "wall" else "package"
    like = Shared(
        "", uuid.uuid4().hex, 0, 0.0, every_s, provenance=used.provenance, of=of, error=used.model_error, idle=idle
    )
    accountant, shares = Accountant(Census(), PatientMeter(used), here, policy=idle), VmShares(folder, like)
    over, unknown_s = stop or Event(), 0.0
    try:
        while True:
            began = time.monotonic()
            seen = accountant.sample(began, seconds_asleep())
            if seen.totals.unknown_s > unknown_s:
                unknown_s = seen.totals.unknown_s
                shares.begin_anew(uuid.uuid4().hex)
            problems = shares.write(_joules(seen), began - seen.waiting_s, time.time()) if seen.last.seconds else []
            if told is not None:
                told(seen, problems)
            if over.wait(max(began + every_s - time.monotonic(), 0.0)):
                return
    finally:
        shares.close()


def _joules(seen: Snapshot) -> dict[str, float]:
    return {vm.name: vm.joules for vm in seen.vms if not vm.ended}
