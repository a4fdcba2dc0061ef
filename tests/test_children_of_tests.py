"""What tests start can be interrupted, whoever started the tests."""

import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parent / "conftest.py"
IGNORED = (1, 2, 3, 15)
AS_NOHUP = f"""
import os, signal, sys
for number in {IGNORED}:
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
TEST = f"""
import subprocess, sys

def test_a_child_is_ended_by_every_signal():
    for number in {IGNORED}:
        code = f"import os, time; os.kill(os.getpid(), {{number}}); time.sleep(60)"
        child = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=50)
        assert child.returncode == -number
"""


def test_under_nohup_children_of_tests_are_interrupted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_child.py").write_text(TEST)
    pytest = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", "test_child.py"]
    ended = subprocess.run(
        [sys.executable, "-c", AS_NOHUP, *pytest], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stdout
