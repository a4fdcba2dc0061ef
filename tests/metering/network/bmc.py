"""A mock-up of a management controller with the shape of DMTF's Redfish schema: service root, sessions, chassis,
environment metrics and the older power page."""

import base64
import json
from typing import Any

from tests.metering.network.server import Reply, Request, as_json

ROOT = "/redfish/v1"
CHASSIS = f"{ROOT}/Chassis"
SESSIONS = f"{ROOT}/SessionService/Sessions"


class Controller:
    """`pages`: which of the two pages with power it has. `sessions`: whether one can sign in."""

    def __init__(
        self, *, metrics: bool = True, power: bool = True, chassis: tuple[str, ...] = ("1",), sessions: bool = True
    ) -> None:
        self.metrics, self.power, self.chassis, self.sessions = metrics, power, chassis, sessions
        self.user, self.password = "", ""
        self.watts: float | None = 180.0
        self.joules: float | None = None
        self.kilowatt_hours: float | None = None
        self.tokens: dict[str, str] = {}
        self.signed_in = 0

    def answer(self, request: Request) -> Reply:
        if request.path == SESSIONS and request.method == "POST":
            return self._sign_in(json.loads(request.body))
        if request.path.rstrip("/") == ROOT:
            return as_json(self._root())
        if self.user and not self._allowed(request):
            return as_json({"error": {"code": "Base.1.0.NoValidSession"}}, 401)
        if request.method == "DELETE":
            return as_json({}, 200 if self.tokens.pop(request.headers.get("x-auth-token", ""), "") else 404)
        found = self._pages().get(request.path)
        return as_json(found or {"error": {"code": "Base.1.0.ResourceMissingAtURI"}}, 200 if found else 404)

    def _sign_in(self, who: dict[str, str]) -> Reply:
        if not self.sessions:
            return as_json({"error": {}}, 404)
        if (who["UserName"], who["Password"]) != (self.user, self.password):
            return as_json({"error": {"code": "Base.1.0.NoValidSession"}}, 401)
        self.signed_in += 1
        token, page = f"token-{self.signed_in}", f"{SESSIONS}/{self.signed_in}"
        self.tokens[token] = page
        return as_json({"@odata.id": page}, 201, X_Auth_Token=token, Location=page)

    def _allowed(self, request: Request) -> bool:
        basic = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return request.headers.get("x-auth-token") in self.tokens or request.headers.get("authorization") == basic

    def _root(self) -> dict[str, Any]:
        return {
            "@odata.id": f"{ROOT}/",
            "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
            "RedfishVersion": "1.17.0",
            "Chassis": {"@odata.id": CHASSIS},
            "SessionService": {"@odata.id": f"{ROOT}/SessionService"},
            "Links": {"Sessions": {"@odata.id": SESSIONS}},
        }

    def _pages(self) -> dict[str, dict[str, Any]]:
        members = [{"@odata.id": f"{CHASSIS}/{name}"} for name in self.chassis]
        pages: dict[str, dict[str, Any]] = {
            CHASSIS: {
                "@odata.type": "#ChassisCollection.ChassisCollection",
                "Members@odata.count": len(members),
                "Members": members,
            }
        }
        for name in self.chassis:
            pages |= self._chassis(name)
        return pages

    def _chassis(self, name: str) -> dict[str, dict[str, Any]]:
        own = f"{CHASSIS}/{name}"
        chassis: dict[str, Any] = {"@odata.type": "#Chassis.v1_22_0.Chassis", "Id": name, "ChassisType": "RackMount"}
        pages = {own: chassis}
        if self.metrics:
            chassis["EnvironmentMetrics"] = {"@odata.id": f"{own}/EnvironmentMetrics"}
            pages[f"{own}/EnvironmentMetrics"] = self._environment(own)
        if self.power:
            chassis["Power"] = {"@odata.id": f"{own}/Power"}
            controls = [
                {
                    "MemberId": "0",
                    "Name": "System Power Control",
                    "PowerConsumedWatts": self.watts,
                    "PowerCapacityWatts": 800,
                },
                {"MemberId": "1", "Name": "CPU", "PowerConsumedWatts": 60},
            ]
            pages[f"{own}/Power"] = {"@odata.type": "#Power.v1_7_1.Power", "PowerControl": controls}
        return pages

    def _environment(self, own: str) -> dict[str, Any]:
        page: dict[str, Any] = {
            "@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics",
            "Id": "EnvironmentMetrics",
        }
        for key, value in (("PowerWatts", self.watts), ("EnergykWh", self.kilowatt_hours)):
            if value is not None:
                page[key] = {"DataSourceUri": f"{own}/Sensors/{key}", "Reading": value}
        if self.joules is not None:
            page["EnergyJoules"] = {"Reading": self.joules}
        return page
