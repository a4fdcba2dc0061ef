"""Levels of two runs stand in one file only if machine, meter and method are the same."""

from pathlib import Path

import msgspec
import pytest
from tests.profiling.made import cpu_profile

from wattloom.errors import InputError
from wattloom.machines.profile_file import CpuProfile, encode_profile
from wattloom.profiling.resuming import beginning


def begin(path: Path, now: CpuProfile, fresh: bool = False) -> CpuProfile:
    return beginning(path, now.name, "2026-11-17T08:00:00+00:00", now.machine, now.meter, now.method, fresh)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "p.json").write_bytes(encode_profile(cpu_profile()))
    return tmp_path / "p.json"


def test_where_there_is_no_file_all_begins(tmp_path: Path) -> None:
    new = begin(tmp_path / "p.json", cpu_profile())
    assert (new.levels, new.idle, new.began) == ((), (), "2026-11-17T08:00:00+00:00")


def test_the_same_goes_on(file: Path) -> None:
    assert begin(file, cpu_profile()) == cpu_profile()


def test_a_kernel_that_keeps_more_memory_to_itself_changes_nothing(file: Path) -> None:
    now = cpu_profile()
    more = msgspec.structs.replace(now.machine, memory=now.machine.memory - 4096)
    assert begin(file, msgspec.structs.replace(now, machine=more)).levels == now.levels


@pytest.mark.parametrize(
    ("part", "field", "value", "words"),
    [
        ("method", "seconds", 5.0, "another method: seconds was 10.0 and is 5.0"),
        ("method", "tool", "stress-ng 9", "another method: tool was 'stress-ng 0.15.06"),
        ("meter", "name", "pdu", "another meter: name was 'powercap' and is 'pdu'"),
        ("meter", "quantity", "wall", "another meter: quantity was 'package' and is 'wall'"),
        ("machine", "kernel", "2.6", "another machine: kernel was '' and is '2.6'"),
        ("machine", "boost", False, "another machine: boost was None and is False"),
        ("machine", "machine_id", "x", "another machine: machine_id"),
    ],
)
def test_what_differs_is_named_and_nothing_is_lost(
    file: Path, part: str, field: str, value: object, words: str
) -> None:
    kept = file.read_bytes()
    now = cpu_profile()
    other = msgspec.structs.replace(getattr(now, part), **{field: value})
    with pytest.raises(InputError, match=f"{words}.*--fresh begins anew, --output FILE keeps both"):
        begin(file, msgspec.structs.replace(now, **{part: other}))
    assert file.read_bytes() == kept


def test_fresh_begins_anew_whatever_the_file_holds(file: Path) -> None:
    assert begin(file, cpu_profile(), fresh=True).levels == ()
    file.write_bytes(b"nonsense")
    assert begin(file, cpu_profile(), fresh=True).levels == ()
    with pytest.raises(InputError, match="is not a profile"):
        begin(file, cpu_profile())


def test_an_estimate_does_not_take_the_place_of_a_measurement(file: Path) -> None:
    with pytest.raises(InputError, match="is measured and would be replaced by figures that are estimated"):
        begin(file, cpu_profile(provenance="estimated"), fresh=True)
