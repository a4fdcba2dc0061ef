"""Where the API server is and who we are, from the files and variables that people have."""

import asyncio
import base64
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from wattloom.errors import InputError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.credentials import Fixed, Pair, Pem, Plugin, TokenFile
from wattloom.kubernetes.client.kubeconfig import from_files, in_cluster, target_of
from wattloom.kubernetes.client.target import Target


def _config(user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "home", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "home", "user": "me", "namespace": "mine"}}],
    }


def _write(path: Path, config: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def _who(target: Target) -> str:
    return event_loop.run(target.credentials.authorization())


def test_the_current_context_says_where_and_who(tmp_path: Path) -> None:
    target = target_of(_write(tmp_path / "config", _config({"token": "secret"})))
    assert (target.host, target.port, target.prefix, target.namespace) == ("10.0.0.1", 6443, "", "mine")
    assert _who(target) == "Bearer secret"


def test_a_server_behind_a_path_and_without_a_port_is_understood(tmp_path: Path) -> None:
    target = target_of(_write(tmp_path / "config", _config(server="https://rancher.example/k8s/clusters/c-1/")))
    assert (target.host, target.port, target.prefix) == ("rancher.example", 443, "/k8s/clusters/c-1")


def test_the_file_in_the_home_directory_is_taken_where_nothing_is_said(tmp_path: Path) -> None:
    _write(tmp_path / ".kube" / "config", _config())
    assert target_of(env={"HOME": str(tmp_path)}).host == "10.0.0.1"


def test_several_files_are_laid_over_each_other_and_the_first_wins(tmp_path: Path) -> None:
    first = _config({"token": "first"})
    first["clusters"] = []
    second = _config({"token": "second"}, server="https://second:1")
    second["current-context"] = "there"
    second["contexts"].append({"name": "there", "context": {"cluster": "home", "user": "me"}})
    paths = [_write(tmp_path / "a", first), tmp_path / "missing", _write(tmp_path / "b", second)]
    env = {"KUBECONFIG": ":".join(map(str, paths))}
    target = target_of(env=env)
    assert (target.host, target.namespace, _who(target)) == ("second", "mine", "Bearer first")
    assert target_of(context="there", env=env).namespace == "default"


def test_files_are_looked_for_beside_the_file_that_names_them(tmp_path: Path) -> None:
    config = _config({"tokenFile": "token"})
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "token").write_text("from-file\n")
    assert _who(target_of(_write(tmp_path / "deep" / "config", config))) == "Bearer from-file"


def test_a_name_and_a_password_are_sent_as_such(tmp_path: Path) -> None:
    target = target_of(_write(tmp_path / "config", _config({"username": "ann", "password": "x:y"})))
    assert _who(target) == "Basic " + base64.b64encode(b"ann:x:y").decode()


