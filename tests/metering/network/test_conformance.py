from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.metering.network.rigs import FILE_RIGS, WEB_RIGS, Rig, WebRig
from tests.metering.network.server import Request, Server

from wattloom.testing.meter_conformance import CHECKS, Check, check_name

Answers = dict[str, Callable[[Request], Any]]


@pytest.fixture(scope="module")
def answers() -> Answers:
    return {}


@pytest.fixture(scope="module")
def server(answers: Answers) -> Iterator[Server]:
    """One for all rigs: each has a path of its own."""

    def answer(request: Request) -> Any:
        name = request.path.strip("/").partition("/")[0].partition("?")[0]
        return answers[name if name in answers else "last"](request)

    with Server(answer) as made:
        yield made


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("meter", sorted(WEB_RIGS))
def test_meters_over_a_network_conform(meter: str, check: Check, server: Server, answers: Answers) -> None:
    rigs: list[WebRig] = []

    def make() -> Rig:
        rig = WEB_RIGS[meter](server, answers, f"{meter}-{len(rigs)}")
        answers["last"] = rig.answer  # Redfish has its own idea of paths
        rigs.append(rig)
        return rig

    check(make)
    for rig in rigs:
        rig.close()


@pytest.mark.parametrize("check", CHECKS, ids=check_name)
@pytest.mark.parametrize("meter", sorted(FILE_RIGS))
def test_meters_on_files_and_programs_conform(meter: str, check: Check, tmp_path: Path) -> None:
    rigs: list[Rig] = []

    def make() -> Rig:
        rigs.append(FILE_RIGS[meter](tmp_path / str(len(rigs))))
        return rigs[-1]

    check(make)
    for rig in rigs:
        rig.close()
