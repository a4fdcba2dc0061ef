"""A real Prometheus server that collects from a small exporter, asked by our meter."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.metering.network.programs import free_port, running, tool
from tests.metering.network.server import Request, Server, eventually, page

from wattloom.energy.forecast import Unknown
from wattloom.metering.polled import Polled
from wattloom.metering.prometheus import PrometheusSettings, PrometheusSource
from wattloom.metering.protocol import Sample

WATTS = 40.0


class Exporter:
    """A machine at 40 W since the test began."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        joules = WATTS * (time.monotonic() - self.began)
        return page(
            f'# TYPE node_joules_total counter\nnode_joules_total{{node="a"}} {joules}\n'
            f'# TYPE node_watts gauge\nnode_watts{{node="a"}} {WATTS}\nnode_watts{{node="b"}} 70\n'
        )


@pytest.fixture(scope="module")
def exporter() -> Iterator[Server]:
    with Server(Exporter().answer) as made:
        yield made


@pytest.fixture(scope="module")
def prometheus(exporter: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that collects every half second."""
    program = tool("prometheus", "prometheus")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 500ms, scrape_timeout: 400ms}\nscrape_configs:\n- job_name: machine\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{exporter.port}']}}]\n"
    )
    port = free_port()
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    with running(command, folder / "log"):
        meter = Polled(PrometheusSource(PrometheusSettings(url, "node_watts{node='a'}")))
        assert eventually(lambda: meter.available() is None, 30.0), (meter.available(), (folder / "log").read_text())
        yield url


def meter_on(url: str, expression: str, unit: str = "watts") -> Polled:
    assert unit in ("watts", "joules")
    return Polled(PrometheusSource(PrometheusSettings(url, expression, "joules" if unit == "joules" else "watts")))


def counted(meter: Polled, seconds: float) -> tuple[float, float]:
    """Joules and seconds between two readings of the meter."""
    assert meter.available() is None
    began = time.monotonic()
    first = meter.read(0.0)
    assert isinstance(first, Sample)

    def later() -> Sample | None:
        meter.refresh(5.0)
        sample = meter.read(time.monotonic() - began)
        return sample if isinstance(sample, Sample) and sample.time - first.time >= seconds else None

    assert eventually(lambda: later() is not None, 20.0)
    last = meter.read(time.monotonic() - began)
    assert isinstance(last, Sample)
    assert last.epoch == first.epoch
    return last.joules - first.joules, last.time - first.time


@pytest.mark.parametrize(
    ("expression", "unit"),
    [('node_joules_total{node="a"}', "joules"), ('node_watts{node="a"}', "watts"), ("sum(node_watts) - 70", "watts")],
)
def test_a_real_server_gives_back_what_was_drawn(prometheus: str, expression: str, unit: str) -> None:
    joules, seconds = counted(meter_on(prometheus, expression, unit), 1.5)
    # A plain series comes with the time it was collected at: only the exporter's own delay is left.
    assert joules == pytest.approx(WATTS * seconds, rel=0.1)


def test_more_than_one_series_is_an_error_that_names_them(prometheus: str) -> None:
    problem = meter_on(prometheus, "node_watts").available() or ""
    assert "2 series" in problem
    assert 'node="a"' in problem
    assert 'node="b"' in problem


def test_a_wrong_expression_is_explained_in_the_servers_words(prometheus: str) -> None:
    assert "parse error" in (meter_on(prometheus, "sum(node_watts").available() or "")
    assert "gives nothing now" in (meter_on(prometheus, "no_such_series").available() or "")
    assert "range" in (meter_on(prometheus, 'node_watts{node="a"}[1m]').available() or "")


def test_a_target_that_is_gone_is_unknown_and_not_its_last_figure(prometheus: str, exporter: Server) -> None:
    meter = meter_on(prometheus, 'node_watts{node="a"}')
    assert meter.available() is None
    exporter.fail("reset")
    try:
        assert eventually(lambda: "is its target up" in (meter.available() or ""), 10.0)
        assert isinstance(meter.read(1.0), Unknown)
    finally:
        exporter.fail("")
    assert eventually(lambda: meter.available() is None, 10.0)


def test_a_figure_that_was_collected_long_ago_is_stale_by_the_servers_own_clock() -> None:
    """The server still shows it: its collecting has stopped. Its clock is a year ahead, which does not matter."""

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        now = time.time() + 3e7
        series = [
            f'{{"metric":{{"wattloom_mark":"{mark}"}},"value":[{now},"{value}"]}}'
            for mark, value in (("time", now - age), ("value", 40))
        ]
        return page(f'{{"status":"success","data":{{"resultType":"vector","result":[{",".join(series)}]}}}}')

    with Server(answer) as server:
        for age, stale in ((5.0, False), (290.0, True)):
            meter = meter_on(server.url, "node_watts")
            meter.refresh(5.0)
            found = meter.read(1000.0)
            assert isinstance(found, Unknown) == stale, found
            if isinstance(found, Sample):
                assert found.time == pytest.approx(1000.0 - age, abs=2.0)
