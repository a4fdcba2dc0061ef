"""A real control plane on loopback: starts its parts, waits until they work, breaks single ones on purpose, ends all.

    with ControlPlane(folder, kwok=True) as plane:
        plane.api.get("/api/v1/nodes")

Owns the life of the parts. Their command lines are `parts`', their death with ours `processes`'.
"""

import re
import shutil
import signal
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import Request, urlopen

import msgspec
from tests.beds.kubernetes.binaries import binaries
from tests.beds.kubernetes.certificates import Authority
from tests.beds.kubernetes.client import Access, Api
from tests.beds.kubernetes.kubeconfigs import write_kubeconfig
from tests.beds.kubernetes.parts import HEALTH, HOST, Layout, Part, ports_needed
from tests.beds.kubernetes.processes import PartFailed, Process, free_ports

from wattloom.errors import WattloomError

__all__ = ["ControlPlane", "Part"]

READY_S = 90.0
"""Generous: a busy machine with two cores needs many times the usual three seconds."""
UNCONTROLLED = "ServiceAccount,TaintNodesByCondition"
"""Admission that needs the controllers: without them pods have no account, and nodes keep their first taint."""
TAKEN = "address already in use"
TRIES = 3


class ControlPlane:
    """etcd and kube-apiserver, and what else is asked for. Everything it writes is in `folder`, which it may empty.

    `flags` adds to or replaces a part's flags: {Part.API_SERVER: {"event-ttl": "1m"}}.
    """

    def __init__(
        self,
        folder: Path,
        *,
        controllers: bool = False,
        scheduler: bool = False,
        kwok: bool = False,
        flags: Mapping[Part, Mapping[str, str]] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        wanted = {Part.CONTROLLERS: controllers, Part.SCHEDULER: scheduler, Part.KWOK: kwok}
        self.parts: tuple[Part, ...] = (Part.ETCD, Part.API_SERVER, *(part for part, on in wanted.items() if on))
        self.folder = folder.absolute()
        self._programs = binaries(self.parts, say)
        self._flags = {part: dict((flags or {}).get(part, {})) for part in Part}
        if not controllers:
            self._flags[Part.API_SERVER].setdefault("disable-admission-plugins", UNCONTROLLED)
        self._processes: dict[Part, Process] = {}
        self._put_away: set[Part] = set()
        """Parts that were ended by asking, and are not missed."""
        self._layout: Layout
        self.api: Api

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start all parts with empty data and wait until they work. PartFailed, with the end of a log, if not."""
        for attempt in range(1, TRIES + 1):
            self._prepare()
            try:
                self._start_all()
                return self
            except PartFailed as error:
                self.stop()
                if TAKEN not in str(error) or attempt == TRIES:
                    raise
            except BaseException:
                self.stop()
                raise
        raise AssertionError("a try returns or raises")

    def stop(self) -> None:
        """End all parts, the last started first, and see them gone. Logs stay."""
        for part in reversed(self._processes):
            self._processes[part].stop()

    def start_part(self, part: Part, flags: Mapping[str, str] | None = None) -> None:
        """Start a part that does not run (any more), on its old port and data, and wait until it works.

        `flags` are added for good: a kube-scheduler with a configuration of one's own is {"config": path}.
        """
        self._flags[part].update(flags or {})
        if part not in self._layout.programs:
            self._programs |= binaries([part])
            self._layout = self._layout._replace(programs=self._programs)
        self._launch(part)
        self._await(part)

    def stop_part(self, part: Part) -> None:
        """End one part as its keeper would, by asking."""
        self._process(part).stop()
        self._put_away.add(part)

    def kill(self, part: Part) -> None:
        """End one part with SIGKILL."""
        self._process(part).kill()

    def restart(self, part: Part, *, kill: bool = True) -> None:
        """End a part (with SIGKILL unless told otherwise) and start it again on the same port and data."""
        (self.kill if kill else self.stop_part)(part)
        self.start_part(part)

    def pause(self, part: Part) -> None:
        """Freeze a part: connections stay open, nothing answers."""
        self._process(part).pause()

    def resume(self, part: Part) -> None:
        self._process(part).signal(signal.SIGCONT)

    def mend(self) -> None:
        """Parts that were killed are started again and parts that were paused go on; then all of them work."""
        wanted = [part for part in self._processes if part not in self._put_away]
        for part in wanted:
            self.resume(part)
            if self.pid(part) is None:
                self._launch(part)
        for part in wanted:
            self._await(part)
        # Those to a server that was killed are dead, and only reading is repeated.
        self.api.close()

    def compact(self) -> None:
        """etcd forgets what was before now; an API server that starts after this cannot tell of it either."""
        revision = self.api.get("/api/v1/namespaces?limit=1")["metadata"]["resourceVersion"]
        asked = Request(
            f"{self.url_of(Part.ETCD)}/v3/kv/compaction", msgspec.json.encode({"revision": revision, "physical": True})
        )
        with urlopen(asked, timeout=30.0) as answer:
            answer.read()

    def pid(self, part: Part) -> int | None:
        """The process id of a part that runs."""
        process = self._processes.get(part)
        return process.pid if process is not None else None

    def log(self, part: Part) -> Path:
        return self.folder / "logs" / f"{part}.log"

    def url_of(self, part: Part) -> str:
        """Where a part answers, for its /metrics."""
        return f"{HEALTH[part][0]}://{HOST}:{self._layout.ports[part]}"

    # -- access --------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self.url_of(Part.API_SERVER)

    @property
    def authority(self) -> Authority:
        return self._layout.authority

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig file of an administrator who may do all."""
        return self.folder / "kubeconfigs" / "admin.yaml"

    def access_of_user(self, user: str, groups: Sequence[str] = ()) -> Access:
        """As anybody: the certificate says who it is. Nothing is allowed to a user without roles."""
        return self._nobody()._replace(certificate=self.authority.client(user, groups))

    def access_of_account(self, namespace: str, name: str, *, lasting_s: int = 3600) -> Access:
        """As a ServiceAccount that exists: the API server gives the token."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lasting_s},
        }
        token = self.api.post(path, body)["status"]["token"]
        return self._nobody()._replace(token=token)

    def kubeconfig_of(self, access: Access, name: str) -> Path:
        """Write a kubeconfig file for somebody; `name` is the file's."""
        stem = re.sub(r"[^A-Za-z0-9.-]", "_", name)
        return write_kubeconfig(self.folder / "kubeconfigs" / f"{stem}.yaml", access)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _nobody(self) -> Access:
        return Access(HOST, self._layout.ports[Part.API_SERVER], self.authority.own.certificate)

    def _prepare(self) -> None:
        for name in ("etcd", "certificates", "kubeconfigs", "api-server", "logs"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        names = ports_needed()
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        self._layout = Layout(self.folder, ports, Authority(self.folder / "certificates"), self._programs)
        self._processes = {}
        self._put_away = set()
        for name, user, groups in _USERS:
            self.kubeconfig_of(self.access_of_user(user, groups), name)
        self.api = Api(self.access_of_user("admin", ["system:masters"]))

    def _start_all(self) -> None:
        self._launch(Part.ETCD)
        self._launch(Part.API_SERVER)
        self._await(Part.ETCD)
        self._await(Part.API_SERVER)
        rest = [part for part in self.parts if part not in (Part.ETCD, Part.API_SERVER)]
        for part in rest:
            self._launch(part)
        for part in rest:
            self._await(part)

    def _launch(self, part: Part) -> None:
        words = self._layout.words(part, self._flags[part])
        self._put_away.discard(part)
        self._processes[part] = Process(part, words, self.log(part))
        self._processes[part].start()

    def _await(self, part: Part) -> None:
        ready = self.api.ready if part is Part.API_SERVER else partial(_healthy, part, self._layout.ports[part])
        self._process(part).wait_until(ready, READY_S)

    def _process(self, part: Part) -> Process:
        if part not in self._processes:
            raise WattloomError(f"{part} is no part of this control plane: it has {', '.join(self._processes)}")
        return self._processes[part]

    def pids(self) -> list[int]:
        """The process ids of all parts that run."""
        return [pid for part in self._processes if (pid := self.pid(part)) is not None]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


_USERS: Iterable[tuple[str, str, Sequence[str]]] = (
    ("admin", "admin", ["system:masters"]),
    ("kube-scheduler", "system:kube-scheduler", []),
    ("kube-controller-manager", "system:kube-controller-manager", []),
)
"""Kubeconfig files that every control plane has: the file's name, the user, the groups."""


def _healthy(part: Part, port: int) -> bool:
    scheme, path = HEALTH[part]
    connection: HTTPConnection
    if scheme == "http":
        connection = HTTPConnection(HOST, port, timeout=5.0)
    else:
        # It is asked for its health only: nothing is told to it, and nothing it says is believed.
        connection = HTTPSConnection(HOST, port, timeout=5.0, context=ssl._create_unverified_context())
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
