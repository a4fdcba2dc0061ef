"""How the folder of an installed function is filled, by runtime.

Owns the calls of npm, Maven, Go and the compilers. All of them work in a folder that is nobody's yet.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from platform import machine
from typing import Final

from wattloom.errors import WattloomError
from wattloom.suite.catalogue import SuiteFunction
from wattloom.suite.places import include, source

LONGEST_S: Final = 1800.0
"""Of one program: a slow network may need long, and nothing waits for ever."""
TOLD: Final = 600
"""Characters of what a program said when it failed."""
MAVEN_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
CROSS: Final = {"x86_64": "x86_64-linux-gnu-", "aarch64": "aarch64-linux-gnu-"}
"""By architecture: how the names of its compilers begin where they are not the machine's own."""
OPTIMISED: Final = ("-O2", "-D__BLST_PORTABLE__")
WASI: Final = ("--target=wasm32-wasi", "--sysroot=/usr", "-D__BLST_NO_ASM__")


class BuildFailed(WattloomError):
    """A program that fetches or builds has failed."""


def fill(one: SuiteFunction, folder: Path) -> None:
    """Put there what the function needs at run time. Raises BuildFailed, OSError."""
    {"python": _network, "node": _npm, "java": _maven, "native": _native, "wasm": _wasm}[one.runtime](one, folder)


def end_of(done: "subprocess.CompletedProcess[str]") -> str:
    """The last words of a program."""
    said = (done.stderr.strip() or done.stdout.strip())[-TOLD:]
    return said or f"it ended with {done.returncode}"


def _run(command: list[str], folder: Path, **environment: str) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{command[0]} did not end within {LONGEST_S:.0f} s") from None
    if done.returncode:
        raise BuildFailed(f"{' '.join(command[:4])} failed: {end_of(done)}")
    return done.stdout


def _network(one: SuiteFunction, folder: Path) -> None:
    from wattloom.suite.networks import write_alexnet

    write_alexnet(folder / "alexnet.onnx")


def _npm(one: SuiteFunction, folder: Path) -> None:
    """Scripts of packages are not run: none of ours needs one, and they could do anything."""
    (folder / "package.json").write_text(json.dumps({"name": one.name, "private": True}))
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--omit=dev"]
    _run(["npm", "install", *quiet, *one.packages], folder)
    shutil.copyfile(source(one.name), folder / source(one.name).name)


POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>wattloom</groupId><artifactId>{name}</artifactId><version>1</version><dependencies>
{dependencies}
</dependencies></project>
"""
DEPENDENCY: Final = "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"


def _maven(one: SuiteFunction, folder: Path) -> None:
    dependencies = "\n".join(DEPENDENCY.format(*package.split(":")) for package in one.packages)
    (folder / "pom.xml").write_text(POM.format(name=one.name, dependencies=dependencies))
    jars = folder / "lib"
    _run(["mvn", "-B", "-q", "-f", "pom.xml", MAVEN_PLUGIN, f"-DoutputDirectory={jars}"], folder)
    if not list(jars.glob("*.jar")):
        raise BuildFailed(f"Maven brought no JAR for {one.name}")
    shutil.copyfile(source(one.name), folder / source(one.name).name)


# -- blst and what is built on it --------------------------------------------------------------------------------------


def _native(one: SuiteFunction, folder: Path) -> None:
    """For this machine, and statically for each other architecture that there is a compiler for."""
    blst = _fetched_blst(one, folder)
    for arch, prefix in CROSS.items():
        own = arch == machine()
        compilers = ("gcc", "g++") if own else (f"{prefix}gcc", f"{prefix}g++")
        if own or all(shutil.which(each) for each in compilers):
            _compiled(blst, folder / f"el-passo-{arch}", compilers, *(() if own else ("-static",)))
    if not list(folder.glob("el-passo-*")):
        raise BuildFailed(f"El Passo is built for {' and '.join(CROSS)}; this machine is {machine()}")


def _compiled(blst: Path, target: Path, compilers: tuple[str, str], *more: str) -> None:
    objects = [target.with_suffix(".server.o"), target.with_suffix(".assembly.o")]
    sources = [blst / "src" / "server.c", blst / "build" / "assembly.S"]
    for each, made in zip(sources, objects, strict=True):
        _run([compilers[0], *OPTIMISED, "-c", str(each), "-o", str(made)], target.parent)
    _run([compilers[1], *_el_passo(blst), *map(str, objects), *more, "-o", str(target)], target.parent)
    for made in objects:
        made.unlink()


def _wasm(one: SuiteFunction, folder: Path) -> None:
    blst = _fetched_blst(one, folder)
    made = folder / "server.o"
    _run(["clang", *WASI, *OPTIMISED, "-c", str(blst / "src" / "server.c"), "-o", str(made)], folder)
    _run(["clang", *WASI, *_el_passo(blst), str(made), "-o", str(folder / "el-passo.wasm")], folder)
    made.unlink()


def _el_passo(blst: Path) -> list[str]:
    plain = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
    folders = (f"-I{blst / 'bindings'}", f"-I{include()}")
    return [*OPTIMISED, *plain, *folders, str(source("el-passo-cpp"))]


def _fetched_blst(one: SuiteFunction, folder: Path) -> Path:
    """Its sources, in Go's cache of modules, where they stay."""
    said = _run(["go", "mod", "download", "-json", one.packages[0]], folder, GOFLAGS="-mod=mod", GOTOOLCHAIN="local")
    found = json.loads(said)
    if found.get("Error"):
        raise BuildFailed(f"go could not fetch {one.packages[0]}: {found['Error']}")
    return Path(found["Dir"])
