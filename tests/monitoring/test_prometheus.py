"""A real Prometheus scrapes us, and we read our figures back from it; its own tool likes our text; Grafana's own model
takes our dashboard, and every expression in it brings data."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.metering.scripted import Scripted
from tests.metering.trees import machine
from tests.monitoring.scripted import ScriptedCensus

from wattloom.monitoring.accountant import Accountant
from wattloom.monitoring.cgroup_names import Place
from wattloom.monitoring.exporter import Exporter
from wattloom.monitoring.metrics import METRICS
from wattloom.monitoring.otel import otel_name
from wattloom.monitoring.snapshot import DeviceUse, DeviceUser, TaskUse
from wattloom.monitoring.top_processes import Detail
from wattloom.serving.access import Access
from wattloom.serving.address import Address
from wattloom.serving.pages import metrics_text

TOKEN = "a-token-of-enough-length"
MISSING = "NOT TESTED: {}. The program {} is missing (Debian: apt-get install prometheus)."
PLACES = (
    Place("/system.slice/ssh.service", unit="ssh.service"),
    Place("/docker/a", "aa" * 32, "docker"),
    Place("/kubepods/b", "bb" * 32, "containerd", "d8b7f0ac-3a52-4b32-9b5a-2d3e4f5a6b7c"),
    Place("/machine/guest", vm="guest"),
)


class Busy(ScriptedCensus):
    """A machine with something of everything, which works a little at each look."""

    def __init__(self, meter: Scripted) -> None:
        super().__init__()
        self._meter = meter
        for pid, place in enumerate((*PLACES, Place()), start=1):
            self.start(pid, place)

    def sample(self) -> Any:
        for pid in self.living:
            self.run(pid, 0.01 * pid)
        self.busy_s += 0.01
        self._meter.joules += 20.0
        return super().sample()


def busy_accountant() -> Accountant:
    meter, looks = Scripted(), [0]

    def devices(now: float) -> tuple[DeviceUse, ...]:
        looks[0] += 1
        users = (DeviceUser("aa" * 32, "", "", 40.0 * looks[0]),)
        parts = (60.0 * looks[0], 15.0 * looks[0], 5.0 * looks[0], users)
        return (DeviceUse("GPU-1", 0, "A100", "nvidia", *parts, 60.0, 0.5, 1 << 30, 1 << 34, "measured"),)

    def tasks(now: float) -> tuple[TaskUse, ...]:
        return (TaskUse("resize", "n1", "cpu", 3.0 * looks[0], 2 * looks[0], 1.0, "measured"),)

    return Accountant(
        Busy(meter),
        meter,
        machine(provenance="measured"),
        node="n1",
        policy="pro-rata",
        devices=devices,
        tasks=tasks,
        own_pid=5,
    )


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    accountant = busy_accountant()
    with Exporter(accountant, Address("127.0.0.1", 0), access=Access(TOKEN), detail=Detail(3), interval_s=0.2) as made:
        until = time.monotonic() + 20.0
        while not made.latest()[0].last.seconds and time.monotonic() < until:
            time.sleep(0.05)  # watts are shown from the second look on
        yield made


class Prometheus:
    """A real one, which scrapes every second."""

    def __init__(self, program: str, folder: Path, exporter: Exporter) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            "- job_name: wattloom\n"
            f"  authorization: {{credentials: {TOKEN}}}\n"
            f"  static_configs: [{{targets: ['{exporter.address}']}}]\n"
        )
        files = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        address = f"--web.listen-address=127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [program, *files, address, "--log.level=error"], stderr=subprocess.DEVNULL, cwd=folder
        )

    def query(self, expression: str) -> list[Any]:
        words = urllib.parse.urlencode({"query": expression})
        url = f"http://127.0.0.1:{self.port}/api/v1/query?{words}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code == 503:  # it has only just begun
                return []
            pytest.fail(f"{expression}: {refused.read().decode()}")
        assert found["status"] == "success"
        return list(found["data"]["result"])

    def wait_for(self, expression: str) -> list[Any]:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            try:
                if found := self.query(expression):
                    return found
            except OSError:
                assert self._process.poll() is None, "Prometheus has ended"
            time.sleep(0.3)
        pytest.fail(f"{expression} brings nothing")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def prometheus(exporter: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip(MISSING.format("a real Prometheus", "prometheus"))
    made = Prometheus(program, tmp_path_factory.mktemp("prometheus"), exporter)
    try:
        made.wait_for("count_over_time(wattloom_node_energy_joules_total[1m]) >= 4")
        yield made
    finally:
        made.end()


def test_prometheus_reads_back_what_the_meter_counted(prometheus: Prometheus, exporter: Exporter) -> None:
    before = exporter.latest()[0].totals.meter_j
    found = prometheus.wait_for(f"wattloom_node_energy_joules_total >= {before}")
    assert before <= float(found[0]["value"][1]) <= exporter.latest()[0].totals.meter_j
    labels = found[0]["metric"]
    assert (labels["node"], labels["provenance"], labels["quantity"]) == ("n1", "measured", "wall")


def test_what_prometheus_has_adds_up(prometheus: Prometheus) -> None:
    parts = "wattloom_entities_energy_joules_total + wattloom_idle_energy_joules_total"
    rest = "wattloom_overhead_energy_joules_total + wattloom_unattributed_energy_joules_total"
    found = prometheus.query(f"sum by (node) (wattloom_node_energy_joules_total) - sum by (node) ({parts} + {rest})")
    assert float(found[0]["value"][1]) == pytest.approx(0.0, abs=1e-6)


def test_the_right_token_is_needed(prometheus: Prometheus) -> None:
    assert float(prometheus.query("up")[0]["value"][1]) == 1.0


def test_promtool_has_no_complaint(exporter: Exporter) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip(MISSING.format("promtool's opinion", "promtool"))
    text, _ = metrics_text(exporter.presented)
    checked = subprocess.run([program, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_every_metric_is_shown_by_a_machine_that_has_something_of_everything(exporter: Exporter) -> None:
    text = metrics_text(exporter.presented)[0].decode()
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert shown == {metric.full_name for metric in METRICS}


# -- names and the reference -------------------------------------------------------------------------------------------


def test_names_are_in_base_units_and_say_so() -> None:
    for metric in METRICS:
        assert metric.name.startswith("wattloom_")
        assert not metric.unit or metric.name.endswith(f"_{metric.unit}")
        assert "_" not in otel_name(metric)
    assert len({otel_name(metric) for metric in METRICS}) == len(METRICS)


def test_the_reference_lists_every_metric_with_its_labels() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `wattloom_")]
    listed = {row[0].strip("| `"): (row[1], row[2].replace("`", "")) for row in rows}
    assert listed == {metric.full_name: (metric.kind, ", ".join(metric.labels)) for metric in METRICS}


# -- the dashboard -----------------------------------------------------------------------------------------------------


def dashboard() -> Any:
    return json.loads((files("wattloom.monitoring") / "dashboards" / "wattloom.json").read_text())


def expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]


@pytest.mark.parametrize("expression", expressions())
def test_every_expression_of_the_dashboard_brings_data(expression: str, prometheus: Prometheus) -> None:
    plain = expression.replace("$__rate_interval", "10s").replace("$__range", "10s").replace("$node", ".*")
    assert "$" not in plain
    assert prometheus.wait_for(plain)


def test_grafanas_own_model_takes_the_dashboard_and_loses_nothing() -> None:
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard, Panel
    from grafana_foundation_sdk.models.prometheus import Dataquery

    plugins.register_default_plugins()
    ours = dashboard()
    model = Dashboard.from_json(ours)
    back = json.loads(JSONEncoder().encode(model))
    assert list(lost(ours, back)) == []
    panels = [panel for panel in model.panels or [] if isinstance(panel, Panel) and panel.targets]
    assert all(isinstance(target, Dataquery) for panel in panels for target in panel.targets or [])
    assert len(panels) == len(expressions())


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Where the second lacks something of the first."""
    if isinstance(before, dict):
        for key, value in before.items():
            if isinstance(after, dict) and key in after:
                yield from lost(value, after[key], f"{path}/{key}")
            elif value not in (None, {}, [], "", False):
                yield f"{path}/{key}"
    elif isinstance(before, list):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{path}/{number}")
    elif before != after:
        yield path


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
