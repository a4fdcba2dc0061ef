"""The profile of the machine we run on: what of it this process may use, as the kernel tells.

Owns how /proc and the control groups are asked. The power curve is the machine's own if it was profiled
(`own_profile`); else it comes from `curves`.
"""

import platform
import re
from contextlib import suppress
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from wattloom.machines.curves import with_curve
from wattloom.machines.own_profile import MACHINE_ID, SYSTEM, Here, state_of, with_own
from wattloom.machines.profile import MachineProfile

if TYPE_CHECKING:
    from wattloom.machines.profile_file import MachineIdentity

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")
ARM_PARTS: Final = {
    "0xd03": "cortex-a53",
    "0xd08": "cortex-a72",
    "0xd0b": "cortex-a76",
    "0xd0c": "neoverse-n1",
    "0xd40": "neoverse-v1",
    "0xd49": "neoverse-n2",
    "0xd4f": "neoverse-v2",
    "0xac3": "ampere-1",
}
"""ARM's processors do not give their names in /proc/cpuinfo, only the numbers of their parts."""
_NOISE: Final = re.compile(
    r"\((r|tm)\)|\d+th gen\b|\b(intel|amd|cpu|processor|\d+-core|with radeon.*)\b|@.*", re.IGNORECASE
)


def this_machine(
    proc: Path = PROC, cgroups: Path = CGROUPS, *, profiles: Path | None = None, machine_id: Path = MACHINE_ID
) -> MachineProfile:
    """This machine, as far as affinity and control groups let us use it, with the best power curve there is.

    `profiles`: the folder its own profile is looked for in; left out, that of the user's state."""
    here, facts = _here(proc, cgroups)
    bare = MachineProfile(name=slug(facts), arch=here.arch, cores=here.cores, threads=here.threads, memory=here.memory)
    if bare.threads > bare.cores:  # with few threads per core the usual slow-down may promise less than nothing
        bare = msgspec.structs.replace(bare, smt_slowdown=min(bare.smt_slowdown, bare.threads / bare.cores))
    return with_own(with_curve(bare, here.sockets, here.virtual), here, bare.name, profiles, machine_id)


def this_identity(
    proc: Path = PROC, cgroups: Path = CGROUPS, *, system: Path = SYSTEM, machine_id: Path = MACHINE_ID
) -> "MachineIdentity":
    """Which machine this is and what state it is in, as a profile of it says."""
    here, facts = _here(proc, cgroups)
    return state_of(here, facts, proc, system, machine_id)


def _here(proc: Path, cgroups: Path) -> tuple[Here, dict[str, str]]:
    """What of this machine may be used, and the facts of its first processor."""
    processors = _processors(proc)
    allowed = allowed_cpus(proc) or frozenset(range(max(len(processors), 1)))
    usable = {cpu: facts for cpu, facts in processors.items() if cpu in allowed}
    packages = {facts.get("physical id", "0") for facts in usable.values()}
    cores = {(facts.get("physical id", "0"), facts.get("core id", str(cpu))) for cpu, facts in usable.items()}
    threads = len(allowed)
    quota = _quota(proc, cgroups)
    if quota is not None:
        threads = max(1, min(threads, floor(quota)))
    facts = next(iter(usable.values()), {})
    here = Here(
        model=facts.get("model name") or ARM_PARTS.get(facts.get("CPU part", ""), ""),
        arch=platform.machine(),
        sockets=len(packages) or 1,
        cores=max(1, min(len(cores) or threads, threads)),
        threads=threads,
        memory=_memory(proc, cgroups),
        virtual="hypervisor" in facts.get("flags", "").split(),
    )
    return here, facts


def allowed_cpus(proc: Path = PROC) -> frozenset[int] | None:
    """The CPUs this process may run on. None: the kernel does not say."""
    try:
        text = (proc / "self" / "status").read_text()
    except OSError:
        return None
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", text, re.MULTILINE)
    return frozenset(_listed(found[1])) if found else None


def slug(facts: dict[str, str]) -> str:
    """`Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz` is `xeon-e5-2699v4`, as the catalogue writes it."""
    model = facts.get("model name") or ARM_PARTS.get(facts.get("CPU part", ""), "")
    plain = re.sub(r"\s+v(\d)\b", r"v\1", _NOISE.sub(" ", model).strip(), flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "unknown-cpu"


# -- what the kernel tells -------------------------------------------------------------------------------------------


def _processors(proc: Path) -> dict[int, dict[str, str]]:
    """The blocks of /proc/cpuinfo by number."""
    try:
        text = (proc / "cpuinfo").read_text()
    except OSError:
        return {}
    blocks = [dict(_pairs(block)) for block in text.split("\n\n")]
    return {int(block["processor"]): block for block in blocks if block.get("processor", "").isdigit()}


def _pairs(block: str) -> list[tuple[str, str]]:
    lines = (line.partition(":") for line in block.splitlines())
    return [(name.strip(), value.strip()) for name, _, value in lines]


def _listed(text: str) -> list[int]:
    """`0-2,5` is 0, 1, 2, 5."""
    ranges = [(first, last or first) for first, _, last in (part.partition("-") for part in text.split(","))]
    return [cpu for first, last in ranges for cpu in range(int(first), int(last) + 1)]


def _memory(proc: Path, cgroups: Path) -> int:
    try:
        found = re.search(r"^MemTotal:\s*(\d+) kB", (proc / "meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    total = int(found[1]) * 1024 if found else 0
    limits = [int(text) for text in _settings(proc, cgroups, "memory.max", "memory.limit_in_bytes") if text.isdigit()]
    return min([total, *limits]) if total else 0


def _quota(proc: Path, cgroups: Path) -> float | None:
    """The least number of CPUs that a control group around us grants."""
    granted: list[float] = []
    for text in _settings(proc, cgroups, "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and int(quota) > 0:
            granted.append(int(quota) / int(period or 100_000))  # version 1 keeps the period in another file
    return min(granted, default=None)


def _settings(proc: Path, cgroups: Path, second: str, first: str) -> list[str]:
    """A setting of every control group around this process, in version 2 and in version 1."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[str] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _upwards(cgroups, path, second)
        elif first.partition(".")[0] in controllers.split(","):
            found += _upwards(cgroups / first.partition(".")[0], path, first)
    return found


def _upwards(root: Path, path: str, setting: str) -> list[str]:
    """The setting in the group's folder and in all above it. In a container the path may not exist: then the root's."""
    folder = root / path.lstrip("/")
    found: list[str] = []
    for place in (folder, *folder.parents):
        with suppress(OSError):
            found.append((place / setting).read_text().strip())
        if place == root:
            break
    return found
