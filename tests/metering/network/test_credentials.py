"""Who is told a secret: nobody that another source names, and nobody where others can listen, unless that was said."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from wattloom.metering.configured import in_clear
from wattloom.metering.ipmi import IpmiSettings
from wattloom.metering.kepler import KeplerSettings, KeplerSource
from wattloom.metering.pdu import PduSettings, PduSource
from wattloom.metering.prometheus import PrometheusSettings, PrometheusSource
from wattloom.metering.redfish import RedfishSettings, RedfishSource
from wattloom.metering.source import SourceProblem
from wattloom.serving.address import is_loopback
from wattloom.settings import SettingsError, load_settings, load_with_withheld

COMMAND: Final = Path(sys.executable).with_name("wattloom")
SECRET: Final = "calvin-the-secret"
GROUPS: Final = {
    "redfish": ('url = "{url}"', "PASSWORD", 'user = "root"'),
    "prometheus": ('url = "{url}"\nexpression = "watts"', "TOKEN", ""),
    "pdu": ('url = "{url}"\npath = "a"', "PASSWORD", 'user = "root"'),
}
"""By group: how a file names the address, the secret's name, and what else is needed to have it sent."""


class Server:
    """Notes all that it is sent."""

    def __init__(self) -> None:
        self.got: Final[list[str]] = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                got.append(f"{self.path} {self.headers.get('Authorization')} {body.decode()}")
                answer = b'{"Chassis":{"@odata.id":"/redfish/v1/Chassis"}}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET

            def log_message(self, *words: object) -> None:
                pass

        self.http: Final = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url: Final = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def meters() -> str:
    """What is said of all meters, by the command: it imports nothing from the working folder."""
    done = subprocess.run([COMMAND, "meter", "list", "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- from one source ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["wattloom.toml", "pyproject.toml"])
@pytest.mark.parametrize("group", GROUPS)
def test_a_secret_of_the_environment_is_not_sent_where_a_file_of_the_folder_says(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, file: str
) -> None:
    address, secret, more = GROUPS[group]
    table = group if file == "wattloom.toml" else f"tool.wattloom.{group}"
    (folder / file).write_text(f"[{table}]\n{address.format(url=server.url)}\n{more}\n")
    monkeypatch.setenv(f"WATTLOOM_{group.upper()}__{secret}", SECRET)
    said = meters()
    assert server.got == []
    assert f"WATTLOOM_{group.upper()}__{secret} is not sent where" in said
    monkeypatch.setenv("WATTLOOM_TRUSTED_FOLDERS", f"/elsewhere:{folder}")
    meters()
    assert server.got != []


@pytest.mark.parametrize("group", GROUPS)
def test_address_and_secret_of_one_file_or_both_of_the_environment_are_used(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    address, secret, more = GROUPS[group]
    lines = [*address.format(url=server.url).splitlines(), *more.splitlines(), f'{secret.lower()} = "{SECRET}"']
    (folder / "wattloom.toml").write_text("\n".join([f"[{group}]", *lines]))
    meters()
    (folder / "wattloom.toml").unlink()
    in_file = len(server.got)
    for line in lines:
        key, _, value = line.partition(" = ")
        monkeypatch.setenv(f"WATTLOOM_{group.upper()}__{key.upper()}", value.strip('"'))
    meters()
    assert 0 < in_file < len(server.got)


@pytest.mark.parametrize(("key", "value"), [("url", '"https://bmc"'), ("certificate", '"any"'), ("clear_text", "true")])
def test_a_folder_neither_says_where_a_secret_goes_nor_who_may_listen(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "wattloom.toml").write_text(f"[redfish]\n{key} = {value}\n")
    environ = {"WATTLOOM_REDFISH__PASSWORD": SECRET, "WATTLOOM_REDFISH__USER": "root"}
    settings, withheld = load_with_withheld(folder=tmp_path, environ=environ)
    redfish = settings.of("redfish", RedfishSettings)
    assert (redfish.user, redfish.password) == ("", "")
    assert f"wattloom.toml: redfish.{key}" in withheld["redfish"]


def test_one_file_does_not_say_where_the_secret_of_the_other_goes(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.wattloom.ipmi]\nhost = "bmc"\n')
    (tmp_path / "wattloom.toml").write_text('[ipmi]\npassword = "secret"\n')
    assert load_settings(folder=tmp_path, environ={}).of("ipmi", IpmiSettings).password == ""
    (tmp_path / "wattloom.toml").write_text('[ipmi]\nhost = "bmc"\npassword = "secret"\n')
    assert load_settings(folder=tmp_path, environ={}).of("ipmi", IpmiSettings).password == "secret"


def test_ipmitool_is_not_handed_a_password_for_a_host_that_the_folder_names(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "ipmitool"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nenv > {tmp_path}/handed\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setenv("WATTLOOM_IPMI__PASSWORD", SECRET)
    (folder / "wattloom.toml").write_text('[ipmi]\nenabled = true\nhost = "attacker"\n')
    meters()
    assert not (tmp_path / "handed").exists()


def test_a_community_is_not_sent_where_the_folder_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        agent.bind(("127.0.0.1", 0))
        agent.settimeout(0.5)
        port = agent.getsockname()[1]
        (folder / "wattloom.toml").write_text(f'[pdu]\nurl = "snmp://127.0.0.1:{port}"\npath = "1.3.6.1.4"\n')
        monkeypatch.setenv("WATTLOOM_PDU__COMMUNITY", SECRET)
        meters()
        with pytest.raises(TimeoutError):
            agent.recv(1000)


def test_a_file_that_others_may_write_says_nothing_of_meters_journals_and_policies(tmp_path: Path) -> None:
    file = tmp_path / "wattloom.toml"
    for lines in ('[kepler]\nurl = "http://x"', '[local]\njournal = "x"', '[local]\npolicy = "x"'):
        file.write_text(lines)
        file.chmod(0o666)
        with pytest.raises(SettingsError, match="may be written by everybody"):
            load_settings(folder=tmp_path, environ={})
        load_settings(folder=tmp_path, environ={"WATTLOOM_TRUSTED_FOLDERS": str(tmp_path)})
    file.write_text("[local]\nmax_workers = 3")
    assert load_settings(folder=tmp_path, environ={}).local.max_workers == 3


# -- where others can listen -------------------------------------------------------------------------------------------

ELSEWHERE: Final = "http://192.0.2.1"
"""A host of nobody's, for examples."""
IN_CLEAR: Final[dict[str, Callable[[bool], object]]] = {
    "redfish": lambda allowed: RedfishSource(
        RedfishSettings(ELSEWHERE, user="root", password=SECRET, clear_text=allowed)
    ),
    "prometheus": lambda allowed: PrometheusSource(
        PrometheusSettings(ELSEWHERE, "watts", token=SECRET, clear_text=allowed)
    ),
    "pdu": lambda allowed: PduSource(PduSettings(ELSEWHERE, user="root", password=SECRET, clear_text=allowed)),
    "pdu by SNMP": lambda allowed: PduSource(
        PduSettings("snmp://192.0.2.1", path="1.3.6.1.4", community=SECRET, clear_text=allowed)
    ),
    "pdu, in the address": lambda allowed: PduSource(
        PduSettings(f"http://root:{SECRET}@192.0.2.1", clear_text=allowed)
    ),
}


@pytest.mark.parametrize("which", IN_CLEAR)
def test_no_secret_goes_to_another_machine_in_clear_unless_that_was_said(
    which: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("somebody was asked"))
    source = IN_CLEAR[which](False)
    problem = source.missing()  # type: ignore[attr-defined]
    assert "can read its password" in problem
    assert "CLEAR_TEXT=true" in problem
    assert SECRET not in problem
    if "SNMP" not in which:
        with pytest.raises(SourceProblem, match="can read its password"):
            source.ask()  # type: ignore[attr-defined]
    assert IN_CLEAR[which](True).missing() is None  # type: ignore[attr-defined]


def test_without_a_secret_plain_http_is_as_good_as_any(folder: Path) -> None:
    assert KeplerSource(KeplerSettings(f"{ELSEWHERE}/metrics")).missing() is None
    assert PduSource(PduSettings("snmp://192.0.2.1", path="1.3.6.1.4")).missing() is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost"])
def test_what_stays_on_this_machine_needs_no_lock(host: str) -> None:
    assert in_clear("redfish", f"http://{host}:80", secret=True, allowed=False) is None


@pytest.mark.parametrize("host", ["localhost.attacker.example", "127.0.0.1.example", "10.0.0.1", ""])
def test_names_that_only_look_like_this_machine_are_others(host: str) -> None:
    assert not is_loopback(host)
