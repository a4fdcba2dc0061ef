"""A log is read back as it was written, replays bit for bit, and says what is wrong with it."""

from pathlib import Path

import pytest

from wattloom.errors import LogError
from wattloom.history.digest import Digest
from wattloom.history.log import VERSION, Header, Log, LogWriter
from wattloom.policies.loading import load_policy
from wattloom.policies.marginal_energy import MarginalEnergy
from wattloom.policies.protocol import Policy
from wattloom.scheduling.engine import Engine
from wattloom.scheduling.instructions import AnyInstruction, Place
from wattloom.scheduling.state import Stage
from wattloom.testing.builders import ARM, MACHINES, SLEEPER, WITHOUT_CURVE, requirements, variant
from wattloom.testing.harness import Harness
from wattloom.testing.odd_policies import Hesitant, Lingering, Moody

HEADER = Header(VERSION, "marginal-energy", "test", seed=7)


def eventful(policy: Policy) -> Harness:
    """A little of everything."""
    h = Harness(policy).machine(*MACHINES)
    h.node("a", labels={"zone": "ü"}, devices={"gpu": 2}).node("b", SLEEPER).node("c", WITHOUT_CURVE).node("d", ARM)
    h.function(variants=(variant("gpu", devices={"gpu": 0.5}, seconds={"linear": 0.1}), variant("cpu")))
    h.cap(1e3)
    for number in range(12):
        h.time += 1 / 3
        needs = requirements(1.1, 12345)
        h.submit(f"t{number}", needs=needs, priority=number % 3, retries=1, idempotent=number % 2 == 0)
    h.cap(None)
    h.submit("after", after=("t0", "t1"))
    h.pass_time(100.0)
    for number, leave in enumerate(("finish", "fail", "fail_infrastructure", "place_failed", "cancel")):
        if h.where(f"t{number}") and h.record(f"t{number}").stage >= Stage.PLACED:
            getattr(h, leave)(f"t{number}")
    h.reading("a", 1 / 7, {"t5": 0.1 + 0.2})
    h.lose("a")
    h.pass_time(1000.0)
    return h


def write(path: Path, h: Harness) -> Log:
    with path.open("wb") as file:
        writer = LogWriter(file, HEADER)
        for event, instructions in h.recorded:
            writer.write(event, instructions)
    return Log(path)


@pytest.mark.parametrize("policy", [MarginalEnergy, Lingering, Hesitant, Moody])
def test_a_log_is_read_back_as_it_was_written(tmp_path: Path, policy: type[Policy]) -> None:
    h = eventful(policy())
    log = write(tmp_path / "log", h)
    assert log.header == HEADER
    written = [record for event, instructions in h.recorded for record in (event, *instructions)]
    assert list(log.records()) == written
    assert list(log.events()) == [event for event, _ in h.recorded]


@pytest.mark.parametrize("policy", [MarginalEnergy, Lingering, Hesitant, Moody])
def test_a_log_replays_to_the_same_instructions_bit_for_bit(tmp_path: Path, policy: type[Policy]) -> None:
    h = eventful(policy())
    first, second = tmp_path / "first", tmp_path / "second"
    log = write(first, h)
    engine = Engine(policy())
    with second.open("wb") as file:
        writer = LogWriter(file, HEADER)
        for event in log.events():
            writer.write(event, engine.handle(event))
    assert first.read_bytes() == second.read_bytes()
    h.replay()


def test_a_torn_last_line_ends_the_log(tmp_path: Path) -> None:
    h = eventful(MarginalEnergy())
    path = tmp_path / "log"
    whole = list(write(path, h).records())
    path.write_bytes(path.read_bytes()[:-5])
    assert list(Log(path).records()) == whole[:-1]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, eventful(MarginalEnergy()))
    lines = path.read_bytes().split(b"\n")
    lines[3] = lines[3][:-4]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(LogError, match=":4:"):
        list(Log(path).records())


NO_RECORDS = [b'{"event":"party","time":1.0}\n', b'{"instruction":"dance"}\n', b"\xff\xfe\n", b"[]\n"]


@pytest.mark.parametrize("line", NO_RECORDS)
def test_a_line_that_is_no_record_is_an_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "log"
    write(path, Harness().node("a"))
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(LogError):
        list(Log(path).records())


def test_another_version_is_named_whatever_else_its_first_line_holds(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"wattloom_log":99,"policy":"p","backend":"b","colour":"blue"}\n')
    with pytest.raises(LogError, match="has format 99"):
        Log(path)


@pytest.mark.parametrize(
    ("version", "policy", "meant"),
    [
        (3, "marginal-energy", "marginal-energy:tdp=false,guarantee=1"),
        (1, "marginal-energy:guarantee=0.8", "marginal-energy:guarantee=0.8,tdp=false"),
        (3, "least-joules", "least-joules"),
        (VERSION, "marginal-energy", "marginal-energy"),
    ],
)
def test_a_log_names_its_policy_as_it_was_meant_when_it_was_written(
    tmp_path: Path, version: int, policy: str, meant: str
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"wattloom_log":%d,"policy":"%b","backend":"b"}\n' % (version, policy.encode()))
    assert Log(path).header.policy == meant
    load_policy(meant)


def test_what_a_policy_meant_does_not_change_with_the_next_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wattloom.history.log.VERSION", VERSION + 1)
    path = tmp_path / "log"
    path.write_bytes(b'{"wattloom_log":%d,"policy":"marginal-energy","backend":"b"}\n' % VERSION)
    assert Log(path).header.policy == "marginal-energy"


@pytest.mark.parametrize("text", [b"", b"hello\n", b"{}\n", b"[1]\n", b'{"wattloom_log":1}\n', b"\x00\xff\n"])
def test_what_is_not_a_log_is_said_not_to_be_one(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(text)
    with pytest.raises(LogError, match="not a Wattloom log"):
        Log(path)


def test_a_log_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="No such file"):
        Log(tmp_path / "nothing")
    with pytest.raises(LogError):
        Log(tmp_path)


def test_equal_placements_have_equal_digests_and_others_do_not() -> None:
    def digest(instructions: list[AnyInstruction]) -> str:
        found = Digest()
        for each in instructions:
            if isinstance(each, Place):
                found.add(each)
        return found.hex()

    one, other = eventful(MarginalEnergy()), eventful(MarginalEnergy())
    assert digest(one.instructions()) == digest(other.instructions())
    other.node("z")
    other.submit("one-more")
    assert digest(one.instructions()) != digest(other.instructions())
