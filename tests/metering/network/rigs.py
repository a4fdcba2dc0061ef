"""Every meter that asks, on a source that the conformance kit controls: real HTTP, a real file, a real program."""

import json
import stat
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.metering.network.server import Request, Server, as_json, page

from wattloom.metering.ipmi import IpmiSettings, IpmiSource
from wattloom.metering.kepler import KeplerSettings, KeplerSource
from wattloom.metering.pcp import PcpSettings, PcpSource
from wattloom.metering.pdu import PduSettings, PduSource
from wattloom.metering.polled import Polled
from wattloom.metering.powerapi import ReportFile, ReportPage
from wattloom.metering.prometheus import PrometheusSettings, PrometheusSource
from wattloom.metering.redfish import RedfishSettings, RedfishSource
from wattloom.metering.scaphandre import ScaphandreSource
from wattloom.metering.source import Source

START = 1000.0
EPOCH = 1_700_000_000.0
FAULTS = ("reset", "html", "garbage", "503")


class Rig:
    """A machine at 50 W. Its own clock is the meter's, so that hours pass in no time."""

    watts = 50.0
    counts = True
    lag_s = 0.0

    def __init__(self) -> None:
        self.now = START
        self.joules = 1000.0
        self.power = self.watts
        self._frozen: tuple[float, float] | None = None
        self._meters: list[Polled] = []

    def source(self) -> Source:
        raise NotImplementedError

    def fail(self) -> None:
        raise NotImplementedError

    def mend(self) -> None:
        raise NotImplementedError

    def meter(self) -> Polled:
        meter = Polled(self.source(), clock=lambda: self.now)
        self._meters.append(meter)
        return meter

    def catch_up(self, now: float) -> None:
        self.now = max(self.now, now)
        for meter in self._meters:
            meter.refresh(10.0)

    def spend(self, seconds: float) -> float:
        self.joules += self.watts * seconds
        self.power = self.watts
        return self.watts * seconds

    def close(self) -> None:
        for meter in self._meters:
            meter.close()

    def near_wrap(self) -> bool:
        return False

    def restart(self) -> bool:
        self.joules = 0.0
        return self.counts

    def jump(self) -> None:
        self.joules += 1e9
        self.power = 1e6

    def shown(self) -> tuple[float, float]:
        """Joules and watts, as the source shows them now."""
        return self._frozen or (self.joules, self.power)


class WebRig(Rig):
    def __init__(self, server: Server, answers: dict[str, Callable[[Request], Any]], name: str) -> None:
        super().__init__()
        self.server = server
        self.url = f"{server.url}/{name}"
        answers[name] = self.answer
        server.fail("")

    def answer(self, request: Request) -> Any:
        raise NotImplementedError

    def fail(self) -> None:
        self.server.fail("reset")

    def garble(self) -> None:
        self.server.fail("html")

    def forbid(self) -> None:
        self.server.fail("401")

    def mend(self) -> None:
        self._frozen = None
        self.server.fail("")


class Counting:
    """A source that counts can be seen to stand still."""

    def freeze(self: Any) -> None:
        self._frozen = self.shown()


class ScaphandreRig(Counting, WebRig):
    def source(self) -> Source:
        return ScaphandreSource(self.url)

    def answer(self, request: Request) -> Any:
        joules, watts = self.shown()
        return page(
            "# TYPE scaph_host_energy_microjoules counter\n"
            f"scaph_host_energy_microjoules {joules * 1e6:.0f}\nscaph_host_power_microwatts {watts * 1e6:.0f}\n"
            'scaph_process_power_consumption_microwatts{pid="1",cmdline="a \\"b\\" }"} 12\n'
        )


class ScaphandrePowerRig(ScaphandreRig):
    """One that shows no energy."""

    counts = False
    freeze = None  # type: ignore[assignment]

    def answer(self, request: Request) -> Any:
        return page(f"scaph_host_power_microwatts {self.shown()[1] * 1e6:.0f}\n")


