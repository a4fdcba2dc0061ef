"""The machine's management controller by IPMI: the power reading of DCMI, with ipmitool.

Owns how ipmitool is called and what its words mean. The password goes by the environment: arguments can be seen by all
users of a machine.
"""

import os
import re
from typing import Final

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile
from wattloom.metering.configured import not_set_up, withheld
from wattloom.metering.http_source import limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import WALL_W, Answer, SourceProblem, Watts
from wattloom.setting_groups import Count

TOOL: Final = "ipmitool"
_WATTS: Final = re.compile(r"Instantaneous power reading:\s*(\d+) Watts", re.IGNORECASE)
_STATE: Final = re.compile(r"Power reading state is:\s*(\S+)", re.IGNORECASE)


class IpmiSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machine's management controller by IPMI (DCMI power reading), with ipmitool."""

    enabled: bool = False
    """Ask it at all: a controller that is asked often may become slow."""
    host: str = ""
    """Its address, with a port if it is not 623. Empty: this machine's own, through the kernel."""
    user: str = ""
    """Who asks, over the network."""
    password: str = ""
    """Best given by the environment, with the address: WATTLOOM_IPMI__PASSWORD."""
    cipher_suite: Count = 0
    """Over the network: older controllers need 3. 0: what ipmitool and the controller agree on."""


class IpmiSource:
    """`ipmitool dcmi power reading`, again and again."""

    name = "ipmi"
    summary = "the management controller by IPMI (DCMI power reading)"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    least_s = 2.0
    """Controllers are small computers, and most have a new figure once a second at best."""
    timeout_s = 5.0
    limits = limits(WALL_W)

    def __init__(self, settings: IpmiSettings, tool: str = TOOL) -> None:
        self._settings = settings
        self._tool = tool

    def missing(self) -> str | None:
        if not self._settings.enabled:
            return not_set_up("ipmi", "enabled", "true")
        return withheld("ipmi") or None

    def command(self) -> list[str]:
        host, colon, port = self._settings.host.rpartition(":")
        if not colon or not port.isdigit() or host.count(":"):  # no port, or an address of IPv6
            host, port = self._settings.host, ""
        reach = ["-I", "lanplus", "-H", host, "-U", self._settings.user, "-E", "-N", "1", "-R", "2"] if host else []
        suite = self._settings.cipher_suite
        options = (["-p", port] if port else []) + (["-C", str(suite)] if host and suite else [])
        return [self._tool, *reach, *options, "dcmi", "power", "reading"]

    def ask(self) -> list[Answer]:
        import subprocess

        password = {"IPMI_PASSWORD": self._settings.password, "IPMITOOL_PASSWORD": self._settings.password}
        environment = os.environ | {"LC_ALL": "C"} | (password if self._settings.host else {})
        try:
            ended = subprocess.run(
                self.command(),
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout_s,
                check=False,
            )
        except FileNotFoundError as problem:
            raise SourceProblem(f"there is no program {self._tool}\nsudo apt install ipmitool") from problem
        except subprocess.TimeoutExpired as problem:
            raise SourceProblem(f"ipmitool: the controller has not answered within {self.timeout_s:g} s") from problem
        except OSError as problem:
            raise SourceProblem(f"{self._tool} cannot be started: {problem.strerror}") from problem
        return [Watts(watts(ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace")))]

    def close(self) -> None:
        """Nothing stays open."""

    def forget(self) -> None:
        """Nothing stays open."""


def watts(output: str, errors: str) -> float:
    """The reading in ipmitool's words."""
    found, state = _WATTS.search(output), _STATE.search(output)
    if found is None:
        raise SourceProblem(_in_words(errors or output))
    if state is not None and state[1].lower() != "activated":
        raise SourceProblem("the controller does not measure power now: ipmitool dcmi power activate")
    if int(found[1]) == 0:
        raise SourceProblem("the controller says 0 W: it has no power reading")
    return float(found[1])


def _in_words(errors: str) -> str:
    text = " ".join(errors.split())
    if "Permission denied" in text:
        return (
            "/dev/ipmi0 may be opened by root only\nuntil the next boot: sudo chmod a+rw /dev/ipmi0\nfor good, "
            'a udev rule: KERNEL=="ipmi*", GROUP="ipmi", MODE="0660" (whoever may, can switch the machine off)'
        )
    if "Could not open device" in text:
        return (
            "there is no /dev/ipmi0: this machine has no management controller, or its modules are not loaded\n"
            "sudo modprobe ipmi_si ipmi_devintf\nfor one over the network, set ipmi.host"
        )
    if "Unable to establish" in text or "Error in open session" in text:
        return (
            "the controller at ipmi.host does not answer, or not to this user and password\n"
            "older ones need ipmi.cipher_suite = 3"
        )
    if "DCMI request failed" in text or "Invalid command" in text:
        return "the controller does not know the DCMI power reading: try Redfish"
    return f"ipmitool gives no power reading: {text[:200] or 'it says nothing'}"


def for_machine(profile: MachineProfile, settings: IpmiSettings) -> Polled:
    """The entry point."""
    return Polled(IpmiSource(settings))
