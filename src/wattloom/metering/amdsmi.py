"""AMD's GPUs through AMD SMI, by AMD's own binding (`pip install 'wattloom[amd]'`) and ROCm's libamd_smi.so.

Owns the calls, and the words for what may go wrong with them. The only module that knows amdsmi. The binding looks up
every function of the library as it is imported and says on the standard output when it finds none, so it is loaded when
the driver is opened, and quietly.
"""

import io
import os
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from math import inf
from typing import Any, Final, TypeVar

from wattloom.machines.profile import MachineProfile
from wattloom.metering.device_counts import Spent
from wattloom.metering.device_masks import AMD, NVIDIA, Identity, set_masks, visible
from wattloom.metering.device_meter import WORKLOADS_DIFFER, Device, DriverMeter, DriverProblem, State
from wattloom.metering.devices import DeviceProcess, Kind
from wattloom.metering.patient_driver import PatientDriver
from wattloom.units import MIB

T = TypeVar("T")

COUNTER_UPDATE_S: Final = 0.01
"""The firmware brings its energy counter up to date every millisecond; the driver's table of it is a few older."""
NOT_KNOWN: Final = (2**16 - 1, 2**32 - 1, 2**64 - 1)
"""What stands in a field that the device does not fill."""
NOT_SUPPORTED: Final = (2, 3, 49)
NOT_INITIALISED: Final = (18, 32, 34)
LOST: Final = (12, 14, 31, 55)
"""Of single devices: the kernel's files of it cannot be read any more, as while it is reset."""


