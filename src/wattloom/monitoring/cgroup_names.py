"""Where a process belongs, as its control group and its command line tell: container, pod, virtual machine, unit.

Owns the names that container engines, Kubernetes, libvirt and systemd give to control groups. Pure: text in, names out.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

_CONTAINER: Final = re.compile(r"(?:^|[-:])([0-9a-f]{64})(?:\.scope)?$")
_POD: Final = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?=$|:)"
)
_PODMAN_POD: Final = re.compile(r"libpod_pod_([0-9a-f]{64})")
_LIBVIRT: Final = re.compile(
    r"machine-(?:qemu|kvm|ch)-\d+-(.+)\.scope|(?:(?:qemu|kvm)-\d+-)?(.+)\.libvirt-(?:qemu|kvm)"
)
_NAMED_CONTAINER: Final = (
    (re.compile(r"lxc\.payload\.(.+)"), "lxc"),
    (re.compile(r"systemd-nspawn@(.+)\.service"), "nspawn"),
    (re.compile(r"machine-(.+)\.scope"), "nspawn"),
)
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})")
_UNIT: Final = (".service", ".scope", ".socket", ".mount")
_ENGINES: Final = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "containerd": "containerd",
    "crio": "cri-o",
    "libpod": "podman",
}
"""What stands before a container's id, and whose it is."""
_PARENTS: Final = {
    "docker": "docker",
    "ecs": "docker",
    "libpod_parent": "podman",
    "default": "containerd",
    "k8s.io": "containerd",
}
"""Of ids with nothing before them: the group above."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where something ran. Empty: in none."""

    group: str = "/"
    """Path of the control group that counts its CPU time."""
    container: str = ""
    """The engine's id or, where there are no ids, the name."""
    engine: str = ""
    """docker, containerd, cri-o, podman, lxc, nspawn; empty: it does not show."""
    pod: str = ""
    """Kubernetes' uid of it, or podman's id."""
    vm: str = ""
    """Name of the guest."""
    unit: str = ""
    """systemd's unit or slice; of others the path of the group."""


NOWHERE: Final = Place()


@lru_cache(maxsize=4096)
def place_of(group: str, others: tuple[str, ...] = (), vm: str = "") -> Place:
    """By the path of the group that counts CPU time; `others`: its paths in other hierarchies, asked if that says
    nothing. `vm`: the guest's name by the command line, if it is one."""
    for path in (group, *others):
        found = _in_path(path)
        if found.container or found.pod or found.vm:
            return Place(group, found.container, found.engine, found.pod, vm or found.vm, found.unit)
    return Place(group, vm=vm, unit=_unit(group))


def guest_name(command: bytes) -> str:
    """The name of a virtual machine, by the command line of the program that runs it. Empty: it runs none."""
    words = command.rstrip(b"\0").split(b"\0")
    program = words[0].rpartition(b"/")[2]
    if program.startswith((b"qemu-system-", b"qemu-kvm")) or program == b"kvm":
        return _qemu_name(_after(words, b"-name"))
    if program.startswith((b"firecracker", b"jailer")):
        return _after(words, b"--id").decode(errors="replace")
    return ""


def _after(words: list[bytes], option: bytes) -> bytes:
    try:
        return words[words.index(option) + 1]
    except (ValueError, IndexError):
        return b""


def _qemu_name(text: bytes) -> str:
    """`guest=web,debug-threads=on`, or `web,process=x`, or just `web`."""
    parts = text.decode(errors="replace").replace(",,", "\0").split(",")
    named = [part.partition("=")[2] for part in parts if part.startswith("guest=")]
    plain = [parts[0]] if "=" not in parts[0] else []
    return next(iter((*named, *plain)), "").replace("\0", ",")


def _in_path(path: str) -> Place:
    container = engine = pod = vm = above = ""
    for raw in path.split("/"):
        part = _unescaped(raw)
        if found := _CONTAINER.search(part):
            before = part[: found.start()].rpartition(":")[2]
            if not before.endswith("conmon"):  # the engine's own monitor beside the container
                container, engine = found[1], _ENGINES.get(before) or _PARENTS.get(above, "")
        if found := _POD.search(part):
            pod = found[1].replace("_", "-")
        elif found := _PODMAN_POD.search(part):
            pod = found[1]
        if found := _LIBVIRT.fullmatch(part):
            vm = found[1] or found[2]
        elif not container:
            container, engine = _by_name(part, above)
        above = part
    return Place(path, container, engine, pod, vm, _unit(path))


def _by_name(part: str, above: str) -> tuple[str, str]:
    if above == "lxc":
        return part, "lxc"
    for pattern, engine in _NAMED_CONTAINER:
        if found := pattern.fullmatch(part):
            return found[1], engine
    return "", ""


def _unit(path: str) -> str:
    """The innermost unit; else the innermost slice; else the path itself, if it is not the root."""
    parts = [_unescaped(part) for part in path.split("/")]
    units = [part for part in parts if part.endswith(_UNIT)] or [part for part in parts if part.endswith(".slice")]
    return units[-1] if units else path.strip("/")


def _unescaped(part: str) -> str:
    """systemd writes `-` in a name as `\\x2d`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), part) if "\\x" in part else part
