"""The form of a profile file: what is written can be read, and what is wrong is named."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.profiling.made import cpu_profile

from wattloom.errors import InputError
from wattloom.machines.profile_file import CpuProfile, Idle, Level, Power, decode_profile, encode_profile

unhurried = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
"""The machine may be busy."""
watts = st.floats(0, 1e6, allow_nan=False)
powers = st.builds(Power, watts=watts, spread_w=watts, intervals=st.integers(1, 10_000), seconds=st.floats(0, 1e5))
work = st.none() | st.floats(0, 1e12)
degrees = st.none() | st.floats(-40, 150)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)


@st.composite
def profiles(draw: st.DrawFn) -> CpuProfile:
    """Any profile that may stand in a file."""
    base = cpu_profile()
    keys = draw(st.lists(st.tuples(st.sampled_from(["", "khz=1"]), words, st.integers(1, 8)), unique=True, max_size=6))
    levels = [_level(draw, *key) for key in keys]
    idles = draw(st.lists(st.sampled_from(["first", "last"]), unique=True))
    idle = [msgspec.convert({"when": when}, Idle) for when in idles]
    idle = [msgspec.structs.replace(each, power=draw(st.none() | powers), problem=draw(words)) for each in idle]
    return msgspec.structs.replace(
        base, levels=tuple(levels), idle=tuple(idle), name=draw(words), finished=draw(st.text(max_size=5))
    )


def _level(draw: st.DrawFn, setting: str, stressor: str, level: int) -> Level:
    known = draw(st.none() | powers)
    return Level(
        stressor=stressor,
        level=level,
        setting=setting,
        cpus=tuple(draw(st.lists(st.integers(0, 500), min_size=level, max_size=level, unique=True))),
        power=known,
        ops_per_s=draw(work),
        temperature_c=draw(degrees),
        settled=draw(st.booleans()),
        problem="" if known else draw(words),
    )


@unhurried
@given(profiles())
def test_what_is_written_is_what_is_read(profile: CpuProfile) -> None:
    written = encode_profile(profile)
    assert decode_profile(written, "p.json") == profile
    assert encode_profile(decode_profile(written, "p.json")) == written


def changed(path: str, value: Any) -> bytes:
    """A good file with one field changed; `...` leaves it out."""
    whole = json.loads(encode_profile(cpu_profile()))
    *way, last = path.split(".")
    at = whole
    for step in way:
        at = at[int(step)] if step.isdigit() else at[step]
    if value is ...:
        del at[last]
    else:
        at[int(last) if last.isdigit() else last] = value
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("wattloom_profile", 2, "wattloom_profile"),
        ("wattloom_profile", "1", "wattloom_profile"),
        ("kind", "gpu", "kind"),
        ("machine.cores", 0, "machine.cores"),
        ("machine.cores", "four", "machine.cores"),
        ("machine.threads", 2, "machine.threads"),
        ("machine.arch", ..., "machine"),
        ("meter.quantity", "device", "meter.quantity"),
        ("meter.provenance", "guessed", "meter.provenance"),
        ("method.seconds", 0, "method.seconds"),
        ("levels.2.power.watts", -1.0, "levels[2].power.watts"),
        ("levels.2.power", "much", "levels[2].power"),
        ("levels.0.level", 9, "levels[0].level"),
        ("levels.0.cpus", [1, 1], "levels[0].cpus"),
        ("levels.1.level", 1, "levels[1]"),
        ("levels.3.power", None, "levels[3].problem"),
        ("idle.0.when", "later", "idle[0].when"),
        ("idle.1.when", "first", "idle[1]"),
        ("idle.0.colour", "red", "idle[0]"),
        ("sources", [], "sources"),
        ("began", ..., "began"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: Any, field: str) -> None:
    with pytest.raises(InputError) as found:
        decode_profile(changed(path, value), "p.json")
    assert found.value.field == f"p.json: {field}", found.value


def test_a_file_of_a_later_version_says_so() -> None:
    with pytest.raises(InputError, match=r"version 7 is not known; this Wattloom reads version 1"):
        decode_profile(changed("wattloom_profile", 7), "p.json")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"watts": NaN}', b"3"])
def test_what_is_no_profile_at_all_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(InputError, match=r"p\.json"):
        decode_profile(data, "p.json")


@unhurried
@given(st.binary(max_size=200))
def test_no_bytes_lead_to_anything_but_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError):
        decode_profile(data, "p.json")


@unhurried
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_a_damaged_file_is_refused_or_still_a_profile(at: int, damage: bytes) -> None:
    whole = bytearray(encode_profile(cpu_profile()))
    place = at % len(whole)
    whole[place : place + len(damage)] = damage
    try:
        found = decode_profile(bytes(whole), "p.json")
    except InputError:
        return
    assert found.problem() is None
