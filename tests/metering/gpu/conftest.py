"""GPUs for tests: the libraries are compiled once per process, the silicon is new for every test."""

from pathlib import Path

import pytest
from tests.metering.gpu.silicon import VARIABLE, Silicon, amdsmi_library, nvml_library, preload

MASKS = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@pytest.fixture(scope="session")
def nvml_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def amdsmi_so(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return amdsmi_library(tmp_path_factory.mktemp("amdsmi"))


@pytest.fixture
def silicon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Silicon:
    for mask in MASKS:
        monkeypatch.delenv(mask, raising=False)
    made = Silicon(tmp_path / "silicon")
    monkeypatch.setenv(VARIABLE, str(made.path))
    return made


@pytest.fixture
def nvidia(silicon: Silicon, nvml_so: Path) -> Silicon:
    preload(nvml_so)
    silicon.write()
    return silicon


@pytest.fixture
def amd(silicon: Silicon, amdsmi_so: Path) -> Silicon:
    preload(amdsmi_so)
    silicon.maker = "amd"
    silicon.gpus[0].uuid = "GPU-00000000000000a0"
    silicon.gpus[0].name = "AMD Instinct MI210"
    silicon.gpus[0].architecture = 104
    silicon.write()
    return silicon
