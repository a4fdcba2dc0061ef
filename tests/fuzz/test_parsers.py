"""Every parser of what others write, given real input made wrong: a value, or the error that it says it raises."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz import mutation, seeds
from tests.fuzz.mutation import Mutation
from tests.profiling.made import cpu_profile
from tests.profiling.test_gpu_profile import saturating

from wattloom.attribution.power_files import read_power, read_runs
from wattloom.errors import InputError, WattloomError
from wattloom.history.log import Log
from wattloom.kubernetes.client.kubeconfig import target_of
from wattloom.machines.power_from_cpu import read_samples
from wattloom.machines.profile_file import decode_profile, encode_profile
from wattloom.metering import exposition, ipmi, pdu, powerapi, redfish, snmp
from wattloom.metering.recording import read_tape
from wattloom.metering.source import SourceProblem
from wattloom.profiling.gpu_file import decode_gpu_profile
from wattloom.settings import load_settings
from wattloom.simulation.scenario import parse

unhurried = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)
METRICS: Final = b"""# HELP kepler_node_cpu_joules_total Joules
# TYPE kepler_node_cpu_joules_total counter
kepler_node_cpu_joules_total{zone="package",node_name="a"} 1234.5
kepler_node_cpu_joules_total{zone="dram",node_name="a"} 3.4e2 1700000000000
"""
NAMES: Final = ("kepler_node_cpu_joules_total",)
REDFISH: Final = json.dumps({"PowerControl": [{"PowerConsumedWatts": 312.5, "MemberId": "0"}]}).encode()
PAGE: Final = b'{"outlets": [{"watts": 12.5, "name": "a"}, {"watts": "13 W"}]}'
XML: Final = b"<?xml version='1.0'?><strip><outlet><watts>12.5</watts></outlet></strip>"
IPMI: Final = b"    Instantaneous power reading:                   220 Watts\n    Power reading state is:   activated\n"
SNMP: Final = bytes.fromhex("302902010104067075626c6963a21c02020539020100020100301030")
SNMP_WHOLE: Final = SNMP + bytes.fromhex("0e06082b06010401be7f010202007b")
REPORT: Final = b'{"timestamp":"2026-01-01T00:00:01","sensor":"s","target":"rapl","power":40.5}'
_TEXTS: Final = seeds._texts()

Parse = Callable[[bytes, Path], object]


def _on_disk(read: Callable[[Path], object]) -> Parse:
    def parse_file(data: bytes, folder: Path) -> object:
        path = folder / "given"
        path.write_bytes(data)
        return read(path)

    return parse_file


def _settings(data: bytes, folder: Path) -> object:
    (folder / "wattloom.toml").write_bytes(data)
    return load_settings(folder=folder, environ={})


def _text(read: Callable[[str], object]) -> Parse:
    return lambda data, _: read(data.decode("utf-8", "replace"))


PARSERS: Final[dict[str, tuple[bytes, tuple[Mutation, ...], Parse, type[Exception]]]] = {
    "scenario": (seeds.SCENARIO_OF_ALL.encode(), mutation.TOML, _text(lambda text: parse(text, "s")), InputError),
    "settings": (seeds.SETTINGS.encode(), mutation.TOML, _settings, InputError),
    "profile": (encode_profile(cpu_profile()), mutation.JSON, lambda data, _: decode_profile(data, "p"), InputError),
    "gpu": (encode_profile(saturating()), mutation.JSON, lambda data, _: decode_gpu_profile(data, "g"), InputError),
    "power": (_TEXTS["power.csv"].encode(), mutation.CSV, _on_disk(read_power), InputError),
    "runs": (_TEXTS["runs.csv"].encode(), mutation.CSV, _on_disk(read_runs), InputError),
    "recording": (_TEXTS["recording.csv"].encode(), mutation.CSV, _on_disk(read_tape), InputError),
    "samples": (_TEXTS["samples.csv"].encode(), mutation.CSV, _text(lambda text: read_samples(text, "s")), InputError),
    "kubeconfig": (seeds.KUBECONFIG.encode(), mutation.YAML, _on_disk(target_of), InputError),
    "metrics": (METRICS, mutation.YAML, lambda data, _: exposition.figures(data, NAMES, "there"), SourceProblem),
    "json page": (PAGE, mutation.JSON, lambda data, _: pdu.number_at(data, "outlets.0.watts", "there"), SourceProblem),
    "xml page": (XML, mutation.YAML, lambda data, _: pdu.number_at(data, "outlet.watts", "there"), SourceProblem),
    "ipmi": (IPMI, mutation.YAML, _text(lambda text: ipmi.watts(text, "")), SourceProblem),
    "snmp": (SNMP_WHOLE, mutation.BYTES, lambda data, _: _snmp(data), ValueError),
    "redfish": (REDFISH, mutation.JSON, lambda data, _: _redfish(data), SourceProblem),
    "powerapi": (REPORT, mutation.JSON, lambda data, _: powerapi._report(data, "rapl"), SourceProblem),
    "log": (b"", mutation.JSON, _on_disk(lambda path: list(Log(path).records())), WattloomError),
}


def _snmp(data: bytes) -> object:
    try:
        snmp.request_number(data)
        return snmp.value(data, "there")
    except IndexError as problem:  # `get_number` takes both for "no SNMP"
        raise ValueError from problem
    except SourceProblem:
        return None


def _redfish(data: bytes) -> object:
    try:
        page: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return redfish.power(page) if isinstance(page, dict) else None


@pytest.fixture(scope="module")
def real_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log as the simulator writes it."""
    from wattloom import api

    folder = tmp_path_factory.mktemp("log")
    (folder / "s.toml").write_text(seeds.SCENARIO_OF_ALL)
    api.simulate(str(folder / "s.toml"), "pack", 0, folder / "run.log")
    return folder / "run.log"


@pytest.mark.parametrize("name", PARSERS)
@given(steps=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2**32)), min_size=1, max_size=4))
@unhurried
def test_a_parser_gives_a_value_or_says_what_is_wrong(name: str, real_log: Path, steps: list[tuple[int, int]]) -> None:
    data, mutations, parse_it, raised = PARSERS[name]
    data = data or real_log.read_bytes()
    for which, seed in steps:
        data = mutations[which % len(mutations)](data, Random(seed))
    with TemporaryDirectory() as folder, suppress(raised):
        parse_it(data, Path(folder))