def test_inside_a_pod_the_service_account_is_taken(tmp_path: Path) -> None:
    for name, text in (("token", "abc"), ("ca.crt", "ca"), ("namespace", "team\n")):
        (tmp_path / name).write_text(text)
    env = {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    target = target_of(env=env, account=tmp_path)
    assert (target.host, target.authority, target.namespace) == ("fd00::1", "[fd00::1]:443", "team")
    assert _who(target) == "Bearer abc"


def test_a_token_that_was_replaced_is_read_again_when_the_old_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    token = TokenFile(path, "token")
    assert event_loop.run(token.authorization()) == "Bearer old"
    path.write_text("new")
    assert event_loop.run(token.authorization()) == "Bearer old"  # not read for each request
    token.renew()
    assert event_loop.run(token.authorization()) == "Bearer new"


def test_a_certificate_in_place_is_read(tmp_path: Path) -> None:
    pair = {
        "client-certificate-data": base64.b64encode(b"CERT").decode(),
        "client-key-data": base64.b64encode(b"KEY").decode(),
    }
    target = target_of(_write(tmp_path / "config", _config(pair)))
    assert event_loop.run(target.credentials.pair()) == Pair(b"CERT", b"KEY")


@pytest.mark.parametrize(
    ("user", "cluster", "field", "problem"),
    [
        ({}, {"server": ""}, "clusters[0].cluster.server", "is missing"),
        ({}, {"server": "10.0.0.1:6443"}, "clusters[0].cluster.server", "https://HOST:PORT"),
        ({}, {"server": "https://h:port"}, "clusters[0].cluster.server", "no address"),
        ({}, {"proxy-url": "http://p:1"}, "clusters[0].cluster.proxy-url", "not supported"),
        ({}, {"certificate-authority-data": "%%"}, "clusters[0].cluster.certificate-authority-data", "base64"),
        ({"client-certificate": "c.pem"}, {}, "users[0].user.client-key", "missing"),
        ({"client-key": "k.pem"}, {}, "users[0].user.client-certificate", "missing"),
        ({"auth-provider": {"name": "gcp"}}, {}, "users[0].user.auth-provider", "exec plugin"),
        ({"as": "root"}, {}, "users[0].user.as", "not supported"),
        ({"token": 5}, {}, "users[0].user.token", "Expected `str`, got `int`"),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            {},
            "users[0].user.exec.apiVersion",
            "v1beta1",
        ),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Always"}},
            {},
            "users[0].user.exec.interactiveMode",
            "terminal",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_field(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], field: str, problem: str
) -> None:
    path = _write(tmp_path / "config", _config(user, **cluster))
    with pytest.raises(InputError) as caught:
        target_of(path)
    assert caught.value.field == f"{path}: {field}"
    assert problem in caught.value.problem


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = _write(tmp_path / "config", _config())
    with pytest.raises(InputError, match="no 'nowhere': there is here"):
        target_of(path, "nowhere")
    config = _config()
    config["contexts"][0]["context"]["cluster"] = "lost"
    with pytest.raises(InputError, match=r"contexts\[0\]\.context\.cluster: no 'lost': there is home"):
        target_of(_write(tmp_path / "config", config))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone: cannot be read: No such file"):
        target_of(tmp_path / "gone")
    (tmp_path / "bad").write_text("a: [")
    with pytest.raises(InputError, match=r"bad: is no YAML"):
        from_files([tmp_path / "bad"])


@pytest.mark.parametrize("text", ["", "[1, 2]", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: one}\n"])
@pytest.mark.parametrize("context", ["", "here"])
def test_a_file_that_is_no_kubeconfig_is_called_so(tmp_path: Path, text: str, context: str) -> None:
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(InputError, match=r"job\.yaml: is no kubeconfig: no clusters, users or contexts"):
        from_files([tmp_path / "job.yaml"], context)


def test_a_kubeconfig_without_a_current_context_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    config = _config()
    del config["current-context"]
    with pytest.raises(InputError, match=r"config: current-context: is not set: give --context, one of here"):
        from_files([_write(tmp_path / "config", config)])


def test_outside_a_pod_and_without_a_file_it_says_what_was_looked_for() -> None:
    with pytest.raises(InputError, match=r"none of /nowhere/\.kube/config exists, and this is no pod"):
        target_of(env={"HOME": "/nowhere"})


def test_a_pod_without_a_token_is_told_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="automountServiceAccountToken"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)


def test_a_certificate_that_is_none_is_named() -> None:
    async def context(target: Target) -> None:
        await target.tls()

    with pytest.raises(InputError, match="the CA: no certificate in it"):
        event_loop.run(context(Target("https://h", Fixed(), ca=Pem("the CA", data=b"nonsense"))))
    bad = Fixed("", Pem("c", data=b"x"), Pem("k", data=b"y"))
    with pytest.raises(InputError, match="the client certificate and its key cannot be used"):
        event_loop.run(context(Target("https://h", bad)))


def _program(path: Path, script: str) -> str:
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path.name


def _exec(tmp_path: Path, script: str, **more: Any) -> Target:
    version = "client.authentication.k8s.io/v1"
    name = _program(tmp_path / "plugin", script)
    user = {"exec": {"command": f"./{name}", "apiVersion": version, "interactiveMode": "IfAvailable", **more}}
    return target_of(_write(tmp_path / "config", _config(user)))


ANSWER = """
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(os.environ["COUNT"], "a") as file: file.write("x")
times = os.path.getsize(os.environ["COUNT"])
server = asked["spec"].get("cluster", {}).get("server")
status = {"token": f"t{times}-{sys.argv[1]}-{server}", "expirationTimestamp": UNTIL}
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def _until(seconds: float) -> str:
    return json.dumps((datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ"))


def test_a_plugin_is_asked_once_as_long_as_its_answer_lasts(tmp_path: Path) -> None:
    target = _exec(
        tmp_path,
        ANSWER.replace("UNTIL", _until(3600)),
        args=["arg"],
        env=[{"name": "COUNT", "value": str(tmp_path / "count")}],
        provideClusterInfo=True,
    )

    async def ask() -> list[str]:
        said = await asyncio.gather(*(target.credentials.authorization() for _ in range(5)))
        target.credentials.renew()
        return [*said, await target.credentials.authorization()]

    server = "https://10.0.0.1:6443"
    assert event_loop.run(ask()) == [f"Bearer t1-arg-{server}"] * 5 + [f"Bearer t2-arg-{server}"]


def test_a_plugin_is_asked_again_when_its_answer_has_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = [{"name": "COUNT", "value": str(tmp_path / "count")}]
    target = _exec(tmp_path, ANSWER.replace("UNTIL", _until(3600)), args=["a"], env=count)

    async def ask() -> list[str]:
        said = []
        for each_s in (0.0, 3580.0, 3600.0 - 8.0):  # the last one within seconds of its end
            later_s.append(each_s)
            said.append(await target.credentials.authorization())
        return said

    later_s = [0.0]
    monkeypatch.setattr("wattloom.kubernetes.client.credentials.time", lambda: time.time() + later_s[-1])
    assert event_loop.run(ask()) == ["Bearer t1-a-None", "Bearer t1-a-None", "Bearer t2-a-None"]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("sys.exit('log in first')", "ended with 1: log in first"),
        ("print('hello')", "answered no ExecCredential"),
        ("print(json.dumps({'apiVersion': 'v9', 'kind': 'ExecCredential', 'status': {'token': 'x'}}))", "'v9'"),
        (
            "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'E', 'status': {}}))",
            "neither a token nor a certificate",
        ),
    ],
)
def test_a_plugin_that_fails_is_named_with_what_it_said(tmp_path: Path, script: str, problem: str) -> None:
    target = _exec(tmp_path, script)
    with pytest.raises(InputError, match=problem) as caught:
        _who(target)
    assert caught.value.field.endswith("users[0].user.exec")


def test_a_plugin_that_is_not_installed_is_told_with_its_hint() -> None:
    plugin = Plugin(["no-such-plugin"], {}, "v1", "exec", hint="Install it from the shop.")
    with pytest.raises(InputError, match=r"no-such-plugin cannot be started: No such file.*Install it from the shop"):
        event_loop.run(plugin.authorization())


COUNTED = "with open(os.environ['COUNT'], 'a') as file: file.write('x')\nimport time\ntime.sleep(0.05)\n"


def _counting(tmp_path: Path, script: str) -> tuple[Target, Path]:
    """A plugin whose runs are counted in a file."""
    count = tmp_path / "count"
    return _exec(tmp_path, COUNTED + script, args=["a"], env=[{"name": "COUNT", "value": str(count)}]), count


def test_a_plugin_that_fails_runs_once_for_all_who_wait_and_not_again_at_once(tmp_path: Path) -> None:
    target, count = _counting(tmp_path, "sys.exit('log in first')")

    async def ask() -> list[BaseException | str]:
        waiting = (target.credentials.authorization() for _ in range(80))
        said = await asyncio.gather(*waiting, return_exceptions=True)
        return [*said, *await asyncio.gather(target.credentials.authorization(), return_exceptions=True)]

    said = event_loop.run(ask())
    assert all("ended with 1: log in first" in str(each) for each in said)
    assert count.read_text() == "x"


def test_a_plugin_that_failed_is_asked_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, count = _counting(tmp_path, "sys.exit('log in first')")
    now = 1000.0
    monkeypatch.setattr("wattloom.kubernetes.client.credentials.monotonic", lambda: now)

    async def ask() -> None:
        nonlocal now
        for second in range(200):
            now = 1000.0 + second
            with pytest.raises(InputError):
                await target.credentials.authorization()

    event_loop.run(ask())
    assert 5 <= len(count.read_text()) <= 15  # after 1, 2, 4 ... 60 s, each shortened by chance to no less than half


def test_one_who_no_longer_waits_does_not_end_the_plugin_for_the_others(tmp_path: Path) -> None:
    target, _ = _counting(tmp_path, ANSWER.replace("UNTIL", _until(3600)))

    async def ask() -> str:
        first = asyncio.create_task(target.credentials.authorization())
        second = asyncio.create_task(target.credentials.authorization())
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert event_loop.run(ask()).startswith("Bearer t")


def test_a_plugin_whose_answers_are_refused_is_not_run_for_each_refusal(tmp_path: Path) -> None:
    target, count = _counting(tmp_path, ANSWER.replace("UNTIL", _until(3600)))

    async def ask() -> None:
        for _ in range(20):
            await target.credentials.authorization()
            target.credentials.renew()

    event_loop.run(ask())
    assert len(count.read_text()) <= 6  # ANSWER counts too: two marks for each run


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("import time; time.sleep(600)", "did not answer in 0.5 s"),
        ("os.system('sleep 600 & exec sleep 600')", "did not answer in 0.5 s"),
        ("sys.stdout.write('x' * 3_000_000)", "printed more than 1 MiB"),
        ("sys.stderr.write('x' * 3_000_000)", "printed more than 1 MiB"),
        (ANSWER.replace("UNTIL", '"2020-01-01T00:00:00Z"'), "credentials that have expired"),
    ],
    ids=["hangs", "hangs-with-children", "talks", "complains", "expired"],
)
def test_what_a_plugin_may_cost_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    if "sleep" in script:
        monkeypatch.setattr("wattloom.kubernetes.client.credentials.PLUGIN_PATIENCE_S", 0.5)
    target, _ = _counting(tmp_path, script)
    began = time.monotonic()
    with pytest.raises(InputError, match=problem):
        _who(target)
    assert time.monotonic() - began < 60


def test_what_a_plugin_leaves_running_that_does_not_keep_us_waiting_is_its_own_business(tmp_path: Path) -> None:
    """As the agents that some of them keep credentials in."""
    agent = "import subprocess\nnobody = subprocess.DEVNULL\n"
    agent += "left = subprocess.Popen(['sleep', '600'], stdin=nobody, stdout=nobody, stderr=nobody)\n"
    agent += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(left.pid))\n"
    target, _ = _counting(tmp_path, agent + ANSWER.replace("UNTIL", _until(3600)))
    assert _who(target).startswith("Bearer t")
    handle = os.pidfd_open(int((tmp_path / "pid").read_text()))
    try:
        assert select.select([handle], [], [], 0.2)[0] == []  # a process that has ended is ready to be read
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


ODD_TOKENS = {
    "beyond-latin-1": "abc\N{SNOWMAN}",
    "latin-1": "abcü",
    "header": "abc\r\nX-Remote-User: admin",
    "new-line": "abc\ndef",
    "nul": "abc\0",
    "space": "abc def",
}


@pytest.mark.parametrize("token", ODD_TOKENS.values(), ids=ODD_TOKENS)
def test_a_token_that_would_break_a_request_is_refused_where_it_is_read(tmp_path: Path, token: str) -> None:
    with pytest.raises(InputError, match=r"users\[0\].user.token: is no token: character 4 of"):
        target_of(_write(tmp_path / "config", _config({"token": token})))
    (tmp_path / "token").write_bytes(token.encode())
    with pytest.raises(InputError, match="token: is no token: character 4 of"):
        event_loop.run(TokenFile(tmp_path / "token", "tokenFile").authorization())
    status = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    with pytest.raises(InputError, match="gave a token that is no token: character 4 of"):
        _who(_exec(tmp_path, f"print(json.dumps({status!r}))"))


def test_white_space_around_a_token_is_no_part_of_it(tmp_path: Path) -> None:
    assert _who(target_of(_write(tmp_path / "config", _config({"token": "abc\n"})))) == "Bearer abc"
    (tmp_path / "token").write_text(" \n")
    with pytest.raises(InputError, match="is empty"):
        event_loop.run(TokenFile(tmp_path / "token", "tokenFile").authorization())


@pytest.mark.parametrize("server", ["https://h\N{SNOWMAN}", "https://h/\N{SNOWMAN}", "https://h/a b"])
def test_a_server_that_cannot_stand_in_a_request_is_refused(server: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        Target(server, Fixed())


def test_a_client_certificate_needs_no_place_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a pod whose root file system is read-only."""
    words = f"req -x509 -newkey rsa:2048 -nodes -keyout {tmp_path}/k.pem -out {tmp_path}/c.pem -days 2 -subj /CN=me"
    if subprocess.run(["openssl", *words.split()], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: client certificates. openssl is missing (Debian: apt-get install openssl).")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    pair = Fixed("", Pem("c", path=tmp_path / "c.pem"), Pem("k", path=tmp_path / "k.pem"))
    before = len(os.listdir("/proc/self/fd"))
    context = event_loop.run(Target("https://h", pair).tls())
    assert context is not None
    assert len(os.listdir("/proc/self/fd")) <= before
    monkeypatch.delattr("os.memfd_create", raising=False)
    with pytest.raises(InputError, match=r"which wants a file: .*; set TMPDIR"):
        event_loop.run(Target("https://h", pair).tls())
