"""A real virtual machine for tests and benchmarks: QEMU in software, a kernel, and this machine's files to read.

Owns how a guest is put together and booted: a kernel with its modules out of a Debian package, a small first file
system with busybox, our root as its root (read only, by 9p), and a folder that is shared into it. What it prints comes
back line by line with the time at which it came. Needs qemu-system-x86_64, busybox (static) and a kernel, which
`make guest` gets.
"""

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple

QEMU: Final = "qemu-system-x86_64"
MODULES: Final = ("virtio_pci", "9p", "9pnet_virtio")
"""What the guest needs of its kernel, beside what these need themselves."""
DEPENDS: Final = re.compile(rb"\0depends=([^\0]*)\0")
"""In a module's own words: those that have to be there before it. They change from one kernel to the next."""
SHARE: Final = "/run/share"
"""Where the shared folder is in the guest: below the one folder of our root that it does not see, but has new."""
INIT: Final = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in {modules}; do insmod /modules/$module.ko; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 root /root
mount -t tmpfs run /root/run; mkdir -p /root{share}
mount -t 9p -o trans=virtio,version=9p2000.L,ro share /root{share}
mount -t proc proc /root/proc; mount -t sysfs sys /root/sys; mount -t devtmpfs dev /root/dev
echo guest is up
HOME=/run XDG_STATE_HOME=/run PYTHONDONTWRITEBYTECODE=1 chroot /root /bin/sh -c "$(cat /job)"
echo guest is done
poweroff -f
"""


class Line(NamedTuple):
    """What a guest printed, and when it came through."""

    time: float
    text: str


def problem(kernels: Path) -> str | None:
    """Why no guest can be booted here, and what to do. `kernels`: an unpacked kernel package. None: one can."""
    if shutil.which(QEMU) is None:
        return f"{QEMU} is missing (Debian: apt-get install qemu-system-x86)"
    if _busybox() is None:
        return "busybox is missing (Debian: apt-get install busybox-static)"
    if not list((kernels / "boot").glob("vmlinuz-*")):
        return f"there is no kernel in {kernels}: `make guest` gets one"
    return None


class Guest:
    """A virtual machine that runs one shell script and switches itself off."""

    def __init__(self, name: str, folder: Path, kernels: Path, shared: Path, job: str, *, memory_mb: int = 384) -> None:
        self.name = name
        self._lines: Queue[Line | None] = Queue()
        kernel = next((kernels / "boot").glob("vmlinuz-*"))
        first = folder / f"{name}.cpio.gz"
        first.write_bytes(gzip.compress(_first_files(kernels, job), 1))
        words = [QEMU, "-name", f"guest={name}", "-M", "q35,accel=tcg", "-cpu", "max", "-m", str(memory_mb)]
        words += ["-nographic", "-no-reboot", "-nic", "none", "-kernel", str(kernel), "-initrd", str(first)]
        words += ["-append", "console=ttyS0 quiet panic=-1"]
        for tag, path in (("root", Path("/")), ("share", shared)):
            words += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,readonly=on,multidevs=remap"]
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            self._lines.put(Line(monotonic(), raw.decode(errors="replace").rstrip()))
        self._lines.put(None)

    def lines(self, seconds: float) -> Iterator[Line]:
        """What it prints, until it switches itself off. TimeoutError if that is not within so many seconds."""
        end = monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(end - monotonic(), 0.0))
            except Empty:
                raise TimeoutError(f"the guest {self.name} was not done within {seconds:g} s") from None
            if line is None:
                return
            yield line

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- the first file system ---------------------------------------------------------------------------------------------


def _busybox() -> Path | None:
    found = shutil.which("busybox")
    return Path(found) if found else None


def _first_files(kernels: Path, job: str) -> bytes:
    busybox = _busybox()
    assert busybox is not None
    folders = ("bin", "modules", "proc", "sys", "dev", "root")
    archive = b"".join(_entry(name, 0o040755) for name in folders)
    archive += _entry("bin/busybox", 0o100755, busybox.read_bytes())
    for name in ("sh", "mount", "insmod", "echo", "cat", "mkdir", "poweroff", "chroot"):
        archive += _entry(f"bin/{name}", 0o120777, b"busybox")
    modules = _with_their_needs(kernels, MODULES)
    for name, content in modules.items():
        archive += _entry(f"modules/{name}.ko", 0o100644, content)
    archive += _entry("init", 0o100755, INIT.format(modules=" ".join(modules), share=SHARE).encode())
    archive += _entry("job", 0o100644, job.encode())
    return archive + _entry("TRAILER!!!", 0)


def _with_their_needs(kernels: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Modules by name, each after those that it needs."""
    found: dict[str, bytes] = {}
    for name in names:
        content = next((kernels / "lib" / "modules").rglob(f"{name}.ko")).read_bytes()
        needed = DEPENDS.search(content)
        before = needed[1].decode().split(",") if needed and needed[1] else []
        found |= {**_with_their_needs(kernels, before), name: content}
    return found


def _entry(name: str, mode: int, content: bytes = b"") -> bytes:
    """One file of a cpio archive in the kernel's format (newc): thirteen numbers, a name, the content."""
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + os.fsencode(name) + b"\0"
    return _padded(head) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
