"""The commands of `wattloom kubernetes`, without a cluster: what they print, and what they refuse in words."""

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.profiling.made import cpu_profile, disturbed

from wattloom.cli.kubernetes import kubernetes
from wattloom.cli.main import cli
from wattloom.errors import InputError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.extender.config import scheduler_config
from wattloom.kubernetes.extender.http import ExtenderServer
from wattloom.kubernetes.manifests import manifest
from wattloom.machines.profile_file import encode_profile
from wattloom.serving.access import SHORTEST_TOKEN


def test_the_manifest_has_the_very_configuration_that_the_command_prints() -> None:
    whole = {each["kind"]: each for each in yaml.safe_load_all(manifest("extender"))}
    shipped = yaml.safe_load(whole["ConfigMap"]["data"]["config.yaml"])
    printed = CliRunner().invoke(kubernetes, ["extender", "--print-config"])
    assert printed.exit_code == 0
    assert shipped["extenders"] == yaml.safe_load(printed.output)["extenders"]
    assert yaml.safe_load(printed.output) == yaml.safe_load(scheduler_config())


def test_the_configuration_says_how_kube_scheduler_finds_the_cluster() -> None:
    bare = CliRunner().invoke(kubernetes, ["extender", "--print-config"]).output
    assert "#   kubeconfig: /etc/kubernetes/scheduler.conf\n" in bare
    uncommented = re.sub("^# (clientConnection|  kubeconfig)", r"\1", bare, flags=re.MULTILINE)
    words = ["extender", "--print-config", "--scheduler-kubeconfig", "/etc/kubernetes/scheduler.conf"]
    whole = yaml.safe_load(CliRunner().invoke(kubernetes, words).output)
    assert whole == yaml.safe_load(uncommented)
    assert whole["clientConnection"] == {"kubeconfig": "/etc/kubernetes/scheduler.conf"}
    assert yaml.safe_load(scheduler_config(kubeconfig="a: {b"))["clientConnection"] == {"kubeconfig": "a: {b"}


def test_the_images_of_the_manifest_can_be_named() -> None:
    words = ["manifests", "--what", "extender", "--image", "own/wattloom-system:1", "--namespace", "watts"]
    made = CliRunner().invoke(kubernetes, [*words, "--kube-scheduler-image", "mirror:5000/kube-scheduler@sha256:0a"])
    whole = list(yaml.safe_load_all(made.output))
    containers = whole[-1]["spec"]["template"]["spec"]["containers"]
    assert [each["image"] for each in containers] == ["mirror:5000/kube-scheduler@sha256:0a", "own/wattloom-system:1"]
    assert {each["metadata"].get("namespace", "watts") for each in whole} == {"watts", "kube-system"}


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("namespace", "Bad Name"),
        ("namespace", ""),
        ("namespace", "a-"),
        ("namespace", "a" * 64),
        ("image", "a b"),
        ("image", "a\nb: c"),
        ("kube-scheduler-image", "{}"),
    ],
)
def test_what_would_make_other_yaml_of_a_manifest_is_refused(option: str, given: str) -> None:
    made = CliRunner().invoke(kubernetes, ["manifests", f"--{option}", given])
    assert isinstance(made.exception, InputError)
    assert (made.exception.field, made.output) == (option, "")


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["extender", "scheduler"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "token-file: {file} cannot be read: No such file or directory"),
        ("", "token-file: the token file is empty: {file}"),
        (" \n", "token-file: the token file is empty: {file}"),
        ("short", "token-file: {file} has 5 characters, and a token at least 16"),
    ],
)
def test_a_token_file_without_a_usable_token_is_told_in_words(
    who: str, text: str | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    done = CliRunner().invoke(cli, ["kubernetes", who, "--token-file", str(file)])
    assert (done.exit_code, done.output.splitlines()[0]) == (2, f"error: {words.format(file=file)}")
    told = CliRunner().invoke(kubernetes, [who, "--help"]).output
    assert f"at least {SHORTEST_TOKEN} characters" in " ".join(told.split())


@pytest.mark.usefixtures("loop")
def test_a_port_that_is_taken_is_told_with_the_option_that_changes_it() -> None:
    async def twice() -> None:
        first = ExtenderServer("127.0.0.1:0", {})
        await first.start()
        try:
            await ExtenderServer(f"127.0.0.1:{first.port}", {}).start()
        finally:
            await first.stop()

    with pytest.raises(InputError) as told:
        event_loop.run(twice())
    words = r"listen: port \d+ is taken by another program: --listen HOST:PORT takes another one"
    assert re.fullmatch(words, str(told.value))


def test_a_profile_without_an_end_is_told_by_the_name_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "node7.json"
    file.write_bytes(encode_profile(disturbed(cpu_profile(), 8)))
    done = CliRunner().invoke(cli, ["kubernetes", "profile", "node7", str(file)])
    assert done.exit_code == 2
    assert done.output.startswith(f"error: {file}: levels: level 8 must be measured undisturbed")


@pytest.mark.parametrize("command", ["scheduler", "extender"])
def test_a_policy_that_cannot_decide_here_is_told_before_any_cluster_is_looked_for(
    command: str, tmp_path: Path
) -> None:
    words = ["kubernetes", command, "--policy", "exec", "--kubeconfig", str(tmp_path / "none")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "goes by meters' readings" in done.output
    assert "none" not in done.output.replace("none of", "")
