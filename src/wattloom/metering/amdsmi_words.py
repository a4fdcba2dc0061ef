"""What AMD SMI's status codes mean for the one who wants joules, and whether binding and library fit.

Owns the words. The codes are those of amdsmi.h; nothing is loaded for them.
"""

from typing import Final

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
