"""Which settings there are, in groups: one class for each, with a line under every setting.

Owns their names, defaults and bounds. Where values come from is `settings`'s business. A meter that must be told where
its source is has a group of its own name; without an address it is off.
"""

from typing import Annotated, Literal

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class Local(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Running on this machine."""

    journal: str = ""
    """Path of the journal. Empty: one for each program, in the user's state folder."""
    durability: Literal["process", "machine"] = "process"
    """What accepted tasks survive: the end of the process, or also that of the machine (each commit then waits for the
    disk)."""
    retention_days: Positive = 14.0
    """Runs that ended longer ago are removed from the journal."""
    retention_megabytes: Positive = 512.0
    """The oldest runs are removed from a journal that is larger."""
    keys: str = ""
    """Path of the file of idempotency keys, which several programs may share. Empty: beside the program's journal."""
    key_days: Positive = 14.0
    """So long at least the result of a call with a key is given again, however large the journal is."""
    idle_timeout_s: Positive = 60.0
    """A worker with nothing to do for so long is ended."""
    max_workers: Count = 0
    """Most worker processes at a time. 0: as many as there are cores to use."""
    policy: str = "least-joules"
    """Which policy decides, as `--policy` takes it."""


class Prometheus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Any expression that a Prometheus server can answer."""

    url: str = ""
    """Address of the server, as `http://localhost:9090`."""
    expression: str = ""
    """What to ask: a single number, in watts or in joules that only rise."""
    unit: Literal["watts", "joules"] = "watts"
    """What the number is."""
    quantity: Literal["wall", "package"] = "wall"
    """What it is of: the plug, or the processors with their memory."""
    provenance: Literal["measured", "modelled", "estimated"] = "measured"
    """How those know it who gave it to the server."""
    token: str = ""
    """A bearer token, if the server wants one. Best given by the environment, with the address:
    WATTLOOM_PROMETHEUS__TOKEN."""
    certificate: str = ""
    """A file with the certificate to trust; `any`: trust every one."""
    clear_text: bool = False
    """Send credentials where everybody on the way can read them: over plain http to another machine."""


class Scaphandre(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scaphandre's own exporter."""

    url: str = ""
    """Address of its metrics, as `http://localhost:8080/metrics`."""


class Kepler(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kepler's own exporter, before and after its change of names."""

    url: str = ""
    """Address of its metrics, as `http://localhost:28282/metrics`."""
    node: str = ""
    """Which node, where one address shows several. Empty: the only one."""
    quantity: Literal["package", "wall"] = "package"
    """Processors with their memory, or the whole platform where Kepler knows that."""


class Powerapi(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Power reports of PowerAPI's formulas."""

    reports: str = ""
    """A file of power reports, one JSON object in a line; or the address of its Prometheus output."""
    target: str = "rapl"
    """Whose power is the machine's own in them."""


class Pcp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Performance Co-Pilot, through pmproxy."""

    url: str = ""
    """Address of pmproxy, as `http://localhost:44322`."""
    metric: str = "denki.rapl.sysfs"
    """Which metric: of `denki.rapl` packages and memory are added up (older versions call it `denki.rapl.raw`, which is
    found by itself); `nvidia.energy` is of the accelerators."""
    host: str = ""
    """Whose metrics pmproxy is to fetch. Empty: those of the machine it runs on."""


class Ipmi(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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


class Redfish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machine's management controller by Redfish."""

    url: str = ""
    """Its address, as `https://bmc.example`."""
    chassis: str = ""
    """Which chassis. Empty: the only one."""
    user: str = ""
    """Who asks."""
    password: str = ""
    """Best given by the environment, with the address: WATTLOOM_REDFISH__PASSWORD."""
    certificate: str = ""
    """A file with the certificate to trust; `any`: trust every one."""
    clear_text: bool = False
    """Send credentials where everybody on the way can read them: over plain http to another machine."""


class Pdu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A power strip that tells what an outlet draws, by HTTP or SNMP."""

    url: str = ""
    """Address of a page with the watts in it, or of an SNMP agent as `snmp://strip.example`."""
    path: str = ""
    """Where in the page: names and numbers with dots for JSON, as `outlets.0.watts`; for SNMP the object's number."""
    unit: Literal["watts", "joules"] = "watts"
    """What the number is: power, or energy that only rises."""
    factor: Positive = 1.0
    """What the number must be multiplied with to be watts or joules: 3600000 for kilowatt-hours."""
    community: str = "public"
    """SNMP's word of admission."""
    user: str = ""
    """Who asks, over HTTP."""
    password: str = ""
    """Best given by the environment, with the address: WATTLOOM_PDU__PASSWORD."""
    certificate: str = ""
    """A file with the certificate to trust; `any`: trust every one."""
    clear_text: bool = False
    """Send credentials where everybody on the way can read them: over plain http, or as SNMP's community, to another
    machine."""


class HostShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What this virtual machine's host has written for it."""

    path: str = ""
    """The shared folder. Empty: /var/wattloom, else /var/scaphandre."""


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Power that was written down, played back."""

    path: str = ""
    """A file with `time_s,watts` or `time_s,joules`."""
    quantity: Literal["wall", "package"] = "wall"
    """What it is of."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All groups."""

    local: Local = Local()
    prometheus: Prometheus = Prometheus()
    scaphandre: Scaphandre = Scaphandre()
    kepler: Kepler = Kepler()
    powerapi: Powerapi = Powerapi()
    pcp: Pcp = Pcp()
    ipmi: Ipmi = Ipmi()
    redfish: Redfish = Redfish()
    pdu: Pdu = Pdu()
    host_share: HostShare = HostShare()
    recording: Recording = Recording()
