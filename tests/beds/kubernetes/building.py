"""Builds Kubernetes' programs with Go from a module of our own.

`go install` refuses Kubernetes' commands, since its own libraries are at version 0 in its module file: a module that
names the real version of each one is enough. Programs appear one by one and whole (a rename), so an interrupted build
goes on where it was; a lock keeps two builds apart. Where modules come from is the machine's own setting of Go.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec
from tests.beds.kubernetes.versions import GO, KUBERNETES, PROGRAMS, Program

from wattloom.errors import WattloomError

HOW_TO_GET_GO: Final = (
    f"install Go {GO} or newer (from the Go project's site, or the package golang-go where it is that new) and put "
    "`go` on PATH; or name ready programs by KUBEBUILDER_ASSETS, as envtest does"
)
OLDEST_GO: Final = (1, 21)
"""Since then Go gets the version that a module asks for by itself."""
STAGING: Final = re.compile(r"^\s*(k8s\.io/[a-z0-9-]+) => \./staging/", re.MULTILINE)
VERSION_PACKAGE: Final = "k8s.io/component-base/version"
LINES_SHOWN: Final = 15


class BuildFailed(WattloomError):
    """Go could not build a program; shows the end of what it said."""


def go_problem() -> str | None:
    """Why nothing can be built here, and what to do. None: it can."""
    go = shutil.which("go")
    if go is None:
        return f"Go is missing: {HOW_TO_GET_GO}"
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GO:
        return f"{go} is too old ({said.strip() or 'it tells no version'}): {HOW_TO_GET_GO}"
    return None


def build(programs: Sequence[Program], cache: Path, say: Callable[[str], None] | None = None) -> None:
    """Build each program into `cache`/bin. One that is there by the time we have the lock is left as it is."""
    tell = say or _to_stderr
    with _alone(cache, tell):
        missing = [program for program in programs if not (cache / "bin" / program.name).exists()]
        for number, program in enumerate(missing, 1):
            tell(f"building {program.name} {program.version} with Go ({number} of {len(missing)}; minutes if cold)")
            start = monotonic()
            target = _build_one(program, cache)
            tell(f"built {program.name}: {target.stat().st_size / 1e6:.0f} MB in {monotonic() - start:.0f} s")


def _build_one(program: Program, cache: Path) -> Path:
    folder = _module(program, cache / "module")
    target = cache / "bin" / program.name
    part = target.with_name(f".{program.name}.part")
    flags = ["-mod=readonly", "-trimpath", "-ldflags", _linker_flags(program)]
    _go(["build", *flags, "-o", str(part), program.package], folder)
    part.rename(target)
    return target


def _module(program: Program, modules: Path) -> Path:
    """The folder of a module that needs the program's whole module; whole itself as soon as it has its name."""
    folder = modules / f"{program.module.replace('/', '-')}-{program.version}"
    if folder.exists():
        return folder
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    head = f"module wattloom.invalid/programs\n\ngo {GO}.0\n\nrequire {program.module} v{program.version}\n"
    (part / "go.mod").write_text(head + "".join(_replacements(program, part)))
    packages = {each.package for each in PROGRAMS.values() if each.module == program.module} | {program.package}
    imports = "".join(f'import _ "{package}"\n' for package in sorted(packages))
    (part / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\n{imports}")
    _go(["mod", "tidy"], part)
    return part.rename(folder)


def _replacements(program: Program, folder: Path) -> Iterator[str]:
    if program.version != KUBERNETES:
        return
    said = _go(["mod", "download", "-json", f"{program.module}@v{program.version}"], folder.parent)
    theirs = Path(msgspec.json.decode(said, type=dict[str, object])["GoMod"]).read_text()  # type: ignore[arg-type]
    libraries = "0." + KUBERNETES.split(".", 1)[1]
    for library in STAGING.findall(theirs):
        yield f"replace {library} => {library} v{libraries}\n"


def _linker_flags(program: Program) -> str:
    """Smaller programs, and Kubernetes' own told which version they are: they ask each other."""
    if program.version != KUBERNETES:
        return "-s -w"
    major, minor, _ = KUBERNETES.split(".")
    told = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    return "-s -w " + " ".join(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in told.items())


def _go(words: Sequence[str], folder: Path) -> bytes:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(["go", *words], cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.decode(errors="replace").splitlines()[-LINES_SHOWN:])
        raise BuildFailed(f"`go {' '.join(words)}` failed in {folder}:\n{tail}")
    return done.stdout


@contextmanager
def _alone(cache: Path, tell: Callable[[str], None]) -> Iterator[None]:
    (cache / "bin").mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"waiting: somebody else builds into {cache}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
