"""What each source makes of what it is shown."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.metering.network.server import Request, Server, page

from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import meters
from wattloom.metering.exposition import figures, of_node
from wattloom.metering.kepler import KeplerSettings, KeplerSource
from wattloom.metering.pdu import number_at
from wattloom.metering.powerapi import LOOK_BACK, ReportFile, ReportPage
from wattloom.metering.scaphandre import ScaphandreSource
from wattloom.metering.source import Answer, Joules, SourceProblem, Watts

OURS = ("ipmi", "kepler", "pcp", "pdu", "powerapi", "prometheus", "redfish", "scaphandre")


class Page:
    """A server whose page a test writes."""

    def __init__(self, server: Server) -> None:
        self.url, self._server = server.url, server

    def show(self, text: str) -> None:
        def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
            return page(text)

        self._server._server.answer = answer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(lambda request: page("")) as made:
        yield made


@pytest.fixture
def shown(server: Server) -> Page:
    return Page(server)


def asked(source: KeplerSource | ScaphandreSource | ReportPage) -> list[Answer]:
    try:
        return source.ask()
    finally:
        source.close()


# -- Kepler ------------------------------------------------------------------------------------------------------------

OLD = """kepler_node_info{components_power_source="%s",instance="n1",platform_power_source="%s"} 1
kepler_node_package_joules_total{instance="n1",mode="dynamic",package="0",source="rapl"} 100
kepler_node_package_joules_total{instance="n1",mode="idle",package="0",source="rapl"} 50
kepler_node_dram_joules_total{instance="n1",mode="dynamic",package="0",source="rapl"} 20
kepler_node_core_joules_total{instance="n1",mode="dynamic",package="0",source="rapl"} 80
kepler_node_platform_joules_total{instance="n1",mode="dynamic",source="acpi"} 300
kepler_node_platform_joules_total{instance="n1",mode="idle",source="acpi"} 200
"""


def total(answers: list[Answer]) -> float:
    (answer,) = answers
    assert isinstance(answer, Joules)
    return sum(answer.counters.values())


def test_an_old_kepler_is_its_packages_and_memory_or_its_platform(shown: Page) -> None:
    shown.show(OLD % ("rapl-sysfs", "acpi"))
    assert total(asked(KeplerSource(KeplerSettings(shown.url)))) == 170.0
    assert total(asked(KeplerSource(KeplerSettings(shown.url, quantity="wall")))) == 500.0


def test_a_kepler_that_guesses_is_estimated(shown: Page) -> None:
    source = KeplerSource(KeplerSettings(shown.url))
    for components, provenance in (("rapl-sysfs", "measured"), ("estimator", "estimated")):
        shown.show(OLD % (components, "none"))
        asked(source)
        assert source.provenance == provenance


def test_a_new_kepler_has_several_sockets_and_zones_inside_zones(shown: Page) -> None:
    lines = [
        f'kepler_node_cpu_joules_total{{node_name="n1",path="/{zone}{number}",zone="{zone}"}} {joules}'
        for zone, number, joules in (
            ("package", 0, 10),
            ("package", 1, 20),
            ("dram", 0, 3),
            ("core", 0, 8),
            ("psys", 0, 99),
        )
    ]
    shown.show("\n".join(lines) + '\nkepler_node_cpu_watts{zone="package"} 5\n')
    assert total(asked(KeplerSource(KeplerSettings(shown.url)))) == 33.0


def test_several_nodes_on_one_page_must_be_told_apart(shown: Page) -> None:
    shown.show("".join(f'kepler_platform_watts{{node_name="n{n}"}} {n}00\n' for n in (1, 2)))
    with pytest.raises(SourceProblem, match=r"several nodes: n1, n2\. Set kepler\.node"):
        asked(KeplerSource(KeplerSettings(shown.url, quantity="wall")))
    assert asked(KeplerSource(KeplerSettings(shown.url, "n2", "wall"))) == [Watts(200.0)]
    with pytest.raises(SourceProblem, match="no node 'n7', but n1, n2"):
        asked(KeplerSource(KeplerSettings(shown.url, "n7", "wall")))


def test_a_page_of_another_exporter_is_not_kepler(shown: Page) -> None:
    shown.show("node_load1 0.5\n")
    with pytest.raises(SourceProblem, match="is it Kepler"):
        asked(KeplerSource(KeplerSettings(shown.url)))


# -- Scaphandre, and the text format -----------------------------------------------------------------------------------


def test_scaphandre_counts_or_else_shows_power(shown: Page) -> None:
    shown.show("scaph_host_energy_microjoules 123000000\nscaph_host_power_microwatts 9000000\n")
    assert asked(ScaphandreSource(shown.url)) == [Joules({"host": 123.0})]
    shown.show("scaph_host_power_microwatts 9000000\nscaph_host_power_microwatts_other 1\n")
    assert asked(ScaphandreSource(shown.url)) == [Watts(9.0)]
    shown.show("scaph_host_power_microwatts 0\n")
    with pytest.raises(SourceProblem, match="does Scaphandre see RAPL"):
        asked(ScaphandreSource(shown.url))


def test_two_figures_of_a_page_with_ten_thousand_processes_take_a_few_milliseconds() -> None:
    process = 'scaph_process_power_consumption_microwatts{pid="%d",cmdline="python -m \\"x\\" {y}"} 12345\n'
    text = "".join(process % pid for pid in range(10_000)) + "scaph_host_energy_microjoules 7\n"
    figures(text.encode(), ("scaph_host_energy_microjoules",), "page")  # loads the parser
    began = time.thread_time()
    found = figures(text.encode(), ("scaph_host_energy_microjoules",), "page")
    assert [each.value for each in found] == [7.0]
    assert time.thread_time() - began < 0.05


@pytest.mark.parametrize("text", ["m NaN", "m -1", "m +Inf", 'm{a="b} 1', "m{a=b} 1", "m x", 'm{a="\xff"', "m "])
def test_figures_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SourceProblem):
        figures((text + "\n").encode("latin-1"), ("m",), "page")


def test_labels_with_quotes_braces_and_commas_are_understood() -> None:
    (line,) = figures(b'm{a="x \\"y\\" }, z=\\\\",node="n"} 2 1700000000000\nmm 3\n', ("m",), "page")
    assert line.labels == {"a": 'x "y" }, z=\\', "node": "n"}
    assert of_node([line], "", "page", "x.node") == [line]


# -- PowerAPI ----------------------------------------------------------------------------------------------------------


def report(second: float, watts: float, target: str = "rapl", **more: object) -> str:
    stamp = f"2024-05-01T12:00:{second:06.3f}"
    return json.dumps({"timestamp": stamp, "sensor": "s", "target": target, "power": watts, "metadata": more}) + "\n"


def watts_of(source: ReportFile) -> list[float]:
    return [answer.watts for answer in source.ask() if isinstance(answer, Watts)]


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "reports.json"
    path.write_text(report(1, 10) + report(1, 5, socket=1) + report(1, 99, "web") + report(2, 11) + report(2, 6))
    return path


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_reports_of_one_time_are_added_up_once_later_ones_have_come(reports: Path) -> None:
    source = ReportFile(str(reports), "rapl")
    assert watts_of(source) == [15.0]
    add(reports, report(3, 20))
    assert watts_of(source) == [17.0]
    add(reports, report(3, 2) + report(4, 1)[:30])
    assert watts_of(source) == []  # a line that is not all there yet
    add(reports, report(4, 1)[30:])
    assert watts_of(source) == [22.0]


def test_reports_are_as_old_as_their_own_times_say(reports: Path) -> None:
    add(reports, report(4.5, 11))
    os.utime(reports, (time.time(), time.time() - 10.0))
    ages = [answer.age_s for answer in ReportFile(str(reports), "rapl").ask()]
    assert ages == [pytest.approx(13.5, abs=1.0), pytest.approx(12.5, abs=1.0)]


def test_a_file_that_is_replaced_or_cut_off_is_followed(reports: Path) -> None:
    source = ReportFile(str(reports), "rapl")
    watts_of(source)
    reports.unlink()
    reports.write_text(report(5, 1) + report(6, 2) + report(7, 3))
    assert watts_of(source) == [17.0, 1.0, 2.0]
    reports.write_text(report(8, 4))
    assert watts_of(source) == [3.0]


def test_a_long_file_is_read_from_the_first_whole_line_near_its_end(reports: Path) -> None:
    reports.write_text("".join(report(second % 60, 10) for second in range(60)) + " " * LOOK_BACK)
    add(reports, report(1, 3)[:40].rjust(80) + "\n" + report(58, 10) + report(59, 20))
    assert watts_of(ReportFile(str(reports), "rapl")) == [10.0]


def test_what_is_no_report_is_said(reports: Path, tmp_path: Path) -> None:
    for text in ("{}\n", "hello\n", report(9, -5), report(9, 5).replace("2024-05", "noon")):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(SourceProblem):
            ReportFile(str(tmp_path / "bad"), "rapl").ask()
    with pytest.raises(SourceProblem, match="cannot be read"):
        ReportFile(str(tmp_path / "none"), "rapl").ask()
    with pytest.raises(SourceProblem, match="no reports of 'vm'"):
        ReportFile(str(reports), "vm").ask()


def test_only_the_target_rapl_is_measured(shown: Page) -> None:
    assert ReportFile("x", "rapl").provenance == "measured"
    assert ReportFile("x", "global").provenance == "modelled"
    shown.show(
        'power_estimation_watts{sensor="a",target="global"} 5\npower_estimation_watts{sensor="b",target="global"} 6\n'
    )
    with pytest.raises(SourceProblem, match="several machines: a, b"):
        asked(ReportPage(shown.url, "global"))
    with pytest.raises(SourceProblem, match="its targets: global"):
        asked(ReportPage(shown.url, "rapl"))


# -- power strips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "path", "number"),
    [
        (b'{"outlets": [{"w": 3}, {"w": "12.5 W"}]}', "outlets.1.w", 12.5),
        (b"<response><pot0>0,12</pot0><pow>88.5</pow></response>", "pow", 88.5),
        (b"<a><b><c> 7 W</c></b></a>", "a.b.c", 7.0),
        (b" 213.4\n", "", 213.4),
        (b'{"StatusSNS": {"ENERGY": {"Power": 87}}}', "StatusSNS.ENERGY.Power", 87.0),
    ],
)
def test_a_number_is_found_in_json_xml_and_plain_text(body: bytes, path: str, number: float) -> None:
    assert number_at(body, path, "strip") == number


GROWS = '<?xml version="1.0"{0}?><!DOCTYPE a [<!ENTITY b "1"><!ENTITY c "&b;&b;">]><a>&c;</a>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
@pytest.mark.parametrize("declared", [False, True])
def test_a_page_that_defines_entities_is_refused_in_every_encoding(encoding: str, declared: bool) -> None:
    name = encoding.removesuffix("-sig").removesuffix("-le").removesuffix("-be")
    body = GROWS.format(f' encoding="{name}"' if declared else "").encode(encoding)
    with pytest.raises(SourceProblem, match=r"web page|not in UTF-8|neither"):
        number_at(body, "a", "http://strip")


def test_pages_of_one_byte_a_character_are_read_if_they_say_so() -> None:
    page = '<?xml version="1.0" encoding="ISO-8859-1"?><a><unit>\u00b0C</unit><w>12.5</w></a>'
    assert number_at(page.encode("latin-1"), "w", "http://strip") == 12.5
    assert number_at(page.encode(), "w", "http://strip") == 12.5
    with pytest.raises(SourceProblem, match="not in UTF-8"):
        number_at(page.replace("ISO-8859-1", "UTF-8").encode("latin-1"), "w", "http://strip")


@pytest.mark.parametrize(
    ("body", "path", "words"),
    [
        (b'{"outlets": []}', "outlets.3.w", "nothing at '3'"),
        (b'{"a": true}', "a", "no number"),
        (b'{"a": {"b": 1, "c": 2}}', "a.d", "names b, c"),
        (b"<html><body>hello", "a", "cannot be read"),
        (b'<!DOCTYPE a [<!ENTITY b "&c;">]><a>&b;</a>', "a", "web page"),
        (b"what?", "a", "neither with JSON nor with XML"),
        (b"what?", "", "no number"),
    ],
)
def test_a_place_without_a_number_is_explained(body: bytes, path: str, words: str) -> None:
    with pytest.raises(SourceProblem, match=words):
        number_at(body, path, "strip")


# -- all together ------------------------------------------------------------------------------------------------------


def test_meters_that_are_not_set_up_say_so_quickly_and_touch_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*args: object, **more: object) -> None:
        raise AssertionError("something was touched")

    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("WATTLOOM_")]:
        monkeypatch.delenv(name)
    here = this_machine()
    for place in ("subprocess.Popen.__init__", "wattloom.metering.poller.Poller.start"):  # all are asked by a poller
        monkeypatch.setattr(place, forbidden)
    began = time.process_time()
    found = {each.name: each for each in meters(here)}
    assert time.process_time() - began < 1.0
    for name in OURS:
        assert found[name].problem == "not set up"
        assert found[name].allow.startswith(f"set WATTLOOM_{name.upper()}__")


@pytest.mark.parametrize(("name", "setting"), [("scaphandre", "url"), ("redfish", "url"), ("powerapi", "reports")])
def test_an_address_that_is_none_is_an_error_that_names_the_setting(
    name: str, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"WATTLOOM_{name}__{setting}".upper(), "ftp://somewhere")
    found = {each.name: each.problem for each in meters(this_machine())}[name]
    assert f"the setting {name}.{setting} must begin with http://" in found


def test_a_meter_that_is_set_up_is_used_before_an_estimate(
    shown: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown.show("scaph_host_energy_microjoules 5000000\n")
    (tmp_path / "wattloom.toml").write_text(f'[scaphandre]\nurl = "{shown.url}/metrics"\n')
    monkeypatch.chdir(tmp_path)
    found = {each.name: each for each in meters(this_machine())}["scaphandre"]
    assert (found.problem, found.quantity, found.provenance) == ("", "package", "measured")
