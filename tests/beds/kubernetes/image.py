"""An image of busybox, made of the static program on this machine: nothing is fetched from anywhere.

Owns the archive's form (the one of `docker save`, which containerd imports).
"""

import hashlib
import io
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import msgspec

NAME: Final = "localhost/busybox:test"
FOREVER: Final = ["/bin/sleep", "2147483647"]
"""What it runs if a pod names no command; a pod's sandbox does."""
FOLDERS: Final = ("bin", "etc", "proc", "sys", "dev", "tmp", "root")


def busybox() -> Path | None:
    """The static busybox of this machine, if there is one."""
    found = shutil.which("busybox")
    return Path(found) if found else None


def write_image(path: Path, program: Path) -> None:
    """Write an archive with one image of one layer: busybox and a link for each of its commands."""
    layer = _layer(program)
    digest = hashlib.sha256(layer).hexdigest()
    config = msgspec.json.encode(
        {
            "architecture": _architecture(),
            "os": "linux",
            "config": {"Cmd": FOREVER, "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    )
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = msgspec.json.encode([{"Config": config_name, "RepoTags": [NAME], "Layers": [f"{digest}.tar"]}])
    with tarfile.open(path, "w") as archive:
        for name, content in ((config_name, config), (f"{digest}.tar", layer), ("manifest.json", manifest)):
            _add(archive, name, content, 0o644)


def _layer(program: Path) -> bytes:
    commands = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        _add(archive, "bin/busybox", program.read_bytes(), 0o755)
        for command in commands:
            if command != "busybox":
                _link(archive, f"bin/{command}")
    return out.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _link(archive: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
    archive.addfile(entry)


def _architecture() -> str:
    """Go's word for this machine's processor."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
