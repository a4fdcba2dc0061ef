"""What TAB completes: through click's protocol, and in a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "wattloom.cli.main"]


def completed(line: str) -> list[str]:
    """What is offered for the last word of the line; words as bash splits them, with spaces in between."""
    at = len(line.split(" ")) - 1
    settings = {"_WATTLOOM_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(at)}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=os.environ | settings, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wattloom simulate hs", ["plain,hsc-cpu"]),
        ("wattloom compare mi", ["plain,mixed-1000"]),
        ("wattloom scenarios show mi", ["plain,mixed-1000"]),
        ("wattloom scenarios show my", []),
        ("wattloom simulate my", ["file,my"]),
        ("wattloom simulate x --policy least", ["plain,least-joules"]),
        ("wattloom simulate x --policy mine", ["file,mine"]),
        ("wattloom simulate x --policy least-joules:str", ["plain,least-joules:stretch="]),
        ("wattloom compare x --policies fifo,pa", ["plain,fifo,pack"]),
        ("wattloom compare x --policies marginal-energy:tdp=true,gu", ["plain,marginal-energy:tdp=true,guarantee="]),
        # as bash splits it: the answer begins where its last word begins
        ("wattloom simulate x --policy least-joules : str", ["plain,stretch="]),
        ("wattloom simulate x --policy = least", ["plain,least-joules"]),
        ("wattloom simulate x --policy = least-joules : str", ["plain,stretch="]),
        ("wattloom compare x --policies marginal-energy : tdp = true,gu", ["plain,true,guarantee="]),
    ],
)
def test_names_come_first_and_files_only_where_no_name_fits(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_after_a_colon_all_options_are_offered_and_no_policies() -> None:
    offered = completed("wattloom simulate x --policy least-joules :")
    assert "plain,stretch=" in offered
    assert all(one.endswith("=") for one in offered)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "replies"),
    [
        ("wattloom simulate hs", ["hsc-cpu"]),
        ("wattloom scenarios show mi", ["mixed-1000"]),
        ("wattloom simulate x --policy least-joules : str", ["stretch="]),
    ],
)
def test_bash_itself_takes_the_answers(words: str, replies: list[str], tmp_path: Path) -> None:
    command = tmp_path / "wattloom"
    command.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    script = (
        f"source <(wattloom completion bash); COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; "
        'COMPREPLY=(stale); _wattloom_completion wattloom; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert (done.stdout.split(), done.stderr) == (replies, "")
