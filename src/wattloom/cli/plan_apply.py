"""`wattloom plan apply`: a plan as nodes of this machine, as a scenario, or as Kubernetes manifests.

Owns the command and what it says. What each form holds is the business of the rooms that make them.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wattloom.cli.options import LOG_FILE, Finite, as_json
from wattloom.cli.printing import say

if TYPE_CHECKING:
    from wattloom.load_testing.carried import Carried
    from wattloom.planning.plan import Plan


@click.command(short_help="Carry a plan out: here, as a scenario, or on Kubernetes.")
@click.argument("file", type=LOG_FILE)
@click.option(
    "--here", is_flag=True, help="On this machine: its servers as virtual nodes, scaled to the cores there are."
)
@click.option("--scenario", type=LOG_FILE, metavar="FILE", help="As a scenario for `wattloom simulate` and `compare`.")
@click.option("--kubernetes", type=LOG_FILE, metavar="DIR", help="As manifests in this folder, for `kubectl apply -f`.")
@click.option("--nodes", type=LOG_FILE, metavar="FILE", help="With --here: write the virtual nodes there.")
@click.option(
    "--server", "servers", multiple=True, metavar="NAME", help="With --here: only this server; may be repeated."
)
@click.option("--seconds", type=Finite(min=0.001, max=1e8), default=60.0, show_default=True, metavar="S",
              help="With --scenario: how long calls come.")  # fmt: skip
@click.option("--arrivals", type=click.Choice(["poisson", "even"]), default="poisson", show_default=True,
              help="With --scenario: by chance, or one every so often.")  # fmt: skip
@click.option("--profiles", type=LOG_FILE, metavar="FILE",
              help="With --scenario: function profiles, for machines that the plan does not use.")  # fmt: skip
@click.option("--image", default="", metavar="IMAGE",
              help="With --kubernetes: the containers' image; {function} in it is the function's name.")  # fmt: skip
@click.option("--namespace", default="default", show_default=True, metavar="NAME", help="With --kubernetes.")
@as_json
def apply(
    file: Path,
    here: bool,
    scenario: Path | None,
    kubernetes: Path | None,
    nodes: Path | None,
    servers: tuple[str, ...],
    seconds: float,
    arrivals: str,
    profiles: Path | None,
    image: str,
    namespace: str,
    as_json: bool,
) -> None:
    """Carry a plan out: each function on its server, with at most the cores that the plan gives it.

    On this machine, the plan's servers are shown as virtual nodes and rates are scaled to the cores there are; the
    policy `planned` keeps to the plan. As a scenario, the rates are asked of modelled servers. On Kubernetes, each
    function on a server is a Deployment with as many replicas as cores.

    \b
    Examples:
      wattloom plan apply plan.json --here
      wattloom plan apply plan.json --scenario planned.toml
      wattloom simulate planned.toml --policy planned
      wattloom plan apply plan.json --kubernetes manifests --image registry/{function}:1
    """
    from wattloom.cli.printing import print_json
    from wattloom.planning.plan_file import read_plan

    if here + (scenario is not None) + (kubernetes is not None) != 1:
        raise click.UsageError("Say where: --here, --scenario FILE or --kubernetes DIR.")
    plan = read_plan(file)
    if scenario is not None:
        told = _as_scenario(plan, file, scenario, seconds, arrivals, profiles)
    elif kubernetes is not None:
        told = _as_manifests(plan, kubernetes, image, namespace)
    else:
        told = _here(plan, servers, nodes)
    if as_json:
        print_json(told["json"])
    else:
        for line in told["words"]:
            say(line)


def _here(plan: "Plan", servers: tuple[str, ...], nodes: Path | None) -> dict[str, Any]:
    from wattloom.load_testing.carried import carried_out
    from wattloom.planning.plan_store import keep_plan

    carried = carried_out(plan, servers=servers)
    digest = keep_plan(carried.plan)
    words = [f"{each.function}: {each.cores} of {each.server}, {each.rate:.4g}/s" for each in carried.plan.assignments]
    words += [f"note: {note}" for note in carried.notes]
    words.append(
        f"Kept as {digest}: wattloom.Executor(policy='planned:plan={digest}'{_nodes_in_words(carried, nodes)})"
    )
    if nodes is not None:
        _write(nodes, nodes_toml(carried).encode())
        words.append(f"Nodes: {nodes}")
    parts = [
        {"function": each.function, "node": each.server, "cores": each.cores, "rate": each.rate}
        for each in carried.plan.assignments
    ]
    shown = [{"name": name, "machine": each.name} for name, each in carried.machines.items()]
    told = {"digest": digest, "scale": carried.scale, "assignments": parts, "nodes": shown, "notes": carried.notes}
    return {"json": told, "words": words}


def _nodes_in_words(carried: "Carried", nodes: Path | None) -> str:
    if not carried.nodes:
        return ""
    return f", nodes=nodes_from('{nodes}')" if nodes is not None else ", nodes=[...]; --nodes FILE writes them"


def nodes_toml(carried: "Carried") -> str:
    """Virtual nodes as a file that `nodes_from` reads."""
    lines: list[str] = []
    for node in carried.nodes:
        profile = carried.machines[node.name]
        watts = ", ".join(f"[{cores:g}, {draw!r}]" for cores, draw in profile.watts)
        lines += [f'[machines."{profile.name}"]', f'arch = "{profile.arch}"', f"cores = {profile.cores}"]
        lines += [f"threads = {profile.threads}", f"speed = {profile.speed!r}"]
        lines += [f"cores_watts = [{watts}]"] if watts else []
        lines.append("")
    for node in carried.nodes:
        machine = carried.machines[node.name].name
        lines += ["[[nodes]]", f'name = "{node.name}"', f'machine = "{machine}"', f"cpu = {node.cpu!r}", ""]
    return "\n".join(lines)


def _as_scenario(
    plan: "Plan", file: Path, scenario: Path, seconds: float, arrivals: str, profiles: Path | None
) -> dict[str, Any]:
    from wattloom.load_testing.scenario_of import scenario_text
    from wattloom.workload.function_profile import read_function_profiles

    known = None if profiles is None else read_function_profiles(profiles)
    where = os.path.relpath(file.resolve(), scenario.resolve().parent)
    text = scenario_text(plan, where, seconds=seconds, arrivals=arrivals, profiles=known)  # type: ignore[arg-type]
    _write(scenario, text.encode())
    words = [f"Written: {scenario}", f"Then: wattloom simulate {scenario} --policy planned"]
    return {"json": {"scenario": str(scenario), "plan": where, "digest": plan.digest}, "words": words}


def _as_manifests(plan: "Plan", folder: Path, image: str, namespace: str) -> dict[str, Any]:
    from wattloom.kubernetes.publishing.plan_manifests import as_yaml, manifests

    made = manifests(plan, image, namespace)
    text = as_yaml(made)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "plan.yaml"
    _write(path, text.encode())
    replicas = sum(each["spec"]["replicas"] for each in made)
    words = [f"Written: {path}, {len(made)} Deployments with {replicas} replicas", f"Then: kubectl apply -f {folder}"]
    names = [each["metadata"]["name"] for each in made]
    return {"json": {"file": str(path), "deployments": names, "replicas": replicas}, "words": words}


def _write(path: Path, content: bytes) -> None:
    from wattloom.profiling.storing import refuse_missing_folder, store

    refuse_missing_folder(path)
    store(path, content)
