"""Large arguments go to files and come back as they were, without a copy on the way."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattloom.journal.spool import ALIGNMENT, Spool, map_file


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "work.journal.spool")


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_buffers_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, buffers: list[bytes]) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool"))
    size = spool.write("t1", buffers)
    assert size == spool.path("t1").stat().st_size
    assert [bytes(view) for view in spool.map("t1")] == buffers


def test_many_and_large_buffers_come_back_too(spool: Spool) -> None:
    buffers = [bytes([number % 256]) * number for number in range(2000)] + [os.urandom(5_000_000)]
    spool.write("t1", buffers)
    assert [bytes(view) for view in spool.map("t1")] == buffers


def test_any_kind_of_buffer_is_taken_byte_for_byte(spool: Spool) -> None:
    words = memoryview(bytearray(range(64))).cast("Q")
    spool.write("t1", [words, bytearray(b"abc")])
    assert [bytes(view) for view in spool.map("t1")] == [bytes(range(64)), b"abc"]


def test_buffers_begin_where_arrays_like_it(spool: Spool) -> None:
    spool.write("t1", [b"a", b"b" * 65, b"c" * 64, b""])
    whole = spool.path("t1").read_bytes()
    for letter in (b"a", b"b", b"c"):
        assert whole.index(letter) % ALIGNMENT == 0


def test_a_worker_may_change_its_arguments_and_the_file_stays(spool: Spool) -> None:
    spool.write("t1", [b"abc"])
    (view,) = map_file(spool.path("t1"))
    view[0] = ord("x")
    assert bytes(view) == b"xbc"
    assert [bytes(each) for each in spool.map("t1")] == [b"abc"]


def test_a_file_deleted_while_it_is_mapped_can_be_read_to_its_end(spool: Spool) -> None:
    spool.write("t1", [b"abc" * 10_000])
    (view,) = spool.map("t1")
    spool.delete("t1")
    spool.delete("t1")
    assert not spool.path("t1").exists()
    assert bytes(view) == b"abc" * 10_000


def test_leftovers_are_swept_and_what_is_wanted_stays(spool: Spool) -> None:
    assert spool.sweep(()) == 0
    for name in ("t1", "t2", "t3"):
        spool.write(name, [b"x"])
    (spool.folder / "t4.part").write_bytes(b"torn")
    assert spool.sweep({"t2"}) == 3
    assert [entry.name for entry in spool.folder.iterdir()] == ["t2"]


def test_a_file_is_there_whole_or_not_at_all(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.write("t1", [b"old"])

    def fails(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "writev", fails)
        with pytest.raises(Exception, match="Input/output error"):
            spool.write("t1", [b"new"])
    assert [entry.name for entry in spool.folder.iterdir()] == ["t1"]
    assert [bytes(view) for view in spool.map("t1")] == [b"old"]


@pytest.mark.parametrize("name", ["", ".", "..", "../t1", "a/b", "t1.part", "a\x00b", "x" * 300])
def test_what_cannot_be_a_files_name_is_refused(spool: Spool, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        spool.write(name, [b"x"])
