"""The machine behind a node, from what is known of its processor.

Owns which labels and annotations tell the processor. The figures are the catalogue's and those of published results;
a node of whose processor nothing is known has no power curve.
"""

from hashlib import sha256
from typing import Final

import msgspec

from wattloom.bounds import MOST_CORES
from wattloom.kubernetes.model.objects import Node
from wattloom.kubernetes.model.quantity import NANO, nanos
from wattloom.machines.curves import match_of, with_curve
from wattloom.machines.processors import known_processors, model_slug, named
from wattloom.machines.profile import MachineProfile

CPU_MODEL: Final = "wattloom.dev/cpu-model"
"""Annotation or label: the processor as the kernel names it, or as the catalogue does."""
FEATURES: Final = "feature.node.kubernetes.io/"
"""Labels of Node Feature Discovery."""
ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
FAMILY_MODELS: Final = {
    ("Intel", "6", "45"): "xeon-e5-2600",
    ("Intel", "6", "62"): "xeon-e5-2600v2",
    ("Intel", "6", "63"): "xeon-e5-2600v3",
    ("Intel", "6", "79"): "xeon-e5-2600v4",
    ("Intel", "6", "85"): "xeon-gold-6200",  # Skylake or Cascade Lake: the number is the same
    ("Intel", "6", "106"): "xeon-gold-6300",
    ("Intel", "6", "143"): "xeon-gold-6400",
    ("Intel", "6", "207"): "xeon-gold-6500",
    ("Intel", "6", "173"): "xeon-6900p",
    ("AMD", "23", "1"): "epyc-7001",
    ("AMD", "23", "49"): "epyc-7002",
    ("AMD", "25", "1"): "epyc-7003",
    ("AMD", "25", "17"): "epyc-9004",
    ("AMD", "26", "2"): "epyc-9005",
}
"""Vendor, family and model number as the processor tells them: a name of that family, so that its figures are used."""


def by_processor(node: Node) -> MachineProfile | None:
    """The machine with the curve of its processor or of the processor's family. None: not known."""
    model = model_of(node)
    if not model:
        return None
    threads, labels = cpus_of(node) or 1, node.metadata.labels
    siblings = labels.get(f"{FEATURES}cpu-hardware_multithreading") == "true" and threads % 2 == 0
    cores = threads // 2 if siblings else threads
    bare = MachineProfile(
        name=model, arch=arch_of(node), cores=cores, threads=threads, memory=0, smt_slowdown=1.5 if siblings else 1.0
    )
    virtual = labels.get(f"{FEATURES}cpu-cpuid.HYPERVISOR") == "true"
    known = with_curve(bare, _sockets(model, cores), virtual)
    if known.provenance == "estimated" and match_of(known).by == "kind":
        return None
    return _named(known, model)


def model_of(node: Node) -> str:
    """The processor as the catalogue writes it; empty: nothing tells."""
    meta = node.metadata
    told = meta.annotations.get(CPU_MODEL) or meta.labels.get(CPU_MODEL)
    if told:
        return model_slug(told)
    numbers = tuple(meta.labels.get(f"{FEATURES}cpu-model.{part}", "") for part in ("vendor_id", "family", "id"))
    return FAMILY_MODELS.get((numbers[0], numbers[1], numbers[2]), "")


def unknown_model(node: Node) -> str:
    """Where and as what a processor is named that nothing is known of. Empty: nobody names one."""
    meta = node.metadata
    for where, given in (("annotations", meta.annotations), ("labels", meta.labels)):
        if told := given.get(CPU_MODEL):
            words = f"no figures are known of a processor {told!r}, so the power of its nodes is unknown"
            return f"metadata.{where}[{CPU_MODEL}]: {words}"
    return ""


def unknown_machine(node: Node) -> MachineProfile:
    """A machine of that size without a power curve."""
    threads, arch = cpus_of(node) or 1, arch_of(node)
    return MachineProfile(name=f"unknown-{arch}-{threads}", arch=arch, cores=threads, threads=threads, memory=0)


def _named(known: MachineProfile, model: str) -> MachineProfile:
    """Named by its size too: nodes may have parts of one machine, or several of one processor. A digest tells apart
    what else differs, such as the curve of a virtual machine."""
    machine = msgspec.structs.replace(known, name=f"{model}-{known.cores}c{known.threads}t")
    digest = sha256(msgspec.json.encode(machine)).hexdigest()[:6]
    return msgspec.structs.replace(machine, name=f"{machine.name}-{digest}")


def _sockets(model: str, cores: int) -> int:
    known = known_processors().get(model)
    kin = [one.cores for name, one in known_processors().items() if named(name).family == named(model).family]
    size = known.cores if known is not None else max(kin, default=cores)
    return max(1, round(cores / size))


def cpus_of(node: Node) -> int | None:
    """None: the node does not say."""
    capacity = node.status.capacity.get("cpu") or node.status.allocatable.get("cpu")
    return min(max(1, nanos(capacity) // NANO), MOST_CORES) if capacity else None


def arch_of(node: Node) -> str:
    """As the catalogue calls it."""
    told = node.status.node_info.architecture or node.metadata.labels.get("kubernetes.io/arch", "")
    return ARCHITECTURES.get(told, told or "x86_64")
