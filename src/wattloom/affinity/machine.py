"""The machine that functions are profiled on: this one, or another that this one plays.

Owns what `--machine` means. A virtual node has the power curve of another machine; what it would take there is what it
takes here by the two machines' speeds, so both E and W of it are modelled.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from wattloom.energy.forecast import Provenance
from wattloom.errors import InputError
from wattloom.local.nodes import VirtualNode, nodes_from, virtual_nodes
from wattloom.machines.profile import MachineProfile
from wattloom.machines.this_machine import this_machine
from wattloom.metering.choosing import choose_meter
from wattloom.metering.protocol import Meter
from wattloom.workload.function_profile import Figure, FunctionProfile


class Played(msgspec.Struct, frozen=True):
    """A machine on which bags run."""

    name: str
    cores: int
    meter: str
    provenance: Provenance
    quantity: Literal["wall", "package"]
    virtual: bool = False
    faster: float = 1.0
    """Than this machine."""
    executor: dict[str, Any] = {}
    """Arguments of the executor that runs them."""

    def at_its_speed(self, row: FunctionProfile) -> FunctionProfile:
        """What was found here, as it would be there."""
        if self.faster == 1.0:
            return row
        return msgspec.structs.replace(
            row,
            per_core_s=_times(row.per_core_s, self.faster),
            joules=None if row.joules is None else _times(row.joules, 1.0 / self.faster),
            source=f"{row.source}, on a virtual node, by its speed",
        )


def played(machine: str, nodes: Path | None, meter: str | Meter) -> Played:
    """The machine that was named; empty: this one."""
    if not machine:
        if nodes is not None:
            raise InputError("nodes", "--machine says which of them")
        return _here(meter)
    if nodes is None:
        node = VirtualNode(machine, machine)
    else:
        found = {each.name: each for each in nodes_from(nodes)}
        if machine not in found:
            raise InputError("machine", f"{nodes} has no node {machine}, only {', '.join(found)}")
        node = found[machine]
    return _virtual(node)


def _here(meter: str | Meter) -> Played:
    here = this_machine()
    chosen = choose_meter(here, "" if meter == "auto" else meter) if isinstance(meter, str) else meter
    if chosen.quantity == "device":
        raise InputError("meter", f"{chosen.name} is of accelerators: name one of the whole machine or its processors")
    quantity: Literal["wall", "package"] = "wall" if chosen.quantity == "wall" else "package"
    return Played(
        here.name,
        here.threads,
        chosen.name,
        chosen.provenance,
        quantity,
        executor={"meter": chosen, "max_workers": here.threads},
    )


def _virtual(node: VirtualNode) -> Played:
    here: MachineProfile = this_machine()
    shown = virtual_nodes([node], here)[0]
    cores = max(1, int(shown.node.cpu or len(shown.cores)))
    return Played(
        shown.profile.name,
        cores,
        "virtual",
        "modelled",
        shown.profile.quantity,
        virtual=True,
        faster=shown.profile.speed / here.speed,
        executor={"nodes": [node]},
    )


def _times(figure: Figure, factor: float) -> Figure:
    return Figure(figure.value * factor, figure.low * factor, figure.high * factor)
