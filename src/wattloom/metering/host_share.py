"""What the host of this virtual machine has written down as its share.

Owns how a shared folder is read: ours (one JSON file with name, range and time), or Scaphandre's tree (a bare counter).
The two clocks differ; how much is learned from the readings that came through fastest. Who writes it is `monitoring`'s
business.
"""

import os
from collections import deque
from math import hypot
from pathlib import Path
from typing import Final, Literal

import msgspec

from wattloom.energy.forecast import Provenance, Unknown
from wattloom.files import UNREADABLE, read_bytes
from wattloom.machines.curves import FUNCTIONS_DIFFER
from wattloom.machines.profile import MachineProfile
from wattloom.metering.count import Limits
from wattloom.metering.counters import Counters, Raw
from wattloom.metering.protocol import Quantity, Sample
from wattloom.metering.setup_hints import missing

FILE: Final = "wattloom.json"
COUNTER: Final = Path("intel-rapl:0") / "energy_uj"
RANGE_UJ: Final = (1 << 53) - 1
"""Ours starts again at 0 after this: a whole number that every reader of JSON can hold."""
MOST_W: Final = 10_000.0
MOST_BYTES: Final = 1 << 20
STALE_S: Final = 15.0
"""Older than this a share is not believed."""
STEP_UJ: Final = 1000
"""What is left open of when exactly the host looked, for a guest of some watts."""
SAME_S: Final = 1e-6
OURS, SCAPHANDRES = Path("/var/wattloom"), Path("/var/scaphandre")


class HostShareSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What this virtual machine's host has written for it."""

    path: str = ""
    """The shared folder. Empty: /var/wattloom, else /var/scaphandre."""


class Shared(msgspec.Struct, frozen=True):
    """What a host writes for one guest."""

    guest: str
    run: str
    """Changes when the host's count begins anew: what lies between two runs is not known."""
    energy_uj: int
    """Cumulative, of this guest."""
    time_s: float
    """On the host's clock that never jumps."""
    every_s: float
    """How often the host writes."""
    version: int = 1
    range_uj: int = RANGE_UJ
    unix_s: float = 0.0
    provenance: Provenance = "measured"
    of: Literal["wall", "package"] = "package"
    """What of the host is shared out."""
    error: float = FUNCTIONS_DIFFER
    """How far the share may be off: one relative standard deviation."""
    idle: str = "node"
    """What became of the host's idle joules: stayed there, or were shared out too."""


class HostShare:
    """The joules that a host ascribes to this virtual machine."""

    name = "host-share"
    summary = "what this virtual machine's host has written down as its share"
    quantity: Quantity = "share"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else _default()
        self._counters: Counters[str] = Counters(Limits(MOST_W, late_s=5.0, still_s=STALE_S))
        self._run = ""
        self._ahead: deque[float] = deque(maxlen=120)
        """How far our clock was ahead of the host's, when each reading was first seen."""
        self._last_s = -1.0
        first = self._look()
        self.provenance: Provenance = first.provenance if isinstance(first, Shared) else "measured"
        self.model_error = hypot(FUNCTIONS_DIFFER, first.error if isinstance(first, Shared) else FUNCTIONS_DIFFER)
        self.period_s = first.every_s if isinstance(first, Shared) else 1.0

    def available(self) -> str | None:
        found = self._look()
        if isinstance(found, Shared):
            return None
        return missing(
            found,
            "on the host: wattloom meter export --vms DIR; share DIR/<this guest> into the guest with 9p or virtiofs",
            f"in the guest: mount it at {OURS}, or say where it is (settings group host_share)",
        )

    def read(self, now: float) -> Sample | Unknown:
        refusal = self._counters.refusal(now)
        if refusal is not None:
            return refusal
        found = self._look()
        if isinstance(found, str):
            return Unknown(found)
        if self._run and found.run != self._run:
            return self._begin_anew(found, now)
        self._run = found.run
        return self._follow(found, now)

    def _follow(self, found: Shared, now: float) -> Sample | Unknown:
        return self._counters.read(now, _raw(found), STEP_UJ, self._here(found.time_s, now))

    def _begin_anew(self, found: Shared, now: float) -> Unknown:
        self._ahead.clear()
        self._run, self._last_s = found.run, -1.0
        broken = self._counters.break_off(now, "the host's count began anew: it was started again")
        self._here(found.time_s, now)
        self._counters.read(now, _raw(found), STEP_UJ)
        return broken

    def _here(self, host_s: float, now: float) -> float:
        """The host's time on our clock. The reading that came through fastest shows best how far they are apart."""
        if host_s < self._last_s:  # a clock that was set back: a bare counter has the file's time, and no better one
            self._ahead.clear()
        if host_s != self._last_s:
            self._last_s = host_s
            self._ahead.append(now - host_s)
        time = host_s + min(self._ahead)
        return time if now - time > SAME_S else now

    # -- the folder -----------------------------------------------------------------------------------------------

    def _look(self) -> Shared | str:
        """What it holds now, or what is wrong."""
        try:
            return _ours(self._folder / FILE)
        except FileNotFoundError:
            pass
        except (OSError, *UNREADABLE) as problem:
            return f"{self._folder / FILE} cannot be read: {problem}"
        try:
            return _scaphandres(self._folder)
        except FileNotFoundError:
            return f"the host of this machine shares no figures: neither {FILE} nor {COUNTER} is in {self._folder}"
        except (OSError, ValueError) as problem:
            return f"{self._folder / COUNTER} cannot be read: {problem}"


def _raw(found: Shared) -> dict[str, Raw]:
    return {found.guest: Raw(found.energy_uj, found.range_uj, still=True)}


def for_machine(profile: MachineProfile, settings: HostShareSettings) -> HostShare:
    """The entry point: where the settings say, else at the usual places."""
    return HostShare(Path(settings.path) if settings.path else None)


def _default() -> Path:
    scaphandres = os.environ.get("SCAPHANDRE_POWERCAP_PATH")
    others = [Path(scaphandres)] if scaphandres else []
    found = [path for path in (OURS, *others, SCAPHANDRES) if path.is_dir()]
    return found[0] if found else OURS


def _ours(path: Path) -> Shared:
    return msgspec.json.decode(read_bytes(path, MOST_BYTES), type=Shared)


def _scaphandres(folder: Path) -> Shared:
    """A bare counter, without name or range: when it was written is the file's own time."""
    path = folder / COUNTER
    written = path.stat().st_mtime
    return Shared("this guest", "scaphandre", int(path.read_bytes()), written, 5.0, error=FUNCTIONS_DIFFER)
