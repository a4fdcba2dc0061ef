"""Processors by their names: which family and generation, and what is known of servers built with them.

Owns how a name is read and `processors.json`: per model the medians over published SPECpower_ssj2008 results, as
collected by ccf-coefficients (March 2026), with the ids of results that can be looked up. Knows no power curve.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

_NOISE: Final = re.compile(
    r"\((r|tm|c)\)|[®™]|\(.*|@.*|\b\d+(\.\d+)?\s*[gm]hz\b.*|\b\d+th gen\b|with radeon.*"
    r"|\b(intel|amd|cpu|processors?|dell sku.*|(quad|dual|six|\d+)?-core|\d+ cores)\b"
)


class Family(msgspec.Struct, frozen=True):
    """Processors of one design, and when servers with them came."""

    name: str
    line: str
    """Which designs it follows: `intel`, `intel-entry` (one small package), `amd`, `arm`."""
    year: float
    names: str
    """What the names of its models look like."""


_TIER: Final = "(platinum|gold|silver|bronze)"
FAMILIES: Final = (
    Family("netburst", "intel", 2006, r"pentium-d|xeon-7[01]\d\d"),
    Family("core-2-entry", "intel-entry", 2008, r"^(xeon-)?(3[02]\d\d|[xle]3[123]\d\d)"),
    Family("core-2", "intel", 2008, r"^xeon-(5[13]\d\d|[xle](5[234]|7[34])\d\d)"),
    Family("nehalem-entry", "intel-entry", 2009, r"^xeon-[xle]34\d\d"),
    Family("nehalem", "intel", 2009, r"^xeon-[xle](55|75)\d\d"),
    Family("westmere-entry", "intel-entry", 2010, r"core-i\d-\d\d\d[a-z]?$"),
    Family("westmere", "intel", 2010, r"^xeon-[xle]?56\d\d|e7-\d{4}$"),
    Family("sandy-bridge-entry", "intel-entry", 2012, r"e3-12\d\dl?$"),
    Family("sandy-bridge", "intel", 2012, r"e5-\d{4}l?$"),
    Family("e3-v2-v3", "intel-entry", 2013, r"e3-\d{4}l?v[23]$|core-i\d-4\d\d\d"),
    Family("e3-v5-v6", "intel-entry", 2016, r"e3-\d{4}l?v[56]$"),
    Family("ivy-bridge", "intel", 2013, r"v2$"),
    Family("haswell", "intel", 2014, r"v3$"),
    Family("broadwell", "intel", 2016, r"v4$"),
    Family("skylake", "intel", 2018, rf"{_TIER}-\d1\d\d"),
    Family("cascade-lake", "intel", 2019, rf"{_TIER}-\d2\d\d"),
    Family("cooper-lake", "intel", 2020, rf"{_TIER}-\d3\d\dh"),
    Family("ice-lake", "intel", 2021, rf"{_TIER}-\d3\d\d|xeon-d-27"),
    Family("sapphire-rapids", "intel", 2023, rf"{_TIER}-\d4\d\d|^xeon-8480"),
    Family("emerald-rapids", "intel", 2024, rf"{_TIER}-\d5\d\d|^xeon-8592"),
    Family("xeon-6-e", "intel", 2024, r"xeon-(gold-)?6\d\d\de"),
    Family("xeon-6-p-entry", "intel-entry", 2025, r"xeon-63\d\dp"),
    Family("xeon-6-p", "intel", 2025, r"xeon-(gold-)?6\d\d\dp"),
    Family("e-2100-2200", "intel-entry", 2019, r"xeon-e-2[12]\d\d"),
    Family("e-2300", "intel-entry", 2021, r"xeon-e-23\d\d"),
    Family("e-2400", "intel-entry", 2023, r"xeon-e-24\d\d"),
    Family("k10", "amd", 2009, r"opteron-(2[234]|8[34]|41|61)\d\d"),
    Family("bulldozer", "amd", 2012, r"opteron-(4[23]|6[23])\d\d"),
    Family("naples", "amd", 2018, r"epyc-7\w\w1"),
    Family("rome", "amd", 2019, r"epyc-7\w\w2"),
    Family("milan", "amd", 2021, r"epyc-7\w\w3"),
    Family("genoa", "amd", 2023, r"epyc-9\w\w4"),
    Family("siena", "amd", 2023, r"epyc-8\w\w4"),
    Family("turin", "amd", 2024, r"epyc-9\w\w5"),
)
LINES: Final = (
    ("arm", r"ampere|altra|neoverse|grace|cortex|^arm|graviton"),
    ("amd", r"epyc|opteron|ryzen|athlon|turion"),
    ("intel-entry", r"core-|pentium|celeron|atom|xeon-(e-|e3-|w-)|epyc-4"),
    ("intel", r"xeon"),
)


MAKERS: Final = (
    *("acer", "apple", "asus", "cisco", "colfax", "dell", "depo", "fujitsu", "gigabyte", "h3c", "hitachi", "hpe"),
    *("huawei", "ibm", "inspur", "intel", "lenovo", "nec", "nettrix", "nokia", "powerleader", "quanta", "sgi", "sugon"),
    *("sun", "supermicro", "tyan", "uniwide", "verari", "xslab", "zt"),
)
"""Of whole machines."""
_MAKERS: Final = {"hewlett": "hpe", "hp": "hpe", "super": "supermicro", "giga-byte": "gigabyte", "xfusion": "huawei"}


class Named(msgspec.Struct, frozen=True):
    """What a processor's name says."""

    model: str
    """As the catalogue writes it; empty: there is no name."""
    family: str = ""
    line: str = ""
    year: float | None = None
    """When servers with its family came."""


class Known(msgspec.Struct, frozen=True):
    """Servers with one model of processor: medians over published results, watts at the plug."""

    results: int
    cores: int
    """Per package."""
    threads: int
    """Per core."""
    idle_w: float
    """Per package, everything around it included."""
    full_w: float
    idle_spread: float
    """Standard deviation of the logarithm, as leaving one result out shows it."""
    active_spread: float
    """The same of what is drawn above idle."""
    years: tuple[int, int]
    ids: tuple[str, ...] = ()
    """Some of the results, as SPEC numbers them."""


def model_slug(name: str) -> str:
    """`Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz` is `xeon-e5-2699v4`."""
    plain = _NOISE.sub(" ", name.lower())
    plain = re.sub(r"\s+v(\d)\b", r"v\1", plain.strip())
    return re.sub(r"\be-e-", "e-", re.sub(r"[^a-z0-9]+", "-", plain)).strip("-")


@cache
def named(name: str | None) -> Named:
    """What the name of a processor says of it."""
    model = model_slug(name or "")
    if not model:
        return Named("")
    family = next((one for one in FAMILIES if re.search(one.names, model)), None)
    if family is not None:
        return Named(model, family.name, family.line, family.year)
    return Named(model, "", next((line for line, names in LINES if re.search(names, model)), ""))


def maker_of(text: str | None) -> str:
    """The maker of a machine by the first word known: `Hewlett Packard Enterprise ProLiant` is `hpe`; else empty."""
    words: list[str] = re.findall(r"[a-z0-9-]+", (text or "").lower())
    for word in words:
        known = _MAKERS.get(word, word)
        if known in MAKERS:
            return known
        if known.startswith("asus"):
            return "asus"
    return ""


@cache
def known_processors() -> dict[str, Known]:
    """All models that published results know, by name."""
    text = files("wattloom.cluster").joinpath("processors.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Known])
