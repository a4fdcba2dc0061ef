"""From the host's meter into a real virtual machine and there to single processes."""

import json
import os
import sys
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.beds.guest import SHARE, Guest, problem

from wattloom.metering.host_share import FILE
from wattloom.monitoring.sharing_out import share_out_to_guests
from wattloom.monitoring.snapshot import Snapshot

KERNELS = Path(os.environ.get("WATTLOOM_GUEST_KERNEL", Path(__file__).parents[2] / ".tools" / "guest"))

JOB = f"""
{sys.executable} - <<'END'
import json, subprocess, sys, time
from pathlib import Path
from wattloom.metering.host_share import HostShare
from wattloom.machines.this_machine import this_machine
from wattloom.monitoring.census import Census
from wattloom.monitoring.accountant import Accountant

meter = HostShare(Path("{SHARE}"))
accountant = Accountant(Census(), meter, this_machine())
print(json.dumps({{"available": meter.available()}}))
accountant.sample(time.monotonic())
time.sleep(1.0)
accountant.sample(time.monotonic())
burning = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
began, first = time.monotonic(), None
while time.monotonic() < began + 6.0:
    time.sleep(0.2)
    seen = accountant.sample(time.monotonic())
    mine = [each for each in seen.processes if each.pid == burning.pid and each.watts > 0.0]
    first = time.monotonic() - began if mine and first is None else first
burning.kill()
print(json.dumps({{
    "problem": seen.problem, "meter_j": seen.totals.meter_j, "latency_s": first,
    "sum_j": seen.totals.entities_j + seen.totals.idle_j + seen.totals.overhead_j + seen.totals.unattributed_j,
    "burning_j": sum(each.joules for each in seen.processes if each.pid == burning.pid),
}}))
END
"""


@pytest.mark.slow
def test_a_guest_reads_its_share_and_splits_it_over_its_own_processes(tmp_path: Path) -> None:
    missing = problem(KERNELS)
    if missing is not None:
        pytest.skip(f"NO GUEST WAS BOOTED, so host to guest is not tested here: {missing}")
    shares, stop, looks = tmp_path / "vms", Event(), []
    (shares / "web").mkdir(parents=True)

    def told(seen: Snapshot, problems: list[str]) -> None:
        assert not problems
        looks.append(seen)

    exporting = Thread(
        target=share_out_to_guests,
        args=(shares,),
        kwargs={"meter": "estimate", "every_s": 0.5, "stop": stop, "told": told},
    )
    exporting.start()
    try:
        with Guest("web", tmp_path, KERNELS, shares / "web", JOB) as guest:
            said = [line.text for line in guest.lines(240.0)]
    finally:
        stop.set()
        exporting.join()
    found: dict[str, Any] = {}
    for text in said:
        if text.startswith("{"):
            found |= json.loads(text)
    assert found.get("available", "nothing") is None, said
    assert found["problem"] == ""
    assert found["meter_j"] > 0.0
    assert found["sum_j"] == pytest.approx(found["meter_j"], abs=1e-6)
    assert found["burning_j"] > 0.5 * found["meter_j"]
    assert found["latency_s"] < 5.0
    on_host = max(vm.joules for seen in looks for vm in seen.vms if vm.name == "web")
    assert found["meter_j"] <= on_host
    assert not (shares / "web" / FILE).exists()
