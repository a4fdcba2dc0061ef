"""How well the power curve of a machine is told from its idle and full draw, beside three other ways.

Mean absolute percentage error over the eleven points of published SPECpower curves (those that are given count, with
error 0), trained and tested apart: in five parts drawn by lot, in five parts with all machines of a processor in one
part, ahead in time (trained before 2020, tested from 2020 on), and far ahead (each year from 2016 on, trained up to
three years before). Our own way is asked through the product's function, with a model trained on the training part.
Weights and spreads never see the tested part, but choices of design did: docs/explanation/machine-curves.md lists them.
Peers: a straight line, a monotone spline through the known points, and extra trees on cores, year, vendors (of
processor and machine) and idle ratio.

Then the draw of a processor never seen: published results of all other models against the truth.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from reporting import Goal, finish
from train_curves import Machines, listed, load, train

from wattloom.machines.curve_estimate import curve
from wattloom.machines.curve_model import CurveModel
from wattloom.machines.processors import kind_of, relations

POINTS: dict[str, tuple[int, ...]] = {"idle, max": (), "idle, 10, 50, max": (1, 5)}
GOALS = {
    ("by lot", "idle, max"): 2.2,
    ("by lot", "idle, 10, 50, max"): 0.7,
    ("ahead", "idle, max"): 5.8,
    ("ahead", "idle, 10, 50, max"): 1.4,
}
Answer = tuple[Any, Any | None]
"""Watts at eleven loads per machine, and whether each was inside its 90% interval."""


def splits(machines: Machines) -> dict[str, list[tuple[Any, Any]]]:
    count, lot = len(machines.ids), np.random.default_rng(0)
    part = lot.permutation(count) % 5
    codes = machines.seen.model.astype(int)
    by_model = (lot.permutation(len(machines.models) + 1) % 5)[codes]
    rows = np.arange(count)
    late = machines.years >= 2020
    return {
        "by lot": [(rows[part != k], rows[part == k]) for k in range(5)],
        "by processor": [(rows[by_model != k], rows[by_model == k]) for k in range(5)],
        "ahead": [(rows[~late], rows[late])],
        "far ahead": [
            (rows[machines.years <= year - 3], rows[machines.years == year])
            for year in range(2016, int(machines.years.max()) + 1)
        ],
    }


def ours(machines: Machines, past: Any, test: Any, levels: tuple[int, ...], maker: bool = False) -> Answer:
    model = _trained(machines, past)
    watts, inside = [], []
    for row in test:
        true = machines.watts[row]
        told = curve(
            float(true[0]),
            float(true[-1]),
            cpu=machines.cpus[row],
            year=machines.years[row],
            maker=machines.systems[row] if maker else None,
            points={10.0 * level: float(true[level]) for level in levels},
            model=model,
        )
        watts.append(told.watts)
        left = [level for level in range(1, 10) if level not in levels]
        inside.append([told.low[at] - 0.001 <= true[at] <= told.high[at] + 0.001 for at in left])
    return np.array(watts), np.array(inside)


def maker_told(machines: Machines, past: Any, test: Any, levels: tuple[int, ...]) -> Answer:
    return ours(machines, past, test, levels, maker=True)


_models: dict[bytes, CurveModel] = {}


def _trained(machines: Machines, past: Any) -> CurveModel:
    """One training serves all questions to the same part."""
    key = past.tobytes()
    if key not in _models:
        _models[key] = train(machines, past)
    return _models[key]


def line(machines: Machines, past: Any, test: Any, levels: tuple[int, ...]) -> Answer:
    true = machines.watts[test]
    known = [0, *levels, 10]
    return np.array([np.interp(range(11), known, row[known]) for row in true]), None


def spline(machines: Machines, past: Any, test: Any, levels: tuple[int, ...]) -> Answer:
    from scipy.interpolate import PchipInterpolator

    known = [0, *levels, 10]
    return np.array([PchipInterpolator(known, row[known])(range(11)) for row in machines.watts[test]]), None


def trees(machines: Machines, past: Any, test: Any, levels: tuple[int, ...]) -> Answer:
    from sklearn.ensemble import ExtraTreesRegressor

    watts = machines.watts
    share = (watts - watts[:, :1]) / (watts[:, -1:] - watts[:, :1])
    seen = machines.seen
    facts = np.column_stack(
        [machines.cores, machines.years, seen.line, seen.maker, watts[:, 0] / watts[:, -1], *share.T[list(levels)]]
    )
    guess = ExtraTreesRegressor(300, random_state=0).fit(facts[past], share[past]).predict(facts[test])
    guess[:, [0, 10, *levels]] = share[test][:, [0, 10, *levels]]
    return watts[test, :1] + (watts[test, -1:] - watts[test, :1]) * guess, None


def error(machines: Machines, test: Any, watts: Any) -> Any:
    true = machines.watts[test]
    return 100.0 * np.abs(watts - true) / true


def measure(
    machines: Machines, ways: dict[str, Callable[..., Answer]]
) -> tuple[list[dict[str, Any]], dict[tuple[str, str, str], tuple[float, float]]]:
    rows, reached = [], {}
    for split, folds in splits(machines).items():
        for given, levels in POINTS.items():
            row: dict[str, Any] = {"split": split, "given": given, "machines": sum(len(test) for _, test in folds)}
            for name, way in ways.items():
                answers = [(test, *way(machines, past, test, levels)) for past, test in folds]
                row[name] = float(np.concatenate([error(machines, test, watts) for test, watts, _ in answers]).mean())
                if answers[0][2] is not None:
                    held = float(np.concatenate([inside for _, _, inside in answers]).mean())
                    row[f"{name}: 90% holds"] = held
                    reached[name, split, given] = (row[name], held)
            rows.append(row)
            print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()})
    return rows, reached


def unseen_processors(data: Path) -> list[dict[str, Any]]:
    """Idle and active draw per core of every model, told from the others: by relations now, and by kind as before."""
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in listed(data):
        if row["year"] >= 2010:
            by_model[row["model"]].append(row)
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for model, rows in by_model.items():
        cores = rows[0]["cores"]
        idle = float(np.median([row["idle"] for row in rows]))
        active = float(np.median([row["full"] - row["idle"] for row in rows]))
        kind = kind_of(model)
        found["by kind, per core"].append(_off(idle, active, cores * kind.idle_w, cores * kind.active_w))
        told = relations(model, cores, without=model)
        found["by family and size"].append(_off(idle, active, told.idle_w, told.active_w))
    return [
        {"watts of an unseen processor": way, "models": len(pairs), **_middle(pairs)} for way, pairs in found.items()
    ]


def _off(idle: float, active: float, told_idle: float, told_active: float) -> tuple[float, float]:
    return abs(np.log(told_idle / idle)), abs(np.log((told_idle + told_active) / (idle + active)))


def _middle(pairs: Iterable[tuple[float, float]]) -> dict[str, float]:
    idle, full = zip(*pairs, strict=True)
    return {
        "idle off by %": 100 * float(np.expm1(np.median(idle))),
        "full off by %": 100 * float(np.expm1(np.median(full))),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, help="folder of published data (has specpower/)")
    options.add_argument("--without-trees", action="store_true", help="scikit-learn is not needed then")
    given = options.parse_args()
    if given.data is None or not (given.data / "specpower").is_dir():
        sys.exit("*** SKIPPED: this benchmark needs the published curves: make bench-machine-curves BENCH_DATA=FOLDER")
    ways: dict[str, Callable[..., Answer]] = {"ours": ours, "maker told": maker_told, "line": line}
    if not given.without_trees:
        ways |= {"spline": spline, "extra trees": trees}
    rows, reached = measure(load(given.data), ways)
    goals = [
        Goal.at_most(f"{split}: {points}, %", goal, reached["ours", split, points][0])
        for (split, points), goal in GOALS.items()
    ]
    goals += [
        Goal.at_most(f"far ahead: {row['given']}, % (the spline's)", row["spline"], row["ours"])
        for row in rows
        if row["split"] == "far ahead" and "spline" in row
    ]
    for (way, split, points), (_, held) in reached.items():
        goals.append(Goal(f"{way}, {split}: {points}, share in 90% intervals", 0.9, held, 0.85 <= held <= 0.95))
    for row in unseen_processors(given.data):
        print({key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()})
    finish("machine-curves", rows, goals)


if __name__ == "__main__":
    main()
