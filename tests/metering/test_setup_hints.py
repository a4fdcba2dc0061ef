"""What users are told to type does what it says."""

import grp
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from wattloom.metering import setup_hints


@pytest.mark.parametrize(
    ("subsystem", "match", "files"),
    [("powercap", 'KERNEL=="intel-rapl:*"', "energy_uj"), ("hwmon", 'ATTR{name}=="amd_energy"', "energy*_input")],
)
def test_the_udev_rule_lets_a_group_read_and_nobody_else(
    subsystem: str, match: str, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """udev puts the device's path for %p and runs what stands between the quotes."""
    monkeypatch.setattr(setup_hints, "GROUP", grp.getgrgid(os.getgid()).gr_name)
    (rule,) = [line for line in setup_hints.files_for_group(subsystem, match, files, "") if "RUN+=" in line]
    found = re.fullmatch(r"""\s*SUBSYSTEM=="(\w+)", ACTION=="add", (\S+), RUN\+="/bin/sh -c '([^']+)'\"""", rule)
    assert found is not None
    assert found.group(1, 2) == (subsystem, match)
    file = tmp_path / files.replace("*", "7")
    file.write_text("1")
    file.chmod(0o400)
    subprocess.run(["/bin/sh", "-c", found[3].replace("/sys%p", str(tmp_path))], check=True, timeout=10)
    assert stat.S_IMODE(file.stat().st_mode) == 0o440
    assert file.stat().st_gid == os.getgid()


def test_what_is_missing_stands_before_how_to_allow_it() -> None:
    problem = setup_hints.missing("no driver", *setup_hints.module("intel_rapl_msr"))
    what, how = setup_hints.split(problem)
    assert what == "no driver"
    assert how.splitlines()[0] == "load the kernel's module: sudo modprobe intel_rapl_msr"
    assert setup_hints.split("all in one line") == ("all in one line", "")


def test_settings_are_named_as_the_file_and_the_environment_have_them() -> None:
    lines = setup_hints.setting("recording", path='"power.csv"', quantity='"wall"')
    assert lines == (
        'in wattloom.toml, under [recording]: path = "power.csv"; quantity = "wall"',
        "or in the environment: WATTLOOM_RECORDING__PATH=power.csv",
    )
