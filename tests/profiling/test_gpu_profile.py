"""`wattloom profile gpu` on stand-ins for the driver's libraries; the load is a real process."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.metering.gpu.conftest import MASKS
from tests.metering.gpu.silicon import VARIABLE, Gpu, Silicon, cuda_library, nvml_library, preload

from wattloom.cli.main import cli
from wattloom.energy.forecast import Unknown
from wattloom.errors import InputError
from wattloom.machines.profile_file import encode_profile
from wattloom.metering.devices import DeviceReading, Kind
from wattloom.profiling.gpu import read_gpu_profile, shares_of
from wattloom.profiling.gpu_command import GpuLoad
from wattloom.profiling.gpu_file import GpuProfile, decode_gpu_profile, is_gpu_profile
from wattloom.profiling.gpu_kernel import PTX
from wattloom.profiling.gpu_load import SPIN_S, rounds_for


class Bench:
    """A machine with stand-ins for NVIDIA's libraries."""

    def __init__(self, folder: Path) -> None:
        self.silicon = Silicon(folder / "silicon", [Gpu(watts=50.0, since=time.time(), busy=0)])
        self.silicon.write()
        self.output = folder / "gpu.json"

    def run(self, *words: str, code: int = 0) -> Result:
        ran = CliRunner().invoke(cli, ["profile", *words], prog_name="wattloom", catch_exceptions=False)
        assert ran.exit_code == code, ran.stderr
        return ran

    def take(self, *words: str, code: int = 0) -> Result:
        terms = ("--seconds", "1", "--settle", "0", "--output", str(self.output))
        return self.run("gpu", *terms, *words, code=code)

    def watts(self) -> dict[int, float]:
        return {point.share: point.power.watts for point in read_gpu_profile(self.output).points if point.power}


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu-libraries")
    nvml_library(folder)
    cuda_library(folder)
    return folder


@pytest.fixture
def bench(tmp_path: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for mask in MASKS:
        monkeypatch.delenv(mask, raising=False)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "silicon"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))  # where the load, a process of its own, finds them
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    preload(libraries / "libnvidia-ml.so.1")
    return Bench(tmp_path)


def test_our_own_kernel_loads_a_share_of_the_time(bench: Bench) -> None:
    said = bench.take("--shares", "25,100").stdout
    watts = bench.watts()
    assert watts[0] == pytest.approx(50.0, rel=0.03)
    # 100 W and 250 W, and less where others have the CPU that the load needs for its launches.
    assert 70.0 < watts[25] < 130.0
    assert 160.0 < watts[100] < 260.0
    assert "A share is of the time" in said
    idle = re.search(r"Idle: ([\d.]+) W", said)
    assert idle is not None
    assert float(idle[1]) == pytest.approx(50.0, abs=2.0)
    points = read_gpu_profile(bench.output).points
    assert [point.ops_per_s is not None and point.ops_per_s > 0.0 for point in points] == [False, True, True]


