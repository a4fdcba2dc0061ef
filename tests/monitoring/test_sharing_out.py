"""A host that shares out to its guests while its own meter fails: what is not known is not told as nothing."""

from pathlib import Path
from threading import Event

import msgspec
import pytest
from tests.metering.scripted import Scripted
from tests.monitoring.scripted import ScriptedCensus

from wattloom.metering.host_share import FILE, Shared
from wattloom.monitoring import sharing_out
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.sharing_out import share_out_to_guests
from wattloom.monitoring.snapshot import Snapshot


class Host:
    """A machine with one guest; the test acts after every look."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.meter, self.stop = folder, Scripted(), Event()
        self.census = ScriptedCensus()
        self.census.start(7, Place("/machine/web", vm="web"))
        self.shared: list[Shared] = []
        monkeypatch.setattr(sharing_out, "Census", lambda: self.census)

    def run(self, *acts: str) -> list[Shared]:
        left = list(acts)

        def told(seen: Snapshot, problems: list[str]) -> None:
            if (file := self.folder / "web" / FILE).exists():
                self.shared.append(msgspec.json.decode(file.read_bytes(), type=Shared))
            if not left:
                self.stop.set()
                return
            self.meter.epoch += left.pop(0) == "break"
            self.meter.joules += 5.0
            self.census.run(7, 0.02)

        share_out_to_guests(self.folder, meter=self.meter, every_s=0.02, stop=self.stop, told=told)
        return self.shared


def test_a_count_that_goes_on_is_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Host(tmp_path, monkeypatch).run("count", "count", "count", "count")
    assert len({each.run for each in found}) == 1
    assert found[-1].energy_uj > found[0].energy_uj


def test_after_time_that_is_not_known_guests_are_told_of_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Host(tmp_path, monkeypatch).run("count", "count", "break", "count", "count")
    assert len({each.run for each in found}) == 2
