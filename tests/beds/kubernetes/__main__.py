"""`python -m tests.beds.kubernetes`: a real Kubernetes on this machine, for contributors.

Owns the words of the command line. `make kubernetes`, `make kubernetes-node` and `make kubernetes-down` call it.
"""

import argparse
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from tests.beds.kubernetes import keeping
from tests.beds.kubernetes.binaries import BinariesMissing, binaries, find
from tests.beds.kubernetes.image import NAME
from tests.beds.kubernetes.parts import Part
from tests.beds.kubernetes.real_node import problem, sweep
from tests.beds.kubernetes.versions import PROGRAMS

from wattloom.errors import WattloomError

FOLDER: Final = Path(".tools/kubernetes")
CANNOT_BUILD: Final = 3
"""The exit code where programs are missing and there is no Go: tests are skipped then, while a failed build is 1."""


def main(words: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(words)
    act: Callable[[argparse.Namespace], None] = options.act
    try:
        act(options)
    except BinariesMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return CANNOT_BUILD
    except WattloomError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.beds.kubernetes", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, act, what in (
        ("up", _up, "build what is missing, start a control plane with empty data, print how to use it"),
        ("node", _node, "add one real node: kubelet, containerd and runc (needs root)"),
        ("status", _status, "say what runs"),
        ("down", _down, "end the node and the control plane"),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.set_defaults(act=act)
        command.add_argument("--folder", type=Path, default=FOLDER, help=f"where its state is (default: {FOLDER})")
        if name == "up":
            _add_parts(command)
        if name == "node":
            command.add_argument("--name", default="real", help="the node's name (default: real)")
        if name == "status":
            command.add_argument("--json", action="store_true", help="print JSON")
    _add_inner(commands)
    return parser


def _add_parts(command: argparse.ArgumentParser) -> None:
    optional = [part.value for part in Part if part not in (Part.ETCD, Part.API_SERVER)]
    command.add_argument("--without", action="append", default=[], choices=optional, help="leave a part out")


def _add_inner(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    build = commands.add_parser("binaries", help="find or build programs and print where they are")
    build.add_argument("names", nargs="*", metavar="PROGRAM", help=f"some of {', '.join(PROGRAMS)} (default: all)")
    build.set_defaults(act=_binaries)
    keep = commands.add_parser("keep", help="hold a control plane or a node in the foreground until Ctrl-C")
    keep.add_argument("what", choices=[keeping.PLANE, keeping.NODE])
    keep.add_argument("--folder", type=Path, default=FOLDER)
    keep.add_argument("--name", default="real")
    _add_parts(keep)
    keep.set_defaults(act=_keep)


def _up(options: argparse.Namespace) -> None:
    if (found := keeping.running(options.folder, keeping.PLANE)) is not None:
        _say(f"It runs already: {found.url}")
    else:
        # Here rather than in the keeper: building tells how far it is.
        binaries([*(part for part in Part if part not in options.without), "kubectl"], _say)
        without = [word for part in options.without for word in ("--without", part)]
        found = keeping.start(options.folder, keeping.PLANE, *without)
        _say(f"Kubernetes runs at {found.url}: {', '.join(found.parts)}.")
    _say(f"Logs are in {options.folder / 'logs'}. What to type next:\n")
    _say(f"  export KUBECONFIG={shlex.quote(found.kubeconfig)}")
    if folders := _off_path():
        _say(f"  export PATH={':'.join(shlex.quote(str(each)) for each in folders)}:$PATH")
    _say("  kubectl get namespaces")
    _say("  make kubernetes-node    # one real node, with pods that run")
    _say("  make kubernetes-down    # end it all")


def _off_path() -> list[Path]:
    """The folders of this `wattloom`, of kubectl and of kube-scheduler, where the shell would not find these."""
    own = Path(sys.executable).with_name("wattloom")
    programs = [own, *(found for name in ("kubectl", Part.SCHEDULER) if (found := find(name)) is not None)]
    hidden = [each.parent for each in programs if shutil.which(each.name) != str(each)]
    return list(dict.fromkeys(hidden))


def _node(options: argparse.Namespace) -> None:
    if keeping.running(options.folder, keeping.PLANE) is None:
        raise WattloomError("no control plane runs: `make kubernetes` starts one")
    if (found := keeping.running(options.folder, keeping.NODE)) is None:
        if (why := problem()) is not None:
            raise WattloomError(f"no real node: {why}")
        binaries(["kubelet"], _say)
        found = keeping.start(options.folder, keeping.NODE, "--name", options.name)
    _say(f"The node {found.node} is ready. It has one image, {NAME}; pods say `imagePullPolicy: Never`.")


def _status(options: argparse.Namespace) -> None:
    found = [each for what in (keeping.PLANE, keeping.NODE) if (each := keeping.running(options.folder, what))]
    if options.json:
        _say(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    for each in found:
        parts = ", ".join(f"{name} ({pid})" for name, pid in each.parts.items())
        _say(f"{each.what}: {each.url or each.node}, kept by process {each.pid}: {parts}")
    if not found:
        _say("Nothing runs.")


def _down(options: argparse.Namespace) -> None:
    ended = [what for what in (keeping.NODE, keeping.PLANE) if keeping.stop(options.folder, what)]
    # The keeper of a node may have been killed.
    sweep(options.folder / "node")
    _say(f"Ended: {', '.join(ended)}." if ended else "Nothing ran.")


def _binaries(options: argparse.Namespace) -> None:
    for name, path in binaries(options.names or list(PROGRAMS), _say).items():
        _say(f"{name}: {path}")


def _keep(options: argparse.Namespace) -> None:
    if options.what == keeping.NODE:
        keeping.keep_node(options.folder, options.name)
    else:
        keeping.keep_plane(options.folder, [part for part in Part if part not in options.without])


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
