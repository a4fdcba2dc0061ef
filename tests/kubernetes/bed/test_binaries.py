"""Where the programs come from: envtest's variables, PATH, the cache, and else a real build with Go."""

import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.beds.kubernetes.binaries import BinariesMissing, binaries, cache_folder, find
from tests.beds.kubernetes.building import BuildFailed, build, go_problem
from tests.beds.kubernetes.versions import GO, KUBERNETES, Program

from wattloom.errors import InputError

HELLO = 'package main\n\nimport "os"\n\nfunc main() { os.Stdout.WriteString("hello\\n") }\n'
MODULE = "wattloom.invalid/hello"


def _program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any of the programs, and without Go."""
    for variable in ("KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_KUBECTL"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_programs_of_envtest_come_before_path_and_path_before_the_cache(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find("etcd") is None
    built = _program(cache_folder() / "bin", "etcd")
    assert find("etcd") == built
    on_path = _program(bare / "path", "etcd")
    assert find("etcd") == on_path
    asset = _program(bare / "assets", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(bare / "assets"))
    assert find("etcd") == asset
    named = _program(bare / "named", "my-etcd")
    monkeypatch.setenv("TEST_ASSET_ETCD", str(named))
    assert find("etcd") == named


def test_a_folder_of_envtest_without_a_program_does_not_hide_the_others(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = _program(bare / "path", "kwok")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(bare))
    assert find("kwok") == on_path


def test_a_variable_that_names_no_program_is_an_error(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_ASSET_ETCD", str(bare / "nothing"))
    with pytest.raises(InputError, match="TEST_ASSET_ETCD"):
        find("etcd")


def test_without_programs_and_without_go_it_is_said_how_to_get_go(bare: Path) -> None:
    _program(bare / "path", "kwok")
    with pytest.raises(BinariesMissing, match=rf"etcd: .*Go is missing: install Go {GO}"):
        binaries(["etcd", "kwok"])


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(InputError, match="kube-proxy"):
        binaries(["kube-proxy"])


def test_the_cache_is_of_one_version(bare: Path) -> None:
    assert cache_folder() == bare / "cache" / "wattloom" / f"kubernetes-{KUBERNETES}"


# -- real builds, of a module that Go gets from a folder --------------------------------------------------------------


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Program]:
    """Puts a program's source where Go looks for modules."""
    if (why := go_problem()) is not None:
        pytest.skip(f"GO IS MISSING: {why}")
    _keep_caches(monkeypatch)
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOFLAGS", "-buildvcs=false -modcacherw")
    monkeypatch.setenv("GOPROXY", (tmp_path / "proxy").as_uri())
    monkeypatch.setenv("GOSUMDB", "off")

    def publish(version: str, source: str) -> Program:
        folder = tmp_path / "proxy" / MODULE / "@v"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"v{version}.mod").write_text(f"module {MODULE}\n")
        (folder / f"v{version}.info").write_text(f'{{"Version": "v{version}"}}')
        with ZipFile(folder / f"v{version}.zip", "w") as archive:
            archive.writestr(f"{MODULE}@v{version}/go.mod", f"module {MODULE}\n")
            archive.writestr(f"{MODULE}@v{version}/main.go", source)
        return Program("hello", MODULE, version, MODULE)

    return publish


def _keep_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    said = subprocess.run([shutil.which("go") or "go", "env", "GOCACHE"], capture_output=True, text=True, check=True)
    monkeypatch.setenv("GOCACHE", said.stdout.strip())


def test_two_builds_at_once_build_a_program_once(tmp_path: Path, modules: Callable[[str, str], Program]) -> None:
    program, said = modules("1.0.0", HELLO), list[str]()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: build([program], tmp_path / "cache", said.append), range(2)))
    assert sum(line.startswith("built hello") for line in said) == 1
    done = subprocess.run([tmp_path / "cache" / "bin" / "hello"], capture_output=True, text=True, check=True)
    assert done.stdout == "hello\n"
    assert os.listdir(tmp_path / "cache" / "bin") == ["hello"]


def test_a_build_that_fails_shows_the_compiler_s_words_and_the_next_one_goes_on(
    tmp_path: Path, modules: Callable[[str, str], Program]
) -> None:
    broken, whole = modules("1.0.0", HELLO.replace("os.Stdout", "os.Nowhere")), modules("1.0.1", HELLO)
    with pytest.raises(BuildFailed, match=r"(?s)go build.*os\.Nowhere"):
        build([broken], tmp_path / "cache")
    assert not (tmp_path / "cache" / "bin" / "hello").exists()
    build([whole], tmp_path / "cache")
    assert (tmp_path / "cache" / "bin" / "hello").exists()
