"""A kernel that keeps an NVIDIA GPU's multiprocessors at work, through the driver's own library and nothing else.

Owns the kernel's text and the calls of libcuda.so.1 that launch it. How much of the time or of the device it fills is
`gpu_load`'s. The driver translates the text for whatever GPU it finds, Maxwell or later.
"""

import ctypes
from typing import Any, Final

from wattloom.errors import WattloomError

LIBRARY: Final = "libcuda.so.1"
THREADS: Final = 1024
"""Of a block. One or two such blocks fill a multiprocessor, by model."""
FLOPS_PER_ROUND: Final = 16
"""Eight multiply-adds in each thread."""
MULTIPROCESSORS: Final = 16
"""The driver's number of the question how many there are."""
PTX: Final = b"""
.version 6.0
.target sm_50
.address_size 64

.visible .entry spin(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %round, %rounds, %lane;
    .reg .b64 %out;
    .reg .f32 %a, %b, %c, %d, %by, %plus;

    ld.param.u64 %out, [out];
    ld.param.u32 %rounds, [rounds];
    mov.u32 %lane, %tid.x;
    cvt.rn.f32.u32 %a, %lane;
    add.f32 %b, %a, 0f3F800000;
    add.f32 %c, %b, 0f3F800000;
    add.f32 %d, %c, 0f3F800000;
    mov.f32 %by, 0f3F7FF972;
    mov.f32 %plus, 0f38D1B717;
    mov.u32 %round, 0;
again:
    fma.rn.f32 %a, %a, %by, %plus;
    fma.rn.f32 %b, %b, %by, %plus;
    fma.rn.f32 %c, %c, %by, %plus;
    fma.rn.f32 %d, %d, %by, %plus;
    fma.rn.f32 %a, %a, %by, %plus;
    fma.rn.f32 %b, %b, %by, %plus;
    fma.rn.f32 %c, %c, %by, %plus;
    fma.rn.f32 %d, %d, %by, %plus;
    add.u32 %round, %round, 1;
    setp.lt.u32 %p, %round, %rounds;
    @%p bra again;
    add.f32 %a, %a, %b;
    add.f32 %a, %a, %c;
    add.f32 %a, %a, %d;
    setp.lt.f32 %p, %a, 0f00000000;
    @!%p bra done;
    st.global.f32 [%out], %a;
done:
    ret;
}
"""
"""The store never happens, but the translator cannot know: without it nothing would be computed at all."""


class CudaError(WattloomError):
    """The driver refused."""


class Cuda:
    """The first visible GPU, ready to spin."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise CudaError(f"NVIDIA's library {LIBRARY} is not there: it comes with the driver") from None
        self._call("cuInit", ctypes.c_uint(0))
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        count = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(count), ctypes.c_int(MULTIPROCESSORS), device)
        self.multiprocessors: int = count.value
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX + b"\0"))
        self._spin, self._out = ctypes.c_void_p(), ctypes.c_uint64()
        self._call("cuModuleGetFunction", ctypes.byref(self._spin), module, ctypes.c_char_p(b"spin"))
        self._call("cuMemAlloc_v2", ctypes.byref(self._out), ctypes.c_size_t(4))

    def spin(self, blocks: int, rounds: int) -> float:
        """Run it to its end; the floating-point operations that were done."""
        many = ctypes.c_uint(rounds)
        arguments = (ctypes.c_void_p * 2)(
            ctypes.cast(ctypes.byref(self._out), ctypes.c_void_p), ctypes.cast(ctypes.byref(many), ctypes.c_void_p)
        )
        one, none = ctypes.c_uint(1), ctypes.c_void_p()
        grid = (ctypes.c_uint(blocks), one, one, ctypes.c_uint(THREADS), one, one)
        self._call("cuLaunchKernel", self._spin, *grid, ctypes.c_uint(0), none, arguments, none)
        self._call("cuCtxSynchronize")
        return float(FLOPS_PER_ROUND) * rounds * blocks * THREADS

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            said = ctypes.c_char_p()
            self._library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(said))
            words = said.value.decode(errors="replace") if said.value else "no words for it"
            raise CudaError(f"{name} failed: {words} (CUDA error {code})")
