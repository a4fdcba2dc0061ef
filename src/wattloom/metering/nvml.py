"""NVIDIA's GPUs through NVML, by NVIDIA's own binding (`pip install 'wattloom[nvidia]'`).

Owns the calls, and the words for what may go wrong with them. The only module that knows pynvml. The binding is loaded
when the driver is opened, not before.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar

from wattloom.machines.profile import MachineProfile
from wattloom.metering.device_counts import Spent
from wattloom.metering.device_masks import NVIDIA, Identity, set_masks, visible
from wattloom.metering.device_meter import WORKLOADS_DIFFER, Device, DriverMeter, DriverProblem, State
from wattloom.metering.devices import DeviceProcess, Kind
from wattloom.metering.patient_driver import PatientDriver

T = TypeVar("T")

COUNTER_UPDATE_S: Final = 0.1
"""The energy counter is brought up to date every 20 to 100 ms, by model."""
AVERAGE_S: Final = 1.0
"""Over which GPUs from Ampere on average the power they report. GA100 (A100, A30) and older ones do not."""
_GA100: Final = re.compile(r"\b(GA100|A100X?|A30X?|A800|CMP 170HX)\b")
_MIXED: Final = (
    "indices of CUDA_VISIBLE_DEVICES are read in PCI order; with unlike cards set CUDA_DEVICE_ORDER=PCI_BUS_ID"
)


class NvmlDriver:
    """The calls of NVML that we use."""

    kind: Kind = "nvidia"

    def __init__(self) -> None:
        self._nvml: Any = None
        self._windows: dict[str, float] = {}
        """By device: over how long it averages its power."""
        self._seen: dict[str, int] = {}
        """By device: the driver's time of the last sample of utilisation."""

    def open(self) -> tuple[Device, ...]:
        nvml = self._load()
        count = _asked(nvml.nvmlDeviceGetCount)
        found = [self._identified(index) for index in range(count)]
        identities = [Identity((device.uuid, *self._instances(device).values())) for device in found]
        places = visible(identities, os.environ, NVIDIA)
        if not places:
            masks = set_masks(os.environ, NVIDIA)
            hint = f"; {masks} leaves none of the {count} in this machine" if masks and count else ""
            raise DriverProblem(f"NVIDIA's driver shows no GPU{hint}", gone=True)
        return self._with_order_noted(found, places)

    def spent(self, device: Device) -> Spent:
        """The counter (Volta and later); else power."""
        try:
            return Spent("counter", self._ask("TotalEnergyConsumption", device), 1e-3, COUNTER_UPDATE_S)
        except _NotThere:
            return Spent("power", self._ask("PowerUsage", device) * 1e-3, period_s=self._windows.get(device.uuid, 0.0))

    def state(self, device: Device) -> State:
        memory = self._maybe("MemoryInfo", device)
        busy = self._maybe("UtilizationRates", device)
        watts, limit = self._maybe("PowerUsage", device), self._maybe("EnforcedPowerLimit", device)
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        return State(
            watts=None if watts is None else watts * 1e-3,
            utilisation=None if busy is None else busy.gpu / 100.0,
            memory_used=None if memory is None else memory.used,
            memory_total=None if memory is None else memory.total,
            limit_w=None if limit is None else limit * 1e-3,
            temperature_c=self._maybe("Temperature", device, sensor),
        )

    def users(self, device: Device, now: float) -> list[DeviceProcess]:
        memory = self._contexts(device)
        busy = self._utilisation(device)
        pids = sorted(memory.keys() | (busy or {}).keys())
        # A process that is not in the driver's list of busy ones was idle, where there is such a list.
        return [
            DeviceProcess(pid, device.uuid, None if busy is None else busy.get(pid, 0.0), memory.get(pid))
            for pid in pids
        ]

    # -- opening -------------------------------------------------------------------------------------------------

    def _load(self) -> Any:
        try:
            import pynvml
        except ImportError:
            raise DriverProblem("NVIDIA's binding is not installed: pip install 'wattloom[nvidia]'") from None
        if self._nvml is not None:  # opened before, and gone since: begin from nothing
            _quietly(self._nvml.nvmlShutdown)
        self._nvml = pynvml
        _asked(pynvml.nvmlInit)
        return pynvml

    def _identified(self, index: int) -> Device:
        """Also a device that cannot be asked has a place: others keep their numbers."""
        nvml = self._nvml
        try:
            handle = _asked(nvml.nvmlDeviceGetHandleByIndex, index)
            uuid, name = _asked(nvml.nvmlDeviceGetUUID, handle), _asked(nvml.nvmlDeviceGetName, handle)
        except DriverProblem as problem:
            return Device(index, f"nvidia:{index}", "", None, problem=problem.reason)
        self._windows[uuid] = self._window(handle, name)
        instances = self._instances(Device(index, uuid, name, handle))
        note = f"MIG is on, {len(instances)} instances: joules are known of the whole card only" if instances else ""
        return Device(index, uuid, name, handle, note)

    def _window(self, handle: Any, name: str) -> float:
        try:
            architecture = _asked(self._nvml.nvmlDeviceGetArchitecture, handle)
        except DriverProblem:
            return 0.0
        ampere: int = self._nvml.NVML_DEVICE_ARCH_AMPERE
        if architecture == self._nvml.NVML_DEVICE_ARCH_UNKNOWN or architecture < ampere:
            return 0.0
        return 0.0 if architecture == ampere and _GA100.search(name) else AVERAGE_S

    def _with_order_noted(self, found: list[Device], places: list[int]) -> tuple[Device, ...]:
        by_number = any(part.strip().isdecimal() for part in os.environ.get(NVIDIA[0], "").split(","))
        unlike = len({device.name for device in found}) > 1
        if not by_number or not unlike or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
            return tuple(found[place] for place in places)
        return tuple(_noted(found[place], _MIXED) for place in places)

    # -- MIG -----------------------------------------------------------------------------------------------------

    def _instances(self, device: Device) -> dict[int, str]:
        """UUIDs of the instances that a card is cut into, by their number. Empty: it is whole."""
        return {number: _asked(self._nvml.nvmlDeviceGetUUID, handle) for number, handle in self._parts(device)}

    def _parts(self, device: Device) -> Iterable[tuple[int, Any]]:
        if device.problem or (self._maybe("MigMode", device) or [0])[0] == 0:
            return
        for number in range(self._maybe("MaxMigDeviceCount", device) or 0):
            try:
                yield number, _asked(self._nvml.nvmlDeviceGetMigDeviceHandleByIndex, device.handle, number)
            except DriverProblem:
                continue  # numbers have gaps

    # -- who uses it ---------------------------------------------------------------------------------------------

    def _contexts(self, device: Device) -> dict[int, int | None]:
        """Bytes of device memory by process. With MIG the card tells root only; its instances tell us of ours."""
        memory: dict[int, int | None] = {}
        for handle in [handle for _, handle in self._parts(device)] or [device.handle]:
            for call in ("ComputeRunningProcesses", "GraphicsRunningProcesses"):
                # Drivers before 510 know only the second version of the question.
                contexts = self._maybe(call, device, handle=handle) or self._maybe(f"{call}_v2", device, handle=handle)
                for context in contexts or ():
                    before, more = memory.get(context.pid), context.usedGpuMemory
                    memory[context.pid] = more if before is None else before + (more or 0)
        return memory

    def _utilisation(self, device: Device) -> dict[int, float] | None:
        """Share of the time in which a process' kernels ran, since the last call. None: not told, as with MIG."""
        seen = self._seen.get(device.uuid, 0)
        try:
            samples = self._ask("ProcessUtilization", device, seen)
        except _NothingNew:
            return {}
        except DriverProblem:
            return None
        by_pid: dict[int, list[int]] = {}
        for sample in samples:
            if sample.timeStamp > seen and sample.pid > 0 and sample.smUtil <= 100:  # the driver pads with nonsense
                by_pid.setdefault(sample.pid, []).append(sample.smUtil)
        self._seen[device.uuid] = max((sample.timeStamp for sample in samples), default=seen)
        return {pid: sum(shares) / len(shares) / 100.0 for pid, shares in by_pid.items()}

    # -- asking --------------------------------------------------------------------------------------------------

    def _ask(self, what: str, device: Device, *more: Any, handle: Any = None) -> Any:
        return _asked(getattr(self._nvml, f"nvmlDeviceGet{what}"), device.handle if handle is None else handle, *more)

    def _maybe(self, what: str, device: Device, *more: Any, handle: Any = None) -> Any:
        """None where it is not told."""
        try:
            return self._ask(what, device, *more, handle=handle)
        except DriverProblem:
            return None


