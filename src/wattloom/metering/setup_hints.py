"""How to allow what is missing, in lines that can be copied: groups, udev rules, kernel modules, settings.

Owns the texts that several meters share. What `available()` gives has what is missing in its first line and how to
allow it in the lines after.
"""

import sys
from typing import Final

GROUP: Final = "wattmeter"
"""The group of users who may read power. Any name would do."""
LEAKS: Final = (
    "Fine power readings can leak secrets to others who use this machine (CVE-2020-8694): allow as few as need be."
)


def missing(what: str, *how: str) -> str:
    """What `available()` gives: what is missing, and how to allow it, line by line."""
    return "\n".join((what, *how))


def split(problem: str) -> tuple[str, str]:
    """What is missing, and how to allow it."""
    what, _, how = problem.partition("\n")
    return what, how


def files_for_group(subsystem: str, match: str, files: str, now: str) -> tuple[str, ...]:
    """Let a group read files of the kernel: until the next boot, for good, or for one program. `match`: what udev is to
    look for in that subsystem; `files`: which of the device's files; `now`: the same files, as a shell finds them."""
    rule = (
        f'SUBSYSTEM=="{subsystem}", ACTION=="add", {match}, '
        f"RUN+=\"/bin/sh -c 'cd /sys%p && chgrp {GROUP} {files} && chmod g+r {files}'\""
    )
    return (
        f"until the next boot: sudo chmod a+r {now}",
        f"for good, for a group: sudo groupadd -f {GROUP} && sudo usermod -aG {GROUP} $USER; log in anew; write",
        f"  {rule}",
        f"  into /etc/udev/rules.d/70-{GROUP}-{subsystem}.rules; then",
        f"  sudo udevadm control --reload && sudo udevadm trigger --action=add --subsystem-match={subsystem}",
        f"for this Python only, which may then read every file: sudo setcap cap_dac_read_search+ep {_python()}",
        LEAKS,
    )


def module(name: str) -> tuple[str, ...]:
    """Load a module of the kernel, now and at every boot."""
    return (
        f"load the kernel's module: sudo modprobe {name}",
        f"at every boot: echo {name} | sudo tee /etc/modules-load.d/{name}.conf",
    )


def setting(group: str, **values: str) -> tuple[str, ...]:
    """Fill in a group of settings."""
    pairs = "; ".join(f"{key} = {value}" for key, value in values.items())
    first, value = next(iter(values.items()))
    bare = value.strip('"')
    return (
        f"in wattloom.toml, under [{group}]: {pairs}",
        f"or in the environment: WATTLOOM_{group.upper()}__{first.upper()}={bare}",
    )


def _python() -> str:
    return f"$(readlink -f {sys.executable or 'python3'})"
