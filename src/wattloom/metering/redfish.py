"""The machine's management controller by Redfish.

Owns where in its tree the figures stand and how one signs in: with a session where the controller has them, which is
ended when we leave; else with user and password in every question.
"""

from contextlib import suppress
from typing import Any, Final

import msgspec

from wattloom.bounds import MOST_FIGURE
from wattloom.energy.forecast import Provenance
from wattloom.machines.profile import MachineProfile
from wattloom.metering.http_source import HttpSource, limits
from wattloom.metering.polled import Polled
from wattloom.metering.protocol import Quantity
from wattloom.metering.source import WALL_W, Answer, Joules, SourceProblem, Watts

ROOT: Final = "/redfish/v1/"
SESSIONS: Final = "/redfish/v1/SessionService/Sessions"
JOULES_PER_KWH: Final = 3.6e6


class RedfishSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machine's management controller by Redfish."""

    url: str = ""
    """Its address, as `https://bmc.example`."""
    chassis: str = ""
    """Which chassis. Empty: the only one."""
    user: str = ""
    """Who asks."""
    password: str = ""
    """Best given by the environment, with the address: WATTLOOM_REDFISH__PASSWORD."""
    certificate: str = ""
    """A file with the certificate to trust; `any`: trust every one."""
    clear_text: bool = False
    """Send credentials where everybody on the way can read them: over plain http to another machine."""


class RedfishSource(HttpSource):
    """One chassis of a controller."""

    name = "redfish"
    summary = "the management controller by Redfish"
    example = "https://bmc.example"
    quantity: Quantity = "wall"
    provenance: Provenance = "measured"
    least_s = 2.0
    """Controllers are small computers, and most have a new figure once a second at best."""
    timeout_s = 5.0
    limits = limits(WALL_W)

    def __init__(self, settings: RedfishSettings) -> None:
        super().__init__(
            settings.url,
            certificate=settings.certificate,
            signs_in=bool(settings.user or settings.password),
            clear_text=settings.clear_text,
        )
        self._chassis = settings.chassis
        self._who, self._word = settings.user, settings.password
        self._signed_in = ""
        """Where the session is that must be ended; `basic`: there is none."""
        self._page: str | None = None
        """Where the power stands."""

    def ask(self) -> list[Answer]:
        if self._page is None:
            self._page = self._find()
        found = power(self._get(self._page))
        if found is None:
            self._page = None
            raise SourceProblem(f"{self.http.where} shows no power now")
        return [found]

    def close(self) -> None:
        session, self._signed_in = self._signed_in, ""
        if session.startswith("/") and self._http is not None:
            with suppress(SourceProblem):
                self.http.send("DELETE", session)
        self.forget()

    def forget(self) -> None:
        super().forget()
        self._signed_in, self._page = "", None

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _find(self) -> str:
        """The page of this chassis that shows power: the present one of the standard, else the older one."""
        chassis = self._get(self._chassis_page())
        for key in ("EnvironmentMetrics", "Power"):
            page = _link(chassis.get(key))
            if page:
                with suppress(SourceProblem):
                    if power(self._get(page)) is not None:
                        return page
        raise SourceProblem(f"{self.http.where} shows no power of chassis {chassis.get('Id', '')}")

    def _chassis_page(self) -> str:
        root = self._get(ROOT, signed=False)
        members = self._get(_link(root.get("Chassis")) or f"{ROOT}Chassis").get("Members")
        pages = [page for each in members or [] if (page := _link(each))]
        names = [page.rstrip("/").rpartition("/")[2] for page in pages]
        if self._chassis:
            if self._chassis not in names:
                raise SourceProblem(f"{self.http.where} has no chassis {self._chassis!r}, but {', '.join(names)}")
            return pages[names.index(self._chassis)]
        if len(pages) != 1:
            listed = ", ".join(names) or "none"
            raise SourceProblem(f"{self.http.where} has these chassis: {listed}. Set redfish.chassis to the right one")
        return pages[0]

    def _get(self, page: str, *, signed: bool = True) -> dict[str, Any]:
        if signed and self._who and not self._signed_in:
            self._sign_in()
        answer = self.http.send("GET", page)
        if answer.status == 401 and self._signed_in.startswith("/"):  # sessions end by themselves after a while
            self._sign_in()
            answer = self.http.send("GET", page)
        if answer.status != 200:
            self.http.get(page)  # says in words what is wrong
        told = answer.json(self.http.where)
        if not isinstance(told, dict):
            raise SourceProblem(f"{self.http.where} does not answer as Redfish")
        return told

    def _sign_in(self) -> None:
        from wattloom.metering.web import basic

        http = self.http
        http.headers.pop("X-Auth-Token", None)
        who = {"UserName": self._who, "Password": self._word}
        answer = http.send("POST", SESSIONS, body=who)
        token = answer.headers.get("x-auth-token", "")
        if answer.status in (200, 201) and token:
            http.headers["X-Auth-Token"] = token
            self._signed_in = _path(answer.headers.get("location", "")) or "basic"
        elif answer.status in (400, 401, 403):
            raise SourceProblem(f"{http.where} does not accept redfish.user with redfish.password ({answer.status})")
        else:
            http.headers["Authorization"] = basic(self._who, self._word)
            self._signed_in = "basic"


def power(page: dict[str, Any]) -> Answer | None:
    """The best figure of an EnvironmentMetrics or a Power page: joules, watts, or kilowatt-hours, which are coarse."""
    joules = _number(page.get("EnergyJoules"))
    if joules:
        return Joules({"energy": joules})
    watts = _number(page.get("PowerWatts"))
    if watts:
        return Watts(watts)
    controls = page.get("PowerControl")
    if isinstance(controls, list) and controls:
        # The first is of the whole chassis; others are of parts of it.
        first = controls[0] if isinstance(controls[0], dict) else {}
        watts = _number(first.get("PowerConsumedWatts"))
        return Watts(watts) if watts else None
    hours = _number(page.get("EnergykWh"))
    return Joules({"energy": hours * JOULES_PER_KWH}) if hours else None


def _number(found: object) -> float | None:
    """A number, or a sensor's excerpt with one in it. Controllers say null or 0 when they do not know."""
    value = found.get("Reading") if isinstance(found, dict) else found
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= MOST_FIGURE
    return float(value) if good and isinstance(value, int | float) else None


def _link(found: object) -> str:
    page = found.get("@odata.id") if isinstance(found, dict) else None
    return page if isinstance(page, str) and page.startswith("/") else ""


def _path(location: str) -> str:
    """Some controllers give the session's address in full."""
    return location if location.startswith("/") else "/" + location.partition("://")[2].partition("/")[2]


def for_machine(profile: MachineProfile, settings: RedfishSettings) -> Polled:
    """The entry point."""
    return Polled(RedfishSource(settings))