class _NotThere(DriverProblem):
    """This device or this driver has no such figure."""


class _NothingNew(DriverProblem):
    """There is such a figure, but nothing happened."""


def _asked(call: Callable[..., T], *arguments: Any) -> T:
    """One call of the binding, its errors in our words."""
    import pynvml

    try:
        return call(*arguments)
    except pynvml.NVMLError as error:
        code = getattr(error, "value", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        if code in (pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NO_DATA):
            raise _NothingNew(in_words(code)) from None
        if code in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            raise _NotThere(in_words(code)) from None
        gone = code in (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        broke = code in (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
        raise DriverProblem(in_words(code), broke=broke, gone=gone) from None
    except pynvml.NVMLLibraryMismatchError:
        raise _NotThere(in_words(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)) from None


def _quietly(call: Callable[[], Any]) -> None:
    with suppress(DriverProblem):
        _asked(call)


def _noted(device: Device, note: str) -> Device:
    both = f"{device.note}; {note}" if device.note else note
    return Device(device.index, device.uuid, device.name, device.handle, both, device.problem)


def for_machine(profile: MachineProfile) -> DriverMeter:
    """The entry point: the GPUs of the machine we run on, whatever its profile says."""
    return DriverMeter(
        "nvml",
        "NVIDIA GPUs, by NVML: their energy counters, or their power",
        PatientDriver(NvmlDriver()),
        WORKLOADS_DIFFER,
    )


_WORDS: Final = {
    1: "NVML was shut down, or never opened",
    2: "NVML does not know this device or this question",
    3: "this GPU does not tell its energy or its power",
    4: "this user may not ask the driver: the device files /dev/nvidia* must be readable and writable for them (in a "
    "container: start it with --gpus)",
    6: "the driver has nothing to tell",
    8: "the GPU's power cables are not plugged in properly",
    9: "NVIDIA's driver is not loaded (sudo modprobe nvidia), or this machine has no NVIDIA GPU",
    10: "the driver did not answer in time",
    12: "NVIDIA's library libnvidia-ml.so.1 is not there: it comes with the driver (in a container: --gpus)",
    13: "the installed driver is older than this figure, or than the binding nvidia-ml-py",
    15: "the GPU is lost: it has fallen off the bus or cannot be reached. A reset or a reboot brings it back; "
    "until then leave it out with CUDA_VISIBLE_DEVICES",
    16: "the GPU must be reset before it can be used again (sudo nvidia-smi --gpu-reset)",
    17: "the driver was refused by the operating system",
    18: "NVIDIA's library and the loaded driver are of different versions, as after an update: reboot, or load the "
    "driver again (sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; sudo modprobe nvidia)",
    21: "the driver has no data",
    28: "the GPU was not found",
    999: "NVML failed for a reason that it does not know itself",
}


def in_words(code: int) -> str:
    """The reason, with the code for those who look it up."""
    return f"{_WORDS.get(code, 'NVML refused')} (NVML error {code})"
