"""Processors by their names: which family and generation, and what servers built with them draw.

Owns how a name is read, `processors.json` (per model the medians over published SPECpower_ssj2008 results, SPEC's and
their owners', as collected by ccf-coefficients in March 2026, with the ids of results that can be looked up), the
generic figures for models that no result has, and how far each is off. Watts are at the plug. Knows no power curve.
"""

import re
from functools import cache
from importlib.resources import files
from statistics import median
from typing import Final, Literal

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
    text = files("wattloom.machines").joinpath("processors.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Known])


# -- what one package draws --------------------------------------------------------------------------------------------


class PerCore(msgspec.Struct, frozen=True):
    """What one physical core of a kind of machine is worth."""

    kind: str
    names: re.Pattern[str]
    idle_w: float
    active_w: float
    """Above idle, with the whole machine busy."""
    spread: float
    """Standard deviation of the logarithm of `active_w` among the results."""
    results: int


KINDS: Final = (
    PerCore("AMD servers of 2019-2026", re.compile("epyc"), 0.71, 2.57, 0.24, 161),
    PerCore("Ampere servers of 2022-2024", re.compile("ampere|altra|neoverse"), 0.71, 0.91, 0.37, 7),
    PerCore(
        "machines of up to 8 cores of 2017-2026",
        re.compile("core-|ryzen|celeron|pentium|xeon-e3-|xeon-e-2"),
        2.69,
        7.76,
        0.25,
        40,
    ),
    PerCore("Intel servers of 2010-2016", re.compile("xeon-(e5|e7|x|l|w)"), 3.95, 11.64, 0.34, 168),
    PerCore("Intel servers of 2019-2026", re.compile("xeon"), 1.51, 4.89, 0.46, 195),
)
ANY: Final = PerCore("servers of 2017-2026", re.compile(""), 1.17, 3.99, 0.55, 445)

SAME_MODEL: Final = 0.08
"""Spread of the watts above idle among machines with the same processors: 526 results of 77 models."""
SAME_FAMILY: Final = 0.25
"""Spread of the watts above idle told from other models of the family: 140 models since 2010, each left out once. By
kind alone it was 0.48 on the same models."""
FEWEST_RELATIONS: Final = 3
"""Models of a family from which its own figures are better than those of the kind."""
SIZE: Final = 0.5
"""Watts of packages of one family grow with the square root of their cores: the rest is the same silicon and board."""


class Match(msgspec.Struct, frozen=True):
    """What a machine's watts were taken from."""

    by: Literal["profile", "catalogue", "processor", "family", "kind"]
    name: str
    idle_w: float
    """Of one package where `by` is a processor or its relations."""
    active_w: float
    spread: float
    """One standard deviation of the logarithm of the watts above idle."""
    results: int
    ids: tuple[str, ...] = ()
    cores: int = 0
    """Of the package. 0: the watts are the machine's."""
    ends_spread: float = 0.0
    """The larger one of idle and of the watts above."""

    @property
    def full_w(self) -> float:
        return self.idle_w + self.active_w

    @property
    def who(self) -> str:
        """Whose results these are, in words."""
        if self.by == "processor":
            some = f" (such as {', '.join(self.ids)})" if self.ids else ""
            return f"median of {self.results} SPECpower results with this processor{some}"
        whose = f"{self.name} processors" if self.by == "family" else self.name
        return f"{'median' if self.by == 'family' else 'mean'} of {self.results} SPECpower results, {whose}"


def kind_of(name: str) -> PerCore:
    """The nearest relations of a machine, by the slug of its processor."""
    return next((kind for kind in KINDS if kind.names.search(name)), ANY)


def package_of(cpu: str, cores: int) -> Match:
    """One package of a processor: by its own results, else, taken to have so many cores, by its relations."""
    return published(cpu) or relations(cpu, cores)


def published(cpu: str | None) -> Match | None:
    """One package of a processor that results have; names in results may or may not carry the package's letter."""
    model = model_slug(cpu or "")
    known = known_processors().get(model)
    if known is None:
        return None
    spread, active = max(known.active_spread, SAME_MODEL), known.full_w - known.idle_w
    ends = max(known.idle_spread, known.active_spread)
    return Match("processor", model, known.idle_w, active, spread, known.results, known.ids, known.cores, ends)


def relations(model: str, cores: int, without: str = "") -> Match:
    """One package of a processor that no result has: from its family if that has enough models, else from its kind."""
    kin = [one for name, one in kin_of(model).items() if name != without]
    if len(kin) < FEWEST_RELATIONS:
        kind = kind_of(model)
        idle, active = cores * kind.idle_w, cores * kind.active_w
        return Match("kind", kind.kind, idle, active, kind.spread, kind.results, cores=cores, ends_spread=kind.spread)
    idle = median(one.idle_w * (cores / one.cores) ** SIZE for one in kin)
    active = median((one.full_w - one.idle_w) * (cores / one.cores) ** SIZE for one in kin)
    results, spread = sum(one.results for one in kin), SAME_FAMILY
    return Match("family", named(model).family, idle, active, spread, results, cores=cores, ends_spread=spread)


def usual_cores(model: str) -> int | None:
    """Of one package, as most of the processor's family have them. None: nothing tells."""
    kin = kin_of(model).values()
    return round(median(one.cores for one in kin)) if kin else None


def kin_of(model: str) -> dict[str, Known]:
    """What results have of the processor's family."""
    family = named(model).family
    return {name: one for name, one in known_processors().items() if family and named(name).family == family}