def test_our_own_kernel_loads_a_share_of_the_multiprocessors(bench: Bench) -> None:
    bench.take("--shares", "50", "--by", "units")
    assert 100.0 < bench.watts()[50] < 160.0, "150 W if nobody else has the CPU; all of them would draw 250 W"


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("nvidia", {"CUDA_VISIBLE_DEVICES": "GPU-7", "HIP_VISIBLE_DEVICES": "3"}),
        ("amd", {"CUDA_VISIBLE_DEVICES": "5", "HIP_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "GPU-7"}),
    ],
)
def test_a_load_sees_its_device_only(kind: Kind, seen: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3")
    monkeypatch.delenv("ROCR_VISIBLE_DEVICES", raising=False)
    says = "import os, sys; sys.exit(repr(sorted((n, v) for n, v in os.environ.items() if n.endswith('_DEVICES'))))"
    device = DeviceReading(7, "GPU-7", "a card", kind, Unknown("not asked"))
    with GpuLoad([sys.executable, "-c", says], device) as load:
        deadline = time.monotonic() + 30.0
        while load.runs and time.monotonic() < deadline:
            time.sleep(0.05)
        assert load.failure() == f"the load ended with code 1: {sorted(seen.items())!r}"


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_nvidia_s_assembler_takes_the_kernel(architecture: str, tmp_path: Path) -> None:
    beside = Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/ptxas")
    assembler = shutil.which("ptxas") or next((str(each) for each in beside), None)
    if assembler is None:
        pytest.skip("there is no ptxas, so the kernel's text is NOT ASSEMBLED here: pip install nvidia-cuda-nvcc-cu12")
    source = tmp_path / "spin.ptx"
    source.write_bytes(PTX)
    command = [assembler, f"-arch={architecture}", "-o", str(tmp_path / "spin.cubin"), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "spin.cubin").stat().st_size > 500


def load_command(folder: Path) -> str:
    """Sets the silicon's power to 50 W and 2 W more for each percent, and says what it did."""
    script = folder / "burn.py"
    script.write_text(LOAD)
    return f"{sys.executable} {script} {{share}} {folder / 'silicon'}"


LOAD = """
import sys, time
share, path = int(sys.argv[1]), sys.argv[2]
lines = open(path).read().splitlines()
words = lines[1].split()
now = time.time()
words[9] = str(int(words[9]) + int(float(words[10]) * (now - float(words[-1]))))
words[10], words[14], words[-1] = str(50000 + 2000 * share), str(share), repr(now)
text = chr(10).join([lines[0], " ".join(words)]) + chr(10)
new = path + ".new"
open(new, "w").write(text)
import os
os.replace(new, path)
while True:
    print(share * 0.5, flush=True)
    time.sleep(0.05)
"""


def test_a_command_of_the_user_s_is_the_load_and_a_second_run_measures_what_is_missing(
    bench: Bench, tmp_path: Path
) -> None:
    command = load_command(tmp_path)
    bench.take("--shares", "20", "--load", command)
    first = read_gpu_profile(bench.output)
    assert bench.watts() == pytest.approx({0: 50.0, 20: 90.0}, rel=0.03)
    assert [point.utilisation for point in first.points] == pytest.approx([0.0, 0.2])
    assert first.points[1].ops_per_s == pytest.approx(200.0, rel=0.5)
    assert first.points[1].temperature_c == 51.0
    assert (first.method.by, first.device.limit_w, first.meter.source) == ("command", 300.0, "counter")
    assert first.finished
    bench.take("--shares", "20,80", "--load", command)
    second = read_gpu_profile(bench.output)
    assert second.points[:2] == first.points
    assert bench.watts()[80] == pytest.approx(210.0, rel=0.03)
    assert "was measured with another method" in bench.take("--shares", "20", code=2).stderr


def test_a_load_that_fails_leaves_the_power_unknown_and_says_why(bench: Bench) -> None:
    fails = f"{sys.executable} -c 'import sys; sys.exit(\"out of memory at {{share}}\")'"
    said = bench.take("--shares", "10", "--load", fails)
    point = read_gpu_profile(bench.output).points[1]
    assert point.power is None
    assert point.problem == "the load ended with code 1: out of memory at 10"
    assert "unknown" in said.stdout
    assert "not complete" in said.stdout


LOSE = """
import os, sys, time
path = sys.argv[2]
lines = open(path).read().splitlines()
words = lines[1].split()
words[3] = "15"
open(path + ".new", "w").write(chr(10).join([lines[0], " ".join(words)]) + chr(10))
print(1, flush=True)
time.sleep(0.7)
os.replace(path + ".new", path)
time.sleep(60)
"""


def test_a_gpu_that_is_lost_meanwhile_ends_the_profile_and_what_was_measured_is_kept(
    bench: Bench, tmp_path: Path
) -> None:
    script = tmp_path / "lose.py"
    script.write_text(LOSE)
    load = f"{sys.executable} {script} {{share}} {bench.silicon.path}"
    said = bench.take("--shares", "10,20", "--load", load, code=1).stderr
    assert "meter nvml does not work any more" in said
    assert "fallen off the bus" in said
    idle, lost = read_gpu_profile(bench.output).points
    assert idle.power is not None
    assert lost.power is None
    assert "fallen off the bus" in lost.problem


def test_a_place_that_cannot_be_written_is_known_before_anything_is_measured(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    began = time.monotonic()
    said = bench.run("gpu", "--settle", "0", "--output", str(tmp_path / "file" / "gpu.json"), code=2).stderr
    assert "there is no folder" in said
    assert time.monotonic() - began < 9.0, "one point alone takes ten seconds"


MARK = """
import pathlib, sys, time
while True:
    pathlib.Path(sys.argv[2]).write_text(str(time.time()))
    print(1, flush=True)
    time.sleep(0.05)
"""


def test_a_load_dies_when_the_profile_is_done(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    script = tmp_path / "mark.py"
    script.write_text(MARK)
    bench.take("--shares", "10", "--load", f"{sys.executable} {script} {{share}} {mark}")
    last = mark.read_text()
    time.sleep(0.3)
    assert mark.read_text() == last


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--load", "burn"), "has no {share}"),
        (("--load", "burn '{share}"), "cannot be read as a command"),
        (("--shares", "0-50"), "between 1 and 100"),
        (("--shares", "half"), "is not a share"),
        (("--device", "7"), "there is 0 (Tesla V100"),
        (("--meter", "estimate"), "is not a meter of accelerators"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(bench: Bench, words: tuple[str, ...], said: str) -> None:
    assert said in bench.take(*words, code=2).stderr
    assert not bench.output.exists()


def test_without_a_gpu_it_says_why_each_meter_sees_none(bench: Bench) -> None:
    bench.silicon.driver_rc = 9
    bench.silicon.write()
    said = bench.take(code=2).stderr
    assert "no GPU can be read here" in said
    assert "modprobe nvidia" in said


def test_show_prints_and_draws_the_profile(bench: Bench, tmp_path: Path) -> None:
    bench.output.write_bytes(encode_profile(saturating()))
    said = bench.run("show", str(bench.output)).stdout
    assert "From 50% on it draws more than nine tenths" in said
    assert "watts over share" in said
    data = json.loads(bench.run("show", str(bench.output), "--json").stdout)
    assert data["profile"]["kind"] == "gpu"
    pytest.importorskip(
        "matplotlib", reason="matplotlib is missing, so pictures are NOT TESTED: pip install -e '.[report]'"
    )
    picture = tmp_path / "gpu.png"
    bench.run("show", str(bench.output), "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_narrow_terminal_goes_without_columns_and_has_remarks_below(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = saturating()
    points = tuple(msgspec.structs.replace(point, others=0.5) for point in made.points)
    bench.output.write_bytes(encode_profile(msgspec.structs.replace(made, points=points)))
    monkeypatch.setenv("COLUMNS", "66")
    said = bench.run("show", str(bench.output)).stdout
    assert "(1) disturbed: others used 50%" in said
    head = next(line.split() for line in said.splitlines() if "share" in line and "work/s" in line)
    assert head == ["share", "watts", "utilisation", "work/s", "J", "per", "work"]
    assert said.count("(1)") == len(points) + 1


# -- the file --------------------------------------------------------------------------------------------------------


def saturating() -> GpuProfile:
    watts = {0: 50.0, 25: 180.0, 50: 240.0, 100: 250.0}
    points: list[dict[str, Any]] = [
        {"share": share, "power": {"watts": drawn, "spread_w": 1.0, "intervals": 9, "seconds": 9.0}}
        for share, drawn in watts.items()
    ]
    whole = {
        "wattloom_profile": 1,
        "kind": "gpu",
        "name": "Tesla V100",
        "began": "2026-01-01T00:00:00+00:00",
        "device": {"uuid": "GPU-1", "name": "Tesla V100", "kind": "nvidia", "limit_w": 300.0},
        "meter": {"name": "nvml", "provenance": "measured", "source": "counter"},
        "method": {"load": "built in", "by": "time", "seconds": 10.0, "settle_s": 60.0, "tolerance": 0.01},
        "points": points,
    }
    return decode_gpu_profile(json.dumps(whole).encode(), "here")


def test_a_profile_reads_back_as_it_was_written() -> None:
    profile = saturating()
    again = decode_gpu_profile(encode_profile(profile), "here")
    assert again == profile
    assert is_gpu_profile(encode_profile(profile))
    assert not is_gpu_profile(b'{"kind": "cpu"}')
    assert not is_gpu_profile(b"\xff nothing")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"share": 25', b'"share": 50', "twice"),
        (b'"share": 25', b'"share": 250', "share"),
        (b'"wattloom_profile": 1', b'"wattloom_profile": 9', "reads version 1"),
        (b'"name": "nvml"', b'"odd": 1', "odd"),
        (b'"kind"', b"kind", "is not a profile"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(old: bytes, new: bytes, words: str) -> None:
    data = encode_profile(saturating())
    assert old in data
    with pytest.raises(InputError, match=words):
        decode_gpu_profile(data.replace(old, new, 1), "here")


def test_a_point_without_power_must_say_why() -> None:
    data = json.loads(encode_profile(saturating()))
    del data["points"][1]["power"]
    with pytest.raises(InputError, match="must say why"):
        decode_gpu_profile(json.dumps(data).encode(), "here")
    data["points"][1]["problem"] = "the GPU is lost"
    assert decode_gpu_profile(json.dumps(data).encode(), "here").points[1].power is None


def test_shares_are_lists_and_ranges() -> None:
    assert shares_of("10-100/10") == list(range(10, 101, 10))
    assert shares_of("50, 5-7,50") == [5, 6, 7, 50]


def test_rounds_are_found_that_take_about_the_time_of_a_launch() -> None:
    class Clock:
        now = 0.0

        def spin(self, rounds: int) -> float:
            self.now += rounds * 1e-8
            return 0.0

    clock = Clock()
    found = rounds_for(clock.spin, lambda: clock.now)
    assert found * 1e-8 == pytest.approx(SPIN_S, rel=0.01)
