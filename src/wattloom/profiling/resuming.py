"""What is kept of a profile that is there already.

Owns when levels of two runs may stand in one file: same machine in the same state, same meter, same method.
"""

from pathlib import Path
from typing import Final

import msgspec

from wattloom.errors import InputError
from wattloom.machines.own_profile import read_profile
from wattloom.machines.profile_file import VERSION, CpuProfile, MachineIdentity, MeterUsed, Method

MAY_CHANGE: Final = ("memory",)
"""What of the machine's state says nothing of its power: kernels keep a little more or less memory to themselves."""
INSTEAD: Final = "--fresh begins anew, --output FILE keeps both"


def beginning(
    path: Path, name: str, began: str, machine: MachineIdentity, meter: MeterUsed, method: Method, fresh: bool
) -> CpuProfile:
    """The profile to go on with: that in the file, or a new one. InputError if the two do not belong together."""
    new = CpuProfile(
        wattloom_profile=VERSION, kind="cpu", name=name, began=began, machine=machine, meter=meter, method=method
    )
    if not path.exists():
        return new
    if fresh:
        _refuse_worse(path, meter)
        return new
    old = read_profile(path)
    for part, now in (("machine", machine), ("meter", meter), ("method", method)):
        _refuse_other(path, part, getattr(old, part), now)
    return old


def _refuse_other(path: Path, part: str, old: msgspec.Struct, new: msgspec.Struct) -> None:
    for field in old.__struct_fields__:
        was, is_now = getattr(old, field), getattr(new, field)
        if was != is_now and field not in MAY_CHANGE:
            raise InputError(
                str(path), f"was measured with another {part}: {field} was {was!r} and is {is_now!r}; {INSTEAD}"
            )


def _refuse_worse(path: Path, meter: MeterUsed) -> None:
    """An estimate must not take the place of a measurement."""
    try:
        old = read_profile(path)
    except InputError:
        return
    if old.meter.provenance == "measured" and meter.provenance != "measured":
        raise InputError(
            str(path), f"is measured and would be replaced by figures that are {meter.provenance}; use --output FILE"
        )
