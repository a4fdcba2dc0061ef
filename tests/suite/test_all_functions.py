"""All functions that can run here, through an executor: results are right, and the languages of a family agree.

`make test` installs what they need; where it cannot, what is missing is named.
"""

import base64
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from platform import machine
from shutil import which
from typing import Any

import pytest
from tests.suite.conftest import work_of

import wattloom
from wattloom import suite
from wattloom.suite.families.images import read_png
from wattloom.suite.places import installed

pytestmark = pytest.mark.slow
SEED = 11


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wattloom.Executor]:
    journal: Path = tmp_path_factory.mktemp("suite") / "suite.journal"
    with wattloom.Executor(max_workers=2, journal=journal) as found:
        yield found


RESULTS: dict[str, Any] = {}


def result_of(name: str, executor: wattloom.Executor) -> Any:
    """Of one call; of several tests that ask, the first makes it."""
    work = work_of(name)
    if name not in RESULTS:
        RESULTS[name] = executor.submit(work.function, *work.args(SEED)).result(120)
    return RESULTS[name]


@pytest.mark.parametrize("name", suite.NAMES)
def test_the_result_is_right(name: str, executor: wattloom.Executor) -> None:
    work_of(name).check(result_of(name, executor), SEED)


def test_the_journal_has_the_names_of_the_suite(executor: wattloom.Executor) -> None:
    result_of("zip-python", executor)
    executor.sync()
    named = {task.function for task in wattloom.tasks(executor.journal)}
    assert "zip-python" in named
    assert named <= set(suite.NAMES)


def test_the_products_are_the_same_in_all_languages(executor: wattloom.Executor) -> None:
    names = [name for name in suite.NAMES if name.startswith("matrix")]
    products = {name: result_of(name, executor)["product"] for name in names}
    assert all(each == products["matrix-numpy-python"] for each in products.values())


def test_the_pictures_are_alike_in_all_languages(executor: wattloom.Executor) -> None:
    def small(language: str) -> Any:
        return read_png(base64.b64decode(result_of(f"thumbnail-{language}", executor)["image"]))[..., :3].astype(float)

    for language in ("node", "java"):
        assert abs(small(language) - small("python")).mean() < 3.0


def test_tokens_of_one_language_are_taken_by_the_others(executor: wattloom.Executor) -> None:
    jwt = pytest.importorskip("jwt", reason="PYJWT IS MISSING")
    given = suite.function("jwt-python").args(SEED)[0]
    for language in ("python", "node", "java"):
        token = result_of(f"jwt-{language}", executor)["token"]
        assert jwt.decode(token, given["public_key"], algorithms=["RS256"]) == given["claims"]


def test_both_builds_of_el_passo_come_to_the_same_bytes(executor: wattloom.Executor) -> None:
    assert result_of("el-passo-cpp", executor) == result_of("el-passo-wasm", executor)


def test_on_a_node_of_another_architecture_its_own_build_runs_and_comes_to_the_same_bytes(
    executor: wattloom.Executor, tmp_path: Path
) -> None:
    work = work_of("el-passo-cpp")
    foreign = "x86_64" if machine() == "aarch64" else "aarch64"
    if not (installed("el-passo-cpp") / f"el-passo-{foreign}").is_file() or not which(f"qemu-{foreign}-static"):
        pytest.skip(f"NO BUILD FOR {foreign}, OR QEMU-USER-STATIC IS MISSING")
    kind = "altra-max-m128-1s" if foreign == "aarch64" else "xeon-gold-5318y-2s"
    there = wattloom.VirtualNode("there", kind, cpu=1)
    with wattloom.Executor(nodes=[there], journal=tmp_path / "there.journal") as elsewhere:
        found = elsewhere.submit(work.function, *work.args(SEED)).result(120)
    assert found == result_of("el-passo-cpp", executor)


def test_the_pairing_of_el_passo_holds_in_another_library(executor: wattloom.Executor) -> None:
    pytest.importorskip("py_ecc", reason="PY_ECC IS MISSING")
    found = result_of("el-passo-cpp", executor)
    assert _pairing(found["k"], found["s1"]) == _pairing(found["g2"], found["s2"])
    assert _pairing(found["k"], found["s2"]) != _pairing(found["g2"], found["s2"])


@cache
def _pairing(second: str, first: str) -> Any:
    points: Any = import_module("py_ecc.bls.point_compression")
    curve: Any = import_module("py_ecc.optimized_bls12_381")
    halves = bytes.fromhex(second)
    in_g2 = points.decompress_G2((int.from_bytes(halves[:48]), int.from_bytes(halves[48:])))
    return curve.pairing(in_g2, points.decompress_G1(int(first, 16)))
