"""The real ipmitool, over the network, against a simulated management controller (ipmi_sim with DCMI added)."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from socket import SOCK_DGRAM

import pytest
from tests.metering.network.programs import free_port, running, tool
from tests.metering.network.server import eventually

from wattloom.energy.forecast import Unknown
from wattloom.metering.ipmi import IpmiSettings, IpmiSource, watts
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Sample
from wattloom.metering.source import SourceProblem

LAN = """name "wattloom"
set_working_mc 0x20
startlan 1
addr 127.0.0.1 {port}
priv_limit admin
allowed_auths_admin md5
guid a123456789abcdefa123456789abcdef
endlan
user 2 true "admin" "secret" admin 10 md5
loadlib "{folder}/dcmi.so" "{folder}/watts"
"""
MACHINE = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
mc_enable 0x20
"""


class Controller:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port(SOCK_DGRAM)
        self.show(213)

    def show(self, shown: object) -> None:
        (self.folder / "watts").write_text(f"{shown}\n")

    def settings(self, password: str = "secret") -> IpmiSettings:
        return IpmiSettings(True, f"127.0.0.1:{self.port}", "admin", password, cipher_suite=3)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    tool("ipmitool", "ipmitool")
    simulator, compiler = tool("ipmi_sim", "openipmi"), tool("gcc", "gcc")
    if not Path("/usr/include/OpenIPMI/mcserv.h").exists():
        pytest.skip("NOT TRIED: OpenIPMI's headers are missing; get them with: sudo apt install libopenipmi-dev")
    folder = tmp_path_factory.mktemp("ipmi")
    source = Path(__file__).with_name("dcmi.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "dcmi.so"), str(source)], check=True)
    made = Controller(folder)
    (folder / "lan.conf").write_text(LAN.format(port=made.port, folder=folder))
    (folder / "machine").write_text(MACHINE)
    (folder / "state").mkdir()
    command = [simulator, "-c", f"{folder}/lan.conf", "-f", f"{folder}/machine", "-s", f"{folder}/state", "-n"]
    with running(command, folder / "log"):
        meter = Polled(IpmiSource(made.settings()))
        assert eventually(lambda: meter.available() is None, 20.0), (meter.available(), (folder / "log").read_text())
        yield made


def test_the_real_tool_reads_a_controller_over_the_network(controller: Controller) -> None:
    controller.show(213)
    meter = Polled(IpmiSource(controller.settings()))
    assert meter.available() is None
    assert (meter.quantity, meter.provenance) == ("wall", "measured")
    first = meter.read(time.monotonic())
    assert isinstance(first, Sample)
    time.sleep(0.2)
    assert meter.refresh(10.0)
    last = meter.read(time.monotonic())
    assert isinstance(last, Sample)
    assert last.joules - first.joules == pytest.approx(213.0 * (last.time - first.time), rel=0.05)


def test_a_controller_without_a_reading_is_unknown(controller: Controller) -> None:
    meter = Polled(IpmiSource(controller.settings()))
    controller.show(0)
    assert "no power reading" in (meter.available() or "")
    controller.show("nothing")
    assert "does not know the DCMI power reading" in (meter.available() or "")
    assert isinstance(meter.read(time.monotonic()), Unknown)
    controller.show(213)


def test_the_password_is_neither_among_the_arguments_nor_in_a_message(controller: Controller) -> None:
    source = IpmiSource(controller.settings("not-the-right-one"))
    assert "not-the-right-one" not in " ".join(source.command())
    with pytest.raises(SourceProblem) as refused:
        source.ask()
    assert "user and password" in str(refused.value)
    assert "not-the-right-one" not in str(refused.value)


def test_without_a_controller_the_real_tool_says_what_is_missing() -> None:
    tool("ipmitool", "ipmitool")
    if any(Path(place).exists() for place in ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")):
        pytest.skip("NOT TRIED: this machine has a management controller")
    problem = Polled(IpmiSource(IpmiSettings(True))).available() or ""
    assert "there is no /dev/ipmi0" in problem
    assert "modprobe ipmi_si ipmi_devintf" in problem


@pytest.mark.parametrize(
    ("output", "errors", "words"),
    [
        ("", "Could not open device at /dev/ipmi0: Permission denied", "root only"),
        ("Instantaneous power reading:  90 Watts\nPower reading state is:  deactivated", "", "power activate"),
        ("", "", "says nothing"),
        ("\x00\xff???", "", "gives no power reading"),
    ],
)
def test_what_the_tool_says_is_put_into_words(output: str, errors: str, words: str) -> None:
    with pytest.raises(SourceProblem, match=words):
        watts(output, errors)


def test_a_tool_that_is_missing_is_named_with_its_package() -> None:
    assert "apt install ipmitool" in (Polled(IpmiSource(IpmiSettings(True), tool="no-such-ipmitool")).available() or "")


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    tool_path = tmp_path / "ipmitool"
    tool_path.write_text("#!/bin/sh\nexec sleep 600\n")
    tool_path.chmod(0o755)
    source = IpmiSource(IpmiSettings(True), tool=str(tool_path))
    source.timeout_s = 0.3
    with pytest.raises(SourceProblem, match="has not answered"):
        source.ask()
