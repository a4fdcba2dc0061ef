"""The scheduler beside kube-scheduler: one event loop from the first list to the last event.

Owns the life of the process: what is started when, who leads, and how it ends. What pods and nodes mean is
`cluster_state`'s, what is done about decisions `carrying_out`'s.
"""

import asyncio
import gc
import logging
import os
import socket
import uuid
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec

from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes.answering import Answering
from wattloom.kubernetes.api import Api
from wattloom.kubernetes.binding import Binder
from wattloom.kubernetes.carrying_out import CarryingOut, tell_why_they_wait
from wattloom.kubernetes.cluster_state import ClusterState
from wattloom.kubernetes.deciding import Deciding
from wattloom.kubernetes.decision_log import DecisionLog
from wattloom.kubernetes.election import Election
from wattloom.kubernetes.errors import ApiError, Forbidden, Unreachable
from wattloom.kubernetes.health import DEFAULT, WebServer
from wattloom.kubernetes.intake import Intake
from wattloom.kubernetes.metrics import Counts
from wattloom.kubernetes.pod_entry import PodEntry
from wattloom.kubernetes.target import Target
from wattloom.kubernetes.telling import Teller
from wattloom.kubernetes.unsupported import Unsupported
from wattloom.policies.loading import load_policy
from wattloom.policies.protocol import Policy

LOG: Final = logging.getLogger(__name__)
EVENT_WRITERS: Final = 24
LAST_BINDINGS_S: Final = 10.0
LAST_EVENTS_S: Final = 20.0
LOOK_EVERY_S: Final = 1.0
MOST_TOLD: Final = 500
"""Owners told in one look why their pods wait."""


class Options(msgspec.Struct, frozen=True):
    """How a scheduler is run; the command's options."""

    name: str = "wattloom"
    """Pods with this `schedulerName` are ours."""
    policy: str = "least-joules"
    leader_elect: bool = True
    lease_namespace: str = ""
    """Left out: the namespace of the context or of this pod."""
    lease_name: str = "wattloom-scheduler"
    lease_s: float = 10.0
    renew_s: float = 7.0
    retry_s: float = 2.0
    identity: str = ""
    bind_concurrency: int = 48
    pods_per_second: float = 0.0
    """0: as fast as it goes."""
    http: str = DEFAULT
    """Empty: no web server."""
    token: str = ""
    first_answer_s: float = 20.0
    """How long the API server may take for its first answer."""
    log: Path | None = None
    why_command: tuple[str, ...] = ()
    """The command that explains a task from a log, as JSON; the task and the log are added."""


class LeaseLost(WattloomError):
    """Another replica leads now, or may."""