class OldKeplerRig(Counting, WebRig):
    def source(self) -> Source:
        return KeplerSource(KeplerSettings(self.url))

    def answer(self, request: Request) -> Any:
        joules, _ = self.shown()
        shares = {
            ("package", "dynamic"): 0.5,
            ("package", "idle"): 0.25,
            ("dram", "dynamic"): 0.2,
            ("dram", "idle"): 0.05,
        }
        lines = [
            f'kepler_node_{part}_joules_total{{instance="n1",mode="{mode}",package="0",source="rapl"}} {share * joules}'
            for (part, mode), share in shares.items()
        ]
        return page("\n".join([*lines, 'kepler_node_core_joules_total{instance="n1",mode="dynamic"} 7']) + "\n")


class NewKeplerRig(Counting, WebRig):
    def source(self) -> Source:
        return KeplerSource(KeplerSettings(self.url))

    def answer(self, request: Request) -> Any:
        joules, _ = self.shown()
        return page(
            f'kepler_node_cpu_joules_total{{node_name="n1",path="/a",zone="package"}} {0.8 * joules}\n'
            f'kepler_node_cpu_joules_total{{node_name="n1",path="/b",zone="dram"}} {0.2 * joules}\n'
            f'kepler_node_cpu_joules_total{{node_name="n1",path="/c",zone="core"}} {0.5 * joules}\n'
        )


class KeplerPlatformRig(WebRig):
    counts = False

    def source(self) -> Source:
        return KeplerSource(KeplerSettings(self.url, quantity="wall"))

    def answer(self, request: Request) -> Any:
        return page(f'kepler_platform_watts{{node_name="n1",source="redfish"}} {self.shown()[1]}\n')


class PrometheusRig(WebRig):
    """The server's answer to the series with its time; a real server is tried elsewhere."""

    unit = "joules"

    def source(self) -> Source:
        unit: Any = self.unit
        return PrometheusSource(PrometheusSettings(self.url, "node_energy", unit))

    def answer(self, request: Request) -> Any:
        now = EPOCH + self.now
        value = self.shown()[0 if self.unit == "joules" else 1]
        series = [("time", now), ("value", value)]
        found = [{"metric": {"wattloom_mark": mark}, "value": [now, repr(figure)]} for mark, figure in series]
        return as_json({"status": "success", "data": {"resultType": "vector", "result": found}})


class PrometheusPowerRig(PrometheusRig):
    unit = "watts"
    counts = False


class ReportPageRig(WebRig):
    counts = False

    def source(self) -> Source:
        return ReportPage(self.url, "rapl")

    def answer(self, request: Request) -> Any:
        half = self.shown()[1] / 2
        return page(
            f'power_estimation_watts{{sensor="s",target="rapl",socket="0"}} {half}\n'
            f'power_estimation_watts{{sensor="s",target="rapl",socket="1"}} {half}\n'
            'power_estimation_watts{sensor="s",target="web"} 3\n'
        )


class PcpRig(Counting, WebRig):
    """pmproxy's answers in short; the real one is tried elsewhere."""

    def source(self) -> Source:
        return PcpSource(PcpSettings(self.url))

    def answer(self, request: Request) -> Any:
        if "/context" in request.path:
            return as_json({"context": 7})
        if "/indom" in request.path:
            return as_json({"instances": [{"instance": 0, "name": "package-0"}, {"instance": 1, "name": "core"}]})
        instances = [{"instance": 0, "value": int(self.shown()[0])}, {"instance": 1, "value": 3}]
        return as_json({"values": [{"name": "denki.rapl.sysfs", "instances": instances}]})


class RedfishRig(WebRig):
    counts = False

    def source(self) -> Source:
        return RedfishSource(RedfishSettings(self.server.url))

    def answer(self, request: Request) -> Any:
        chassis = "/redfish/v1/Chassis"
        pages: dict[str, Any] = {
            "/redfish/v1/": {"Chassis": {"@odata.id": chassis}},
            chassis: {"Members": [{"@odata.id": f"{chassis}/1"}]},
            f"{chassis}/1": {"Id": "1", "Power": {"@odata.id": f"{chassis}/1/Power"}},
            f"{chassis}/1/Power": {"PowerControl": [{"PowerConsumedWatts": self.shown()[1]}]},
        }
        return as_json(pages.get(request.path), 200 if request.path in pages else 404)


