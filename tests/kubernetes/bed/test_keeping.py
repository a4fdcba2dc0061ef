"""A control plane that outlives the command that started it, and ends when asked."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.beds.kubernetes import eventually, keeping
from tests.beds.kubernetes.__main__ import main
from tests.kubernetes.conftest import programs_or_skip

from wattloom.errors import WattloomError

SMALL = ("--without", "kube-controller-manager", "--without", "kube-scheduler", "--without", "kwok")


@pytest.mark.slow
def test_what_is_kept_runs_until_it_is_asked_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs_or_skip("etcd", "kube-apiserver")
    found = keeping.start(tmp_path, keeping.PLANE, *SMALL)
    try:
        with pytest.raises(WattloomError, match="another plane runs in"):
            keeping.start(tmp_path, keeping.PLANE, *SMALL)
        assert keeping.running(tmp_path, keeping.PLANE) == found
        assert sorted(found.parts) == ["etcd", "kube-apiserver"]
        assert "server: " + found.url in Path(found.kubeconfig).read_text()
        assert main(["status", "--json", "--folder", str(tmp_path)]) == 0
        told = msgspec.json.decode(capsys.readouterr().out)
        assert [each["url"] for each in told] == [found.url]
    finally:
        assert main(["down", "--folder", str(tmp_path)]) == 0
    assert "Ended: plane." in capsys.readouterr().out
    pids = (found.pid, *found.parts.values())
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert keeping.running(tmp_path, keeping.PLANE) is None


def test_a_node_without_a_control_plane_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "--folder", str(tmp_path)]) == 1
    assert "make kubernetes" in capsys.readouterr().err


def test_where_nothing_runs_there_is_nothing_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "Nothing ran.\n"


def test_a_keeper_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(WattloomError, match=r"(?s)node did not start.*no control plane runs"):
        keeping.start(tmp_path, keeping.NODE)


def test_of_two_that_start_at_once_one_is_refused_before_it_touches_anything(tmp_path: Path) -> None:
    (tmp_path / "etcd").mkdir()  # which a control plane empties before it starts
    with keeping.alone(tmp_path, keeping.PLANE):  # as the other does, which tells only later that it runs
        assert keeping.running(tmp_path, keeping.PLANE) is None
        with pytest.raises(WattloomError, match=r"(?s)plane did not start.*being started or ended there"):
            keeping.start(tmp_path, keeping.PLANE, *SMALL)
    assert (tmp_path / "etcd").exists()


def test_a_file_of_a_keeper_that_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    gone = keeping.Running(pid=1, born="long ago", what=keeping.PLANE)
    (tmp_path / "plane.json").write_bytes(msgspec.json.encode(gone))
    assert keeping.running(tmp_path, keeping.PLANE) is None


def test_what_is_printed_makes_the_cluster_wattloom_and_kubectl_known_to_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, kubectl = tmp_path / "own bin", tmp_path / "built" / "kubectl"
    for program in (own / "python", own / "wattloom", kubectl):
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {program.name} with $KUBECONFIG\n")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    monkeypatch.setenv("TEST_ASSET_KUBECTL", str(kubectl))
    keeping._tell(tmp_path, keeping.PLANE, url="https://127.0.0.1:1", kubeconfig="/where it is", parts={})
    assert main(["up", "--folder", str(tmp_path)]) == 0
    exports = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  export ")]
    typed = "\n".join([*exports, "wattloom", "kubectl"])
    done = subprocess.run(["sh", "-ec", typed], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert (done.stdout, done.stderr) == ("wattloom with /where it is\nkubectl with /where it is\n", "")
    folders = f"{own}:{kubectl.parent}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", folders)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "built"))
    (tmp_path / "built" / "kube-scheduler").symlink_to(kubectl)
    assert main(["up", "--folder", str(tmp_path)]) == 0
    assert "export PATH" not in capsys.readouterr().out  # all of them are found