class Scheduler:
    """`run` until `stop`, or until the lease is lost (LeaseLost)."""

    def __init__(self, target: Target, options: Options) -> None:
        self.options: Final = options
        self.counts: Final = Counts()
        self.policy: Final = usable_policy(options.policy)
        self.identity: Final = options.identity or f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self.api: Final = Api(
            target,
            connections=options.bind_concurrency + EVENT_WRITERS + 16,
            agent=f"wattloom-scheduler/{options.name}",
        )
        self.log: Final = DecisionLog(options.log, options.policy, target.server) if options.log is not None else None
        self.binder: Final = Binder(self.api, in_flight=options.bind_concurrency, there=self._may_bind)
        self.teller: Final = Teller(
            self.api,
            controller=options.name,
            instance=self.identity,
            writers=EVENT_WRITERS,
            give_way=self._binds_are_waiting,
        )
        self.carrying: Final = CarryingOut(
            lambda: self.deciding, lambda: self.state.pods, self.binder, self.teller, self.counts, self._done
        )
        self.deciding: Final = Deciding(
            self.policy,
            self.carrying.carry_out,
            log=self.log.writer if self.log is not None else None,
            observe=self.counts.decision.observe,
        )
        self.state: Final = ClusterState(
            self.api, options.name, self.deciding, ready=self._ready, not_followed=self._not_followed
        )
        self.intake: Final = Intake(
            self.state.pods.submit,
            lambda: self.carrying.under_way,
            most_under_way=2 * options.bind_concurrency,
            per_second=options.pods_per_second,
        )
        self.election: Final = self._election(target) if options.leader_elect else None
        self.server: Final = self._server() if options.http else None
        self.deciding_now = False
        """Whether this replica leads and has read everything."""
        self._over: Final = asyncio.Event()
        self._problem: WattloomError | None = None

    # -- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            async with self.api:
                await self._reach()
                if self.server is not None:
                    await self.server.start()
                await self._live()
        finally:
            if self.server is not None:
                await self.server.stop()
            self.deciding.stop()
            if self.log is not None:
                self.log.close()
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """Finish what is under way and end."""
        self._over.set()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self.teller.run()),
                group.create_task(self.intake.run()),
                group.create_task(self._look_after()),
            ]
            election = group.create_task(self.election.run()) if self.election is not None else None
            starting = group.create_task(self._start(group, background))
            await self._over.wait()
            starting.cancel()
            await self._finish(election)
            for task in background:
                task.cancel()

    async def _start(self, group: asyncio.TaskGroup, background: list[asyncio.Task[None]]) -> None:
        try:
            await self.state.start(lambda work: background.append(group.create_task(work)))
        except ApiError as error:
            self._end(error)
            return
        nodes, pods = len(self.state.nodes.objects), len(self.state.pods.by_uid)
        LOG.info("in step with the cluster: %d nodes, %d pods", nodes, pods)
        if self.election is None or self.election.leading:
            self._lead()

    async def _finish(self, election: asyncio.Task[None] | None) -> None:
        """Bindings first, then the lease, so that another can go on, then what is still to be told."""
        self.intake.close()
        if self._problem is None:
            await self.carrying.end(LAST_BINDINGS_S)
        else:
            await self.carrying.end(0.0)
        self.deciding_now = False
        if election is not None:
            election.cancel()
            with suppress(asyncio.CancelledError):
                await election
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EVENTS_S):
                await self.teller.drain()

    def _server(self) -> WebServer:
        answering = Answering(self)
        return WebServer(self.options.http, answering.open, answering.pages, token=self.options.token)

    async def _reach(self) -> None:
        """One question, so that whoever gave a wrong address is told. A server that comes up is waited for."""
        until = monotonic() + self.options.first_answer_s
        while True:
            try:
                async with asyncio.timeout(max(0.1, until - monotonic())):
                    await self.api.send("GET", "/version")
                return
            except Forbidden:
                return
            except (Unreachable, TimeoutError) as error:
                problem = error.message if isinstance(error, Unreachable) else "no answer in time"
            if monotonic() > until:
                raise NoCluster(f"no cluster can be reached at {self.api.target.server}: {problem}")
            LOG.warning("the API server at %s does not answer: %s", self.api.target.server, problem)
            await asyncio.sleep(1.0)

    def _end(self, problem: WattloomError) -> None:
        if self._problem is None:
            self._problem = in_words(problem) if isinstance(problem, ApiError) else problem
        self._over.set()

    # -- who leads ---------------------------------------------------------------------------------------------------

    def _election(self, target: Target) -> Election:
        options = self.options
        return Election(
            self.api,
            self.identity,
            namespace=options.lease_namespace or target.namespace,
            name=options.lease_name,
            lease_s=options.lease_s,
            renew_s=options.renew_s,
            retry_s=options.retry_s,
            started=self._elected,
            stopped=self._unseated,
        )

    def _elected(self) -> None:
        if self.state.synced:
            self._lead()

    def _unseated(self) -> None:
        """Whatever was decided and not sent yet is not sent any more."""
        if not self._over.is_set():
            self.deciding_now = False
            self.intake.close()
            self._end(LeaseLost(f"the lease {self.options.lease_name} is lost: another replica leads now, or will"))

    def _lead(self) -> None:
        self.deciding_now = True
        waiting = self.state.pods.waiting()
        LOG.info("%s decides from now on: %d pods wait", self.identity, len(waiting))
        for entry in waiting:
            self.intake.put(entry)
        self.intake.open()

    # -- between the parts -------------------------------------------------------------------------------------------

    def _may_bind(self, node: str) -> bool:
        """Asked just before a binding is sent."""
        return self.state.nodes.knows(node) and (self.election is None or self.election.leading)

    def _binds_are_waiting(self) -> bool:
        return self.carrying.under_way >= self.options.bind_concurrency

    def _ready(self, entry: PodEntry) -> None:
        if self.deciding_now:
            self.intake.put(entry)

    def _not_followed(self, entry: PodEntry, wrong: Unsupported) -> None:
        self.carrying.not_followed(entry, wrong)

    def _done(self) -> None:
        self.intake.stir()

    async def _look_after(self) -> None:
        """Owners of pods that wait are told why, and the log is put on disk."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if self.deciding_now:
                tell_why_they_wait(self.state.pods, self.deciding, self.teller, MOST_TOLD)
            if self.log is not None:
                self.log.flush()


class NoCluster(WattloomError):
    """Nobody answers where the API server should be."""


def usable_policy(spec: str) -> Policy:
    """The policy, if it can decide here."""
    policy = load_policy(spec)
    if policy.reading_interval_s is not None:
        raise InputError("policy", f"{policy.name} goes by meters' readings, which Kubernetes does not bring: another")
    if "linger=" in spec.partition(":")[2]:
        raise InputError("policy", "linger= sends idle nodes to sleep, which is not done on Kubernetes: leave it out")
    return policy


def in_words(error: ApiError) -> WattloomError:
    """What to do about it."""
    if isinstance(error, Forbidden):
        return WattloomError(f"{error}; `wattloom kubernetes manifests --what rbac` has all that is needed")
    return error


def run(target: Target, options: Options) -> None:
    """A scheduler in this process, until SIGTERM or SIGINT."""
    import signal

    async def live() -> None:
        scheduler = Scheduler(target, options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, scheduler.stop)
        await scheduler.run()

    # What is kept lives long: looking for garbage in it again and again would be most of the work of a large cluster.
    gc.set_threshold(50_000, 20, 100)
    LOG.info("process %d", os.getpid())
    asyncio.run(live())