class PduRig(WebRig):
    counts = False

    def source(self) -> Source:
        return PduSource(PduSettings(self.url, "outlets.1.milliwatts", factor=1e-3))

    def answer(self, request: Request) -> Any:
        return as_json({"outlets": [{"milliwatts": 5}, {"milliwatts": self.shown()[1] * 1e3}]})


class PduEnergyRig(Counting, PduRig):
    counts = True

    def source(self) -> Source:
        return PduSource(PduSettings(self.url, "state.energy", unit="joules", factor=3600.0))

    def answer(self, request: Request) -> Any:
        return page(f"<state><energy>{self.shown()[0] / 3600.0:.9f} Wh</energy></state>")


class ReportFileRig(Rig):
    """Two sockets report together every quarter of a second."""

    counts = False
    remembers = True
    lag_s = 0.5
    EVERY_S = 0.25

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir()
        self.path = folder / "reports.json"
        self.written = START - 2.0
        self._report()

    def source(self) -> Source:
        return ReportFile(str(self.path), "rapl")

    def _report(self) -> None:
        with self.path.open("a") as file:
            while self.written + self.EVERY_S <= self.now:
                self.written += self.EVERY_S
                moment = datetime(2024, 5, 1) + timedelta(seconds=self.written)
                for socket in (0, 1):
                    report = {"timestamp": moment.isoformat(), "sensor": "s", "target": "rapl", "power": self.power / 2}
                    file.write(json.dumps(report | {"metadata": {"scope": "cpu", "socket": socket}}) + "\n")

    def catch_up(self, now: float) -> None:
        self.now = max(self.now, now)
        if self.path.exists():
            self._report()
        super().catch_up(now)

    def fail(self) -> None:
        self.path.rename(self.path.with_suffix(".away"))

    def mend(self) -> None:
        self.path.with_suffix(".away").rename(self.path)


class IpmiRig(Rig):
    """A program with ipmitool's output: the real one is tried against a simulated controller elsewhere."""

    counts = False

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir()
        self.folder = folder
        self.tool = folder / "ipmitool"
        self.tool.write_text(f"#!/bin/sh\ncat {folder}/output\n")
        self.tool.chmod(self.tool.stat().st_mode | stat.S_IXUSR)
        self.broken = ""

    def source(self) -> Source:
        return IpmiSource(IpmiSettings(enabled=True), tool=str(self.tool))

    def catch_up(self, now: float) -> None:
        reading = (
            f"\n    Instantaneous power reading:  {self.power:.0f} Watts\n    Power reading state is:  activated\n"
        )
        (self.folder / "output").write_text(self.broken or reading)
        super().catch_up(now)

    def meter(self) -> Polled:
        made = super().meter()
        self.catch_up(self.now)
        return made

    def fail(self) -> None:
        self.broken = "Could not open device at /dev/ipmi0"
        self.catch_up(self.now)

    def mend(self) -> None:
        self.broken = ""
        self.catch_up(self.now)


WEB_RIGS: dict[str, type[WebRig]] = {
    "scaphandre": ScaphandreRig,
    "scaphandre-power": ScaphandrePowerRig,
    "kepler-old": OldKeplerRig,
    "kepler-new": NewKeplerRig,
    "kepler-platform": KeplerPlatformRig,
    "prometheus-joules": PrometheusRig,
    "prometheus-watts": PrometheusPowerRig,
    "powerapi-page": ReportPageRig,
    "pcp": PcpRig,
    "redfish": RedfishRig,
    "pdu-watts": PduRig,
    "pdu-energy": PduEnergyRig,
}
FILE_RIGS: dict[str, Callable[[Path], Rig]] = {"powerapi-file": ReportFileRig, "ipmi": IpmiRig}
