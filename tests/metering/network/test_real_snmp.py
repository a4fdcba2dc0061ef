"""A real SNMP agent whose object is a file's content, asked by our own question."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import SOCK_DGRAM

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metering.network.programs import free_port, running, tool
from tests.metering.network.server import eventually

from wattloom.energy.forecast import Unknown
from wattloom.metering.pdu import PduSettings, PduSource
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Sample
from wattloom.metering.snmp import encode_oid, get_number, request, request_number, value
from wattloom.metering.source import SourceProblem

OBJECT = "1.3.6.1.4.1.53864.1"
COMMUNITY = "nobody-else"


class Agent:
    """A strip that shows tenths of watts, as whole numbers and as text."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port(SOCK_DGRAM)
        self.url = f"snmp://127.0.0.1:{self.port}"
        self.show("gauge", 2130)
        script = folder / "outlet"
        script.write_text(
            "while read -r word; do case $word in PING) echo PONG;; get) read -r oid; echo $oid; "
            f"cat {folder}/kind {folder}/value;; *) read -r oid; echo NONE;; esac; done\n"
        )
        (folder / "snmpd.conf").write_text(
            f"agentaddress udp:127.0.0.1:{self.port}\nrocommunity {COMMUNITY}\n"
            f"pass_persist .{OBJECT} /bin/sh {script}\n"
        )

    def show(self, kind: str, shown: object) -> None:
        (self.folder / "kind").write_text(f"{kind}\n")
        (self.folder / "value").write_text(f"{shown}\n")

    def get(self, community: str = COMMUNITY, oid: str = OBJECT + ".1") -> float:
        return get_number("127.0.0.1", self.port, community, oid, 77, 1.5)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    program = tool("snmpd", "snmpd", "/usr/sbin")
    folder = tmp_path_factory.mktemp("snmpd")
    made = Agent(folder)
    command = [
        program,
        "-f",
        "-Lf",
        str(folder / "log"),
        "-C",
        "-c",
        str(folder / "snmpd.conf"),
        "-p",
        str(folder / "pid"),
    ]
    own = os.environ | {"SNMP_PERSISTENT_DIR": str(folder), "MIBS": ""}
    with running(command, folder / "out", own):
        assert eventually(lambda: answers(made), 20.0), (folder / "log").read_text()
        yield made


def answers(agent: Agent, number: float = 2130.0) -> bool:
    try:
        return agent.get() == number
    except SourceProblem:
        return False


@pytest.mark.parametrize(
    ("kind", "shown", "read"),
    [
        ("gauge", 4_000_000_000, 4e9),
        ("integer", -5, -5.0),
        ("counter", 12, 12.0),
        ("counter64", 2**63 + 2**40, float(2**63 + 2**40)),
        ("string", "213.5 W", 213.5),
    ],
)
def test_every_kind_of_number_is_read(agent: Agent, kind: str, shown: object, read: float) -> None:
    agent.show(kind, shown)
    # On a busy machine the agent gives its script up now and then, and starts it again.
    assert eventually(lambda: answers(agent, read))


def test_a_strip_by_snmp_is_a_meter(agent: Agent) -> None:
    agent.show("gauge", 2130)
    meter = Polled(PduSource(PduSettings(agent.url, f"{OBJECT}.1", factor=0.1, community=COMMUNITY)))
    assert eventually(lambda: meter.available() is None)
    assert meter.quantity == "wall"
    first = meter.read(time.monotonic())
    time.sleep(0.3)
    assert meter.refresh(5.0)
    last = meter.read(time.monotonic())
    assert isinstance(first, Sample)
    assert isinstance(last, Sample)
    assert last.joules - first.joules == pytest.approx(213.0 * (last.time - first.time), rel=0.05)
    agent.show("gauge", 0)
    assert meter.refresh(5.0)
    assert isinstance(meter.read(time.monotonic()), Unknown)


def test_what_is_wrong_is_said_without_the_word_of_admission(agent: Agent) -> None:
    with pytest.raises(SourceProblem, match=r"is SNMP on there, and is pdu\.community right") as wrong:
        agent.get("top-secret")
    assert "top-secret" not in str(wrong.value)
    with pytest.raises(SourceProblem, match="no such"):
        agent.get(oid="1.3.6.1.4.1.99999.1")
    with pytest.raises(SourceProblem, match="nobody speaks SNMP"):
        get_number("127.0.0.1", free_port(SOCK_DGRAM), COMMUNITY, OBJECT, 1, 1.0)


def test_an_object_that_is_no_number_is_refused_before_anybody_is_asked() -> None:
    assert "pdu.path" in (PduSource(PduSettings("snmp://strip.example", "watts")).missing() or "")
    assert "PDU__PATH" in (PduSource(PduSettings("snmp://strip.example")).missing() or "")


def test_numbers_of_objects_are_written_with_seven_bits_in_a_byte() -> None:
    assert encode_oid("1.3.6.1.4.1.53864").hex() == "2b0601040183a468"


@given(st.binary(max_size=200))
def test_no_answer_whatsoever_does_more_than_raise(answer: bytes) -> None:
    for look in (request_number, lambda data: value(data, "strip")):
        with suppress(SourceProblem, ValueError, IndexError):
            look(answer)


@given(st.text(max_size=200), st.integers(0, 2**31 - 1))
def test_the_number_of_a_question_is_found_again(community: str, number: int) -> None:
    assert request_number(request(community, OBJECT, number)) == number
