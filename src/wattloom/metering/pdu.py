"""A power strip or plug that tells what an outlet draws: over HTTP, or by SNMP.

Owns where in an answer the number stands: in JSON, in XML, or as the whole page.
"""

import re
from math import isfinite
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from wattloom.bounds import MOST_FIGURE
from wattloom.energy.forecast import Provenance
from wattloom.files import UNREADABLE
from wattloom.machines.profile import MachineProfile
from wattloom.metering.configured import in_clear, not_set_up, withheld
from wattloom.metering.http_source import HttpSource, limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import WALL_W, Answer, Joules, SourceProblem, Watts
from wattloom.setting_groups import Positive

SNMP_PORT: Final = 161
_OID: Final = re.compile(r"\.?[0-2](\.\d+){2,}")
_ENCODING: Final = re.compile(r"^<\?xml[^>]*encoding=[\"'](iso-8859-1|latin-?1|us-ascii)[\"']", re.IGNORECASE)
"""Of pages that are in one byte for each character, as they themselves say."""
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class PduSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A power strip that tells what an outlet draws, by HTTP or SNMP."""

    url: str = ""
    """Address of a page with the watts in it, or of an SNMP agent as `snmp://strip.example`."""
    path: str = ""
    """Where in the page: names and numbers with dots for JSON, as `outlets.0.watts`; for SNMP the object's number."""
    unit: Literal["watts", "joules"] = "watts"
    """What the number is: power, or energy that only rises."""
    factor: Positive = 1.0
    """What the number must be multiplied with to be watts or joules: 3600000 for kilowatt-hours."""
    community: str = "public"
    """SNMP's word of admission."""
    user: str = ""
    """Who asks, over HTTP."""
    password: str = ""
    """Best given by the environment, with the address: WATTLOOM_PDU__PASSWORD."""
    certificate: str = ""
    """A file with the certificate to trust; `any`: trust every one."""
    clear_text: bool = False
    """Send credentials where everybody on the way can read them: over plain http, or as SNMP's community, to another
    machine."""


class PduSource(HttpSource):
    """One outlet."""

    name = "pdu"
    summary = "a power strip, by HTTP or SNMP"
    example = "http://strip.example/status.json"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    timeout_s = 3.0
    limits = limits(WALL_W)

    def __init__(self, settings: PduSettings) -> None:
        super().__init__(
            settings.url,
            user=settings.user,
            password=settings.password,
            certificate=settings.certificate,
            clear_text=settings.clear_text,
        )
        self._settings = settings
        self._asked = 0

    def missing(self) -> str | None:
        if not self.url.startswith("snmp://"):
            return super().missing()
        if not self._settings.path:
            return not_set_up("pdu", "path", "1.3.6.1.4.1.318.1.1.26.6.3.1.7.1")
        if not _OID.fullmatch(self._settings.path):
            return f"the setting pdu.path must be an object's number as 1.3.6.1.4.1.318, not {self._settings.path!r}"
        if _target(self.url) is None:
            return "the setting pdu.url must be as snmp://host or snmp://host:161"
        secret = self._settings.community != PduSettings().community
        return withheld("pdu") or in_clear("pdu", self.url, secret, self._settings.clear_text)

    def ask(self) -> list[Answer]:
        value = (self._by_snmp() if self.url.startswith("snmp://") else self._by_http()) * self._settings.factor
        if not isfinite(value) or value < 0.0:
            raise SourceProblem(f"the strip shows {value}, which cannot be")
        if self._settings.unit == "joules":
            return [Joules({"energy": value})]
        if value == 0.0:
            raise SourceProblem("the strip shows 0 W: this machine runs, so that is another outlet's")
        return [Watts(value)]

    def _by_snmp(self) -> float:
        from wattloom.metering.snmp import get_number

        self._asked = (self._asked + 1) & 0x7FFFFFFF
        host, port = _target(self.url) or ("", SNMP_PORT)
        settings = self._settings
        return get_number(host, port, settings.community, settings.path, self._asked, self.timeout_s)

    def _by_http(self) -> float:
        body = self.http.get().body
        return number_at(body, self._settings.path, self.http.where)


def number_at(body: bytes, path: str, where: str) -> float:
    """The number at a place in a page. Without a place, the page is the number."""
    if not path:
        found: Any = body.decode(errors="replace").strip()[:100]
    elif body.lstrip().startswith(b"<"):
        found = _in_xml(body, path, where)
    else:
        found = _in_json(body, path, where)
    if isinstance(found, str) and (text := _NUMBER.match(found.strip())):
        return float(text[0])  # as in "12.5 W"
    if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= MOST_FIGURE:
        return float(found)
    raise SourceProblem(f"{where} has no number at pdu.path {path!r}, but {str(found)[:40]!r}")


def _in_json(body: bytes, path: str, where: str) -> Any:
    try:
        found = msgspec.json.decode(body)
    except UNREADABLE as problem:
        raise SourceProblem(f"{where} answers neither with JSON nor with XML") from problem
    for step in path.split("."):
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (KeyError, IndexError, ValueError, TypeError) as problem:
            there = f"names {', '.join(list(found)[:8])}" if isinstance(found, dict) else type(found).__name__
            raise SourceProblem(f"{where} has nothing at {step!r} of pdu.path {path!r}; there: {there}") from problem
    return found


def _in_xml(body: bytes, path: str, where: str) -> Any:
    """Names of elements with dots between; the outermost may be left out."""
    from xml.etree.ElementTree import ParseError, fromstring

    text = _as_utf8(body, where)
    if "<!" in text.replace("<!--", ""):  # a page of HTML, or entities that could grow without end
        raise SourceProblem(f"{where} is a web page and has no figures for programs: look for its JSON, XML or SNMP")
    try:
        root = fromstring(text)
    except (ParseError, ValueError) as problem:
        raise SourceProblem(f"{where} answers with XML that cannot be read") from problem
    steps = path.split(".")
    found = root.find("/".join(steps[1:] if steps[0] == root.tag and len(steps) > 1 else steps))
    if found is None:
        raise SourceProblem(
            f"{where} has nothing at pdu.path {path!r}; there: {', '.join(each.tag for each in root[:8])}"
        )
    return found.text or ""


def _as_utf8(body: bytes, where: str) -> str:
    """The page as text that the parser reads as we do: another encoding would let it see what we have not looked at.
    What the page says of its own encoding is left out."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = body.decode("latin-1")
        if _ENCODING.search(text) is None:
            raise SourceProblem(f"{where} answers with XML that is not in UTF-8") from None
    if "\0" in text:  # as in UTF-16 and UTF-32
        raise SourceProblem(f"{where} answers with XML that is not in UTF-8")
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text)


def _target(url: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(url)
        return (parts.hostname, parts.port or SNMP_PORT) if parts.hostname else None
    except ValueError:
        return None


def for_machine(profile: MachineProfile, settings: PduSettings) -> Polled:
    """The entry point."""
    return Polled(PduSource(settings))
