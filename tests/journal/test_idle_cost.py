"""Who bears idle joules: nobody, the functions by what they used, or by what they asked for."""

from pathlib import Path

import msgspec
import pytest
from tests.journal.conftest import Opener

from wattloom.attribution.idle_policy import IdlePolicy
from wattloom.energy.used import Used
from wattloom.history.functions import function_costs
from wattloom.scheduling import events as ev
from wattloom.testing.harness import Harness


def journal_with(path: Path, open_journal: Opener, *usages: ev.UsageArrived) -> Path:
    """Two functions that each finished once, and what the meter said."""
    h = Harness().machine().node("a").function("heavy").function("light")
    for name in ("heavy", "light"):
        h.submit(name, function=name)
        h.start(name)
        h.finish(name, seconds=1.0)
    records = [record for event, instructions in h.recorded for record in (event, *instructions)]
    journal = open_journal()
    journal.append(b"".join(msgspec.json.encode(record) + b"\n" for record in (*records, *usages)))
    journal.commit()
    return path


def worked(idle_j: float = 20.0) -> ev.UsageArrived:
    used = {
        "heavy": Used(calls=1, seconds=1.0, joules=30.0, metered=1, core_s=1.0),
        "light": Used(calls=1, seconds=1.0, joules=10.0, metered=1, core_s=1.0),
    }
    return ev.UsageArrived(90.0, "a", 2.0, 70.0, idle_j, 10.0, functions=used)


def borne(path: Path, policy: IdlePolicy) -> dict[str, float]:
    return {cost.function: cost.idle_j for cost in function_costs([path], policy)}


def test_by_default_idle_is_nobodys(path: Path, open_journal: Opener) -> None:
    assert borne(journal_with(path, open_journal, worked()), "node") == {"heavy": 0.0, "light": 0.0}


def test_pro_rata_goes_by_joules_and_others_bear_their_part(path: Path, open_journal: Opener) -> None:
    found = borne(journal_with(path, open_journal, worked()), "pro-rata")
    assert found == pytest.approx({"heavy": 12.0, "light": 4.0}, abs=1e-6)


def test_reserved_goes_by_the_cores_asked_for(path: Path, open_journal: Opener) -> None:
    found = borne(journal_with(path, open_journal, worked()), "reserved")
    assert found["heavy"] == found["light"] > 0.0
    assert sum(found.values()) < 20.0


def test_a_machine_that_waits_is_nobodys(path: Path, open_journal: Opener) -> None:
    waited = ev.UsageArrived(95.0, "a", 3600.0, 36_000.0, 36_000.0, 0.0)
    found = borne(journal_with(path, open_journal, worked(), waited), "pro-rata")
    assert found == pytest.approx({"heavy": 12.0, "light": 4.0}, abs=1e-6)