class AmdsmiDriver:
    """The calls of AMD SMI that we use."""

    kind: Kind = "amd"

    def __init__(self) -> None:
        self._smi: Any = None
        self._units: dict[str, int] = {}
        """By device: how many compute units it has."""
        self._ran: dict[tuple[str, int], tuple[float, int]] = {}
        """By device and process: when it was looked at, and the nanoseconds its work had run by then."""

    def open(self) -> tuple[Device, ...]:
        smi = self._load()
        handles = _asked(smi.amdsmi_get_processor_handles)
        found = sorted(
            (self._identified(place, handle) for place, handle in enumerate(handles)), key=lambda device: device.index
        )
        masked = AMD if AMD[1] in os.environ else (AMD[0], NVIDIA[0])  # HIP obeys CUDA's where it has none of its own
        places = visible([Identity((device.uuid,)) for device in found], os.environ, masked)
        if not places:
            masks = set_masks(os.environ, masked)
            hint = f"; {masks} leaves none of the {len(found)} in this machine" if masks and found else ""
            raise DriverProblem(f"AMD's driver shows no GPU{hint}", gone=True)
        return tuple(found[place] for place in places)

    def spent(self, device: Device) -> Spent:
        """The accumulator (most Instinct and many Radeon); else power, to the watt."""
        try:
            count = _asked(self._smi.amdsmi_get_energy_count, device.handle)
        except _NotThere:
            count = {}
        raw, step_uj = _accumulator(count), float(count.get("counter_resolution", 0.0))
        if raw and step_uj > 0.0:
            return Spent("counter", raw, step_uj * 1e-6, COUNTER_UPDATE_S)
        watts = _watts(_asked(self._smi.amdsmi_get_power_info, device.handle))
        if watts is None:
            raise DriverProblem(in_words(NOT_SUPPORTED[0]))
        return Spent("power", watts)

    def state(self, device: Device) -> State:
        smi, handle = self._smi, device.handle
        memory = _maybe(smi.amdsmi_get_gpu_vram_usage, handle) or {}
        busy = _number((_maybe(smi.amdsmi_get_gpu_activity, handle) or {}).get("gfx_activity"), most=100)
        limit_uw = _number((_maybe(smi.amdsmi_get_power_cap_info, handle) or {}).get("power_cap"), most=inf)
        used, total = memory.get("vram_used"), memory.get("vram_total")
        return State(
            watts=_watts(_maybe(smi.amdsmi_get_power_info, handle) or {}),
            utilisation=None if busy is None else busy / 100.0,
            memory_used=None if used is None else used * MIB,
            memory_total=None if total is None else total * MIB,
            limit_w=None if limit_uw is None else limit_uw * 1e-6,
            temperature_c=self._temperature(handle),
        )

    def users(self, device: Device, now: float) -> list[DeviceProcess]:
        users = []
        for process in _asked(self._smi.amdsmi_get_gpu_process_list, device.handle):
            pid, memory = process["pid"], process.get("memory_usage", {}).get("vram_mem")
            users.append(DeviceProcess(pid, device.uuid, self._utilisation(device, process, now), memory))
        alive = {(device.uuid, user.pid) for user in users}
        self._ran = {key: ran for key, ran in self._ran.items() if key[0] != device.uuid or key in alive}
        return users

    # -- opening -------------------------------------------------------------------------------------------------

    def _load(self) -> Any:
        if self._smi is not None:  # opened before, and gone since: begin from nothing
            with suppress(DriverProblem):
                _asked(self._smi.amdsmi_shut_down)
        self._smi = _binding()
        _asked(self._smi.amdsmi_init)
        version = _maybe(self._smi.amdsmi_get_lib_version) or {}
        problem = misfit(str(getattr(self._smi, "__version__", "")), version.get("major"))
        if problem:
            raise DriverProblem(problem, gone=True)
        return self._smi

    def _identified(self, place: int, handle: Any) -> Device:
        """Numbered as HIP does, where the driver tells it; else in the order of the driver."""
        smi = self._smi
        try:
            asic = _asked(smi.amdsmi_get_gpu_asic_info, handle)
        except DriverProblem as problem:
            return Device(place, f"amd:{place}", "", None, problem=problem.reason)
        order = _maybe(smi.amdsmi_get_gpu_enumeration_info, handle) or {}
        index = order.get("hip_id")
        serial = str(asic.get("asic_serial", "")).removeprefix("0x").lower()
        uuid = order.get("hip_uuid") or (f"GPU-{serial}" if serial not in ("", "n/a") else f"amd:{place}")
        units = _number(asic.get("num_compute_units"), most=10_000)
        if units:
            self._units[uuid] = int(units)
        return Device(index if isinstance(index, int) else place, uuid, str(asic.get("market_name", "")), handle)

    # -- figures -------------------------------------------------------------------------------------------------

    def _temperature(self, handle: Any) -> float | None:
        smi = self._smi
        for sensor in (smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureType.EDGE):
            degrees = _maybe(smi.amdsmi_get_temp_metric, handle, sensor, smi.AmdSmiTemperatureMetric.CURRENT)
            if degrees is not None:
                return float(degrees)
        return None

    def _utilisation(self, device: Device, process: dict[str, Any], now: float) -> float | None:
        """The larger of two: the time its graphics work ran since the last look, and the compute units it holds now.

        The kernel does not count the time of compute work, only how much of the device such a process fills at the
        moment. Where a card does not tell even that, and no graphics work ran, nobody knows.
        """
        ran = self._ran_share(device.uuid, process["pid"], int(process.get("engine_usage", {}).get("gfx", 0)), now)
        held, units = _number(process.get("cu_occupancy"), most=10_000), self._units.get(device.uuid)
        filled = min(held / units, 1.0) if held is not None and units else None
        return max((share for share in (ran, filled) if share is not None), default=None)

    def _ran_share(self, uuid: str, pid: int, nanoseconds: int, now: float) -> float | None:
        """None: this process never ran graphics work, which says nothing of compute work."""
        before, ran = self._ran.get((uuid, pid), (now, nanoseconds))
        self._ran[uuid, pid] = (now, nanoseconds)
        if nanoseconds == 0 or now <= before:
            return None
        return min(max(nanoseconds - ran, 0) * 1e-9 / (now - before), 1.0)


class _NotThere(DriverProblem):
    """This device or this driver has no such figure."""


def _binding() -> Any:
    try:
        with redirect_stdout(io.StringIO()):
            import amdsmi
    except ModuleNotFoundError:
        raise DriverProblem("AMD's binding is not installed: pip install 'wattloom[amd]'") from None
    except KeyError:  # what it stumbles over when it has found no library
        raise DriverProblem(
            "AMD's library libamd_smi.so is not there: it comes with ROCm (package amd-smi-lib; ROCM_PATH says where)"
        ) from None
    except (AttributeError, OSError) as problem:
        raise DriverProblem(f"{MISFIT}: {problem}") from None
    return amdsmi


