"""Power from CPU time on a real node, beside the errors that Kepler's own models have on it.

Node nx12 of kepler-model-db: 2,202 samples, 3 s apart, of CPU time (by eBPF, or as the kubelet tells it) and power
(platform by ACPI, packages and memory by RAPL). Learned and tested apart: by lot as Kepler does, in five and in ten
stretches of time (30 s on both sides of a tested one are not learned from), and the first 70% of the time for the last
30%, which has work of a kind that was not seen before. What goes in is CPU time now and in the interval before; never a
measured power.
"""

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
from reporting import Goal, finish

from wattloom.machines.power_from_cpu import PowerFromCpu, blocks

KEPLER_W = {"SGD": 32.7, "KNN": 20.1}
GOAL_W = 20.0
NAME = "nx12_preprocess_abs_default_{}.csv"


def columns(data: Path, which: str) -> dict[str, Any]:
    with (data / "kepler" / NAME.format(which)).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def splits(count: int) -> dict[str, list[tuple[Any, Any]]]:
    """Name: pairs of (tested, learned from)."""
    lot = np.random.default_rng(0).permutation(count) % 5
    late = np.arange(count) >= 0.7 * count
    return {
        "by lot": [(lot == part, lot != part) for part in range(5)],
        "5 stretches": [blocks(count, part, 5) for part in range(5)],
        "10 stretches": [blocks(count, part, 10) for part in range(10)],
        "last 30%": [(late, ~late)],
    }


def errors(cpu: Any, watts: Any, folds: list[tuple[Any, Any]]) -> dict[str, float]:
    """Mean absolute error of ours, of a straight line and of the mean."""
    found: dict[str, list[Any]] = {"ours": [], "line": [], "mean": []}
    for test, learned in folds:
        found["ours"].append((PowerFromCpu(cpu, watts, learned=learned).watts(cpu) - watts)[test])
        slope, base = np.polyfit(cpu[learned], watts[learned], 1)
        found["line"].append(base + slope * cpu[test] - watts[test])
        found["mean"].append(watts[learned].mean() - watts[test])
    return {name: float(np.abs(np.concatenate(parts)).mean()) for name, parts in found.items()}


def from_packages(data: Path) -> None:
    """The named conversion from package and memory power to the plug's, learned on one half of the time."""
    rapl, acpi = columns(data, "rapl_BPFOnly"), columns(data, "acpi_BPFOnly")
    packages, platform = rapl["package_power"] + rapl["dram_power"], acpi["platform_power"]
    half = np.arange(len(platform)) < len(platform) // 2
    slope, base = np.polyfit(packages[half], platform[half], 1)
    off = base + slope * packages[~half] - platform[~half]
    print(
        f"platform = {base:.0f} W + {slope:.2f} x (packages + memory), learned on the first half: "
        f"off by {np.abs(off).mean():.1f} W on the second (standard deviation {off.std():.1f} W)"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, help="folder of published data (has kepler/)")
    given = options.parse_args()
    if given.data is None or not (given.data / "kepler").is_dir():
        sys.exit("*** SKIPPED: this benchmark needs the node's samples: make bench-power-model BENCH_DATA=FOLDER")
    acpi, rapl = columns(given.data, "acpi_BPFOnly"), columns(given.data, "rapl_BPFOnly")
    kubelet = columns(given.data, "acpi_KubeletOnly")
    targets = {
        "platform": (acpi["bpf_cpu_time_us"], acpi["platform_power"]),
        "packages": (rapl["bpf_cpu_time_us"], rapl["package_power"]),
        "memory": (rapl["bpf_cpu_time_us"], rapl["dram_power"]),
        "platform, kubelet's CPU": (kubelet["kubelet_cpu_usage"], kubelet["platform_power"]),
    }
    rows, reached = [], {}
    for name, (cpu, watts) in targets.items():
        for split, folds in splits(len(watts)).items():
            off = errors(cpu, watts, folds)
            rows.append({"watts of": name, "tested": split, **{f"{way} off by W": value for way, value in off.items()}})
            reached[name, split] = off["ours"]
    from_packages(given.data)
    print(f"Kepler's own models, platform: {KEPLER_W} W")
    goals = [
        Goal.at_most(f"platform, {split}: mean absolute error, W", GOAL_W, reached["platform", split])
        for split in ("by lot", "5 stretches", "10 stretches")
    ]
    finish("power-model", rows, goals)


if __name__ == "__main__":
    main()
