"""What NVML's error codes mean for the one who wants joules, and what to do about them.

Owns the words. The codes are those of nvml.h; nothing is loaded for them.
"""

from typing import Final

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
