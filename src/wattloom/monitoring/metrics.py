"""Every metric there is: its name, what it means, and how it is read off a snapshot.

Owns the catalogue, which Prometheus and OpenTelemetry both present. Pure: a snapshot in, figures out. Names and units
are Prometheus's: base units, counters end in `_total`. docs/reference/metrics.md lists the same, and a test compares.
"""

from typing import Final, Literal

import msgspec

from wattloom.monitoring import figures

NODE: Final = ("node",)


class Metric(msgspec.Struct, frozen=True):
    """One metric."""

    name: str
    """Without `_total`."""
    unit: Literal["joules", "watts", "seconds", "ratio", "bytes", ""]
    kind: Literal["counter", "gauge"]
    help: str
    labels: figures.Labels
    figures: figures.Figures

    @property
    def full_name(self) -> str:
        return f"{self.name}_total" if self.kind == "counter" else self.name


DEVICE: Final = ("node", "device", "name", "kind")
TASK: Final = ("function", "node", "device")

METRICS: Final = (
    Metric(
        "wattloom_node_energy_joules",
        "joules",
        "counter",
        "Joules the node's meter has counted; quantity says of what, provenance how it is known.",
        ("node", "quantity", "provenance", "meter"),
        figures.node_joules,
    ),
    Metric(
        "wattloom_idle_energy_joules",
        "joules",
        "counter",
        "Joules the node draws with nothing to do, as far as they stay with the node.",
        NODE,
        figures.of_totals("idle_j"),
    ),
    Metric(
        "wattloom_unattributed_energy_joules",
        "joules",
        "counter",
        "Joules above idle that nobody who was seen has used: the kernel's own work, mostly.",
        NODE,
        figures.of_totals("unattributed_j"),
    ),
    Metric(
        "wattloom_overhead_energy_joules",
        "joules",
        "counter",
        "Joules of this exporter itself, as far as they stay with the node.",
        NODE,
        figures.of_totals("overhead_j"),
    ),
    Metric(
        "wattloom_entities_energy_joules",
        "joules",
        "counter",
        "Joules of all processes together. With idle, overhead and unattributed it is the node's.",
        NODE,
        figures.of_totals("entities_j"),
    ),
    Metric(
        "wattloom_node_power_watts",
        "watts",
        "gauge",
        "Power over the last interval between two readings, by part. Absent while the meter is silent.",
        ("node", "part"),
        figures.node_watts,
    ),
    Metric(
        "wattloom_container_energy_joules",
        "joules",
        "counter",
        "Joules of a container; share is active, shared (idle and overhead it bears) or gone (ended long ago).",
        ("node", "container", "engine", "pod", "share"),
        figures.joules_of("container"),
    ),
    Metric(
        "wattloom_pod_energy_joules",
        "joules",
        "counter",
        "Joules of a pod: its containers and what stands beside them in its group.",
        ("node", "pod", "share"),
        figures.joules_of("pod"),
    ),
    Metric(
        "wattloom_vm_energy_joules",
        "joules",
        "counter",
        "Joules of a virtual machine. Where container is not empty, they are that container's too.",
        ("node", "vm", "container", "share"),
        figures.joules_of("vm"),
    ),
    Metric(
        "wattloom_unit_energy_joules",
        "joules",
        "counter",
        "Joules of a systemd unit or other control group, outside of containers and virtual machines.",
        ("node", "unit", "share"),
        figures.joules_of("unit"),
    ),
    Metric(
        "wattloom_container_cpu_seconds",
        "seconds",
        "counter",
        "CPU seconds of a container, those of processes that came and went too.",
        ("node", "container", "engine", "pod"),
        figures.cpu_seconds("container"),
    ),
    Metric(
        "wattloom_process_energy_joules",
        "joules",
        "counter",
        "Joules of a process since it has a series, for the largest ones (--processes); all others are in one, other.",
        ("node", "pid", "name", "container", "id"),
        figures.process_joules,
    ),
    Metric(
        "wattloom_task_energy_joules",
        "joules",
        "counter",
        "Joules of a function's calls that have ended, by the journals of programs that use Wattloom.",
        TASK,
        figures.task_figures("joules"),
    ),
    Metric(
        "wattloom_task_calls",
        "",
        "counter",
        "Calls of a function that have ended.",
        TASK,
        figures.task_figures("calls"),
    ),
    Metric(
        "wattloom_device_energy_joules",
        "joules",
        "counter",
        "Joules of an accelerator. They are beside a node's package joules, and inside its wall joules.",
        DEVICE,
        figures.device_figures("joules"),
    ),
    Metric(
        "wattloom_device_idle_energy_joules",
        "joules",
        "counter",
        "Joules an accelerator draws with nothing to do: part of its own.",
        DEVICE,
        figures.device_figures("idle_j"),
    ),
    Metric(
        "wattloom_device_unattributed_energy_joules",
        "joules",
        "counter",
        "Joules of an accelerator above idle that nobody is known to have used: part of its own.",
        DEVICE,
        figures.device_figures("unattributed_j"),
    ),
    Metric(
        "wattloom_device_user_energy_joules",
        "joules",
        "counter",
        "Joules of an accelerator by who used it: a container, else a guest or program by name. Part of its own.",
        ("node", "device", "container", "pod", "name"),
        figures.device_users,
    ),
    Metric(
        "wattloom_device_power_watts",
        "watts",
        "gauge",
        "Power of an accelerator. Absent while it cannot be read.",
        DEVICE,
        figures.device_figures("watts"),
    ),
    Metric(
        "wattloom_device_utilisation_ratio",
        "ratio",
        "gauge",
        "Share of the last moments in which something ran on an accelerator. Not how much of it was used.",
        DEVICE,
        figures.device_figures("utilisation"),
    ),
    Metric(
        "wattloom_device_memory_used_bytes",
        "bytes",
        "gauge",
        "Memory in use on an accelerator.",
        DEVICE,
        figures.device_figures("memory_used"),
    ),
    Metric("wattloom_device_up", "", "gauge", "1 if an accelerator can be read, else 0.", DEVICE, figures.device_up),
    Metric(
        "wattloom_meter_up",
        "",
        "gauge",
        "1 if the node's meter was read at the last look, else 0.",
        ("node", "meter"),
        figures.meter_up,
    ),
    Metric(
        "wattloom_attribution_error_ratio",
        "ratio",
        "gauge",
        "How far active joules of a single container or process may be off: one relative standard deviation.",
        NODE,
        figures.of_shown("model_error"),
    ),
    Metric(
        "wattloom_meter_silent_seconds",
        "seconds",
        "gauge",
        "Age of the last good reading of the node's meter.",
        NODE,
        figures.of_shown("waiting_s"),
    ),
    Metric(
        "wattloom_metered_seconds",
        "seconds",
        "counter",
        "Time whose joules are known.",
        NODE,
        figures.of_totals("seconds"),
    ),
    Metric(
        "wattloom_unknown_seconds",
        "seconds",
        "counter",
        "Time whose joules nobody will ever know: the meter's count broke off, or the node slept.",
        NODE,
        figures.of_totals("unknown_s"),
    ),
    Metric("wattloom_processes", "", "gauge", "Processes at the last look.", NODE, figures.of_shown("living")),
    Metric(
        "wattloom_hidden_processes",
        "",
        "gauge",
        "Processes at the last look that may not be read: they have joules, but no name and no container.",
        NODE,
        figures.of_shown("hidden"),
    ),
    Metric(
        "wattloom_exporter_cpu_seconds",
        "seconds",
        "counter",
        "CPU seconds of this exporter itself.",
        NODE,
        figures.of_shown("look_s"),
    ),
)
"""In the order in which they are shown."""