def _asked(call: Callable[..., T], *arguments: Any) -> T:
    """One call of the binding, its errors in our words."""
    from amdsmi import AmdSmiException

    try:
        return call(*arguments)
    except AmdSmiException as error:
        code = getattr(error, "err_code", None)
        code = int(code) if isinstance(code, int) else -1
        words = in_words(code)
        if code in NOT_SUPPORTED:
            raise _NotThere(words) from None
        raise DriverProblem(words, broke=code in LOST, gone=code in NOT_INITIALISED) from None
    except (ValueError, KeyError, TypeError) as error:  # it stumbles over text that is not what it expects
        raise DriverProblem(f"AMD's binding failed: {type(error).__name__}: {error}") from error


def _maybe(call: Callable[..., T], *arguments: Any) -> T | None:
    """None where it is not told."""
    try:
        return _asked(call, *arguments)
    except DriverProblem:
        return None


def _accumulator(count: dict[str, Any]) -> int:
    """0: there is none. Bindings before ROCm 6.1 called it power."""
    raw = int(count.get("energy_accumulator", count.get("power", 0)))
    return 0 if raw in NOT_KNOWN else raw


def _watts(power: dict[str, Any]) -> float | None:
    """MI300 and later know the present power, others an average."""
    for field in ("current_socket_power", "average_socket_power", "socket_power"):
        watts = _number(power.get(field), most=inf)
        if watts:
            return watts
    return None


def _number(value: Any, most: float) -> float | None:
    """None: not a figure, or beyond what it can be."""
    known = isinstance(value, int | float) and value not in NOT_KNOWN
    return float(value) if known and 0 <= value <= most else None


def for_machine(profile: MachineProfile) -> DriverMeter:
    """The entry point: the GPUs of the machine we run on, whatever its profile says."""
    summary = "AMD GPUs, by AMD SMI: their energy counters, or their power"
    return DriverMeter("amdsmi", summary, PatientDriver(AmdsmiDriver()), WORKLOADS_DIFFER)


_WORDS: Final = {
    1: "AMD SMI does not know this device or this question",
    2: "this GPU does not tell its energy or its power",
    3: "this version of AMD SMI does not tell it yet",
    4: "AMD's library cannot load a part of itself",
    6: "the kernel's DRM interface refused",
    8: "the driver did not answer in time",
    9: "the driver is busy and asks to try again",
    10: "this user may not ask the driver: add them to the groups render and video "
    "(sudo usermod -aG render,video $USER), and log in again",
    12: "the kernel's files of the GPU cannot be read: it is being reset, or is lost",
    14: "the kernel's files of the GPU cannot be opened: it is being reset, or is lost",
    18: "AMD SMI cannot be opened",
    30: "the GPU is busy",
    31: "the GPU is gone: it is lost or was taken away. ROCR_VISIBLE_DEVICES can leave it out until a reboot",
    32: "AMD SMI was shut down, or never opened",
    34: "AMD's driver is not loaded (sudo modprobe amdgpu), or this machine has no AMD GPU",
    40: "the driver has no data",
    55: "the driver could not be started again after a reset",
}
_LIBRARY_OF_ROCM: Final = {6: (23, 24, 25), 7: (26,)}
"""Releases of the library by release of ROCm, where the binding carries the latter's number."""
MISFIT: Final = (
    "AMD's binding does not fit its library libamd_smi.so: install the one that came with ROCm "
    "(pip install /opt/rocm/share/amd_smi)"
)


def in_words(code: int) -> str:
    """The reason, with the code for those who look it up."""
    return f"{_WORDS.get(code, 'AMD SMI refused')} (AMD SMI status {code})"


def misfit(binding: str, library: int | None) -> str:
    """Why the binding must not be used with this library: their structures would not be the same. Empty: they fit."""
    head = binding.split(".")[0]
    if library is None or not head.isdecimal():
        return ""
    fitting = _LIBRARY_OF_ROCM.get(int(head), (int(head),))
    if library in fitting or (int(head) not in _LIBRARY_OF_ROCM and 0 < int(head) < 20):
        return ""
    return f"{MISFIT}; they are of the versions {binding} and {library}"
