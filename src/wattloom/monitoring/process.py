"""One process, as long as it lives: who it is, where it belongs, what it has used so far.

Owns its identity: the PID with the time it started. Reads who it is through the kernel it is handed.
"""

from typing import Final

from wattloom.monitoring.cgroup_names import NOWHERE, Place, guest_name, place_of
from wattloom.monitoring.cgroups import ControlGroups
from wattloom.monitoring.kernel import Kernel, ProcessStat

LONGEST_COMMAND: Final = 200
MACHINE_PROGRAMS: Final = ("qemu", "kvm", "CPU ", "firecracker", "jailer")
"""How the names of programs begin that may run a virtual machine."""


class Process:
    """A process that was seen. Changed by the census alone."""

    __slots__ = (
        "age",
        "children_s",
        "command",
        "hidden",
        "inode",
        "key",
        "name",
        "parent",
        "pid",
        "place",
        "start",
        "used_s",
    )

    def __init__(self, pid: int, inode: int) -> None:
        self.pid: Final = pid
        self.inode = inode
        self.start: int | None = None
        """Ticks after boot. None: it may not be read."""
        self.parent = 0
        self.name = ""
        self.command = ""
        self.place: Place = NOWHERE
        self.used_s = 0.0
        """CPU seconds when it was last seen."""
        self.children_s = 0.0
        """The same of the children it had waited for."""
        self.hidden = False
        self.age = 0
        """Looks since it was first seen."""
        self.key = f"{pid}-"

    def meet(self, stat: ProcessStat | None) -> None:
        """Take who it is from the kernel's word."""
        self.hidden = stat is None
        if stat is not None:
            self.start, self.parent, self.name = stat.start, stat.parent, stat.name
            self.children_s = stat.children_s
        self.key = f"{self.pid}-{self.inode if self.start is None else self.start}"

    def settle(self, kernel: Kernel, groups: ControlGroups) -> None:
        """Find out where it belongs. A new one may yet move: engines start containers outside and move them in."""
        command = kernel.text(self.pid, "cmdline") or b""
        text = kernel.text(self.pid, "cgroup")
        plain = command[:LONGEST_COMMAND].replace(b"\0", b" ").decode(errors="replace")
        self.command = " ".join("".join(sign if sign.isprintable() else " " for sign in plain).split())
        guest = guest_name(command) if self.name.startswith(MACHINE_PROGRAMS) else ""
        if text is not None:
            try:
                self.place = place_of(*groups.paths(text.decode(errors="replace")), guest)
            except ValueError:  # half a file, of a process that is about to end
                return
