"""The scheduler beside kube-scheduler: one event loop from the first list to the last event.

Owns the life of the process: how long a cluster is waited for, what is started when, who leads, and how it ends. What
pods and nodes mean is `cluster_state`'s; a pod's way through it all is told in `schedule_one`.
"""

import asyncio
import gc
import logging
import os
import socket
import uuid
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final

from wattloom.errors import WattloomError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import ApiError, Forbidden, Unreachable
from wattloom.kubernetes.client.event_recorder import EventRecorder
from wattloom.kubernetes.client.leader_election import LeaderElection
from wattloom.kubernetes.client.target import Target
from wattloom.kubernetes.metrics import Counts
from wattloom.kubernetes.options import (
    LeaseLost,
    NoCluster,
    Options,
    in_words,
    tell_how_it_is_used,
    tell_where_tdp_is_not_kept,
    usable_policy,
    usable_spec,
)
from wattloom.kubernetes.publishing.watts import WattsPublisher
from wattloom.kubernetes.scheduler.answering import Answering
from wattloom.kubernetes.scheduler.binding import Binder
from wattloom.kubernetes.scheduler.cluster_state import ClusterState
from wattloom.kubernetes.scheduler.decision_log import DecisionLog
from wattloom.kubernetes.scheduler.pod_conditions import PodConditions
from wattloom.kubernetes.scheduler.schedule_one import ScheduleOne
from wattloom.kubernetes.scheduler.status_reporter import look_after_log, look_after_memory, look_after_owners
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.serving.server import page_server

__all__ = ["LeaseLost", "NoCluster", "Options", "Scheduler", "run", "usable_policy"]

LOG: Final = logging.getLogger(__name__)
EVENT_WRITERS: Final = 24
LAST_BINDINGS_S: Final = 10.0
LAST_EVENTS_S: Final = 20.0


class Scheduler:
    """`run` until `stop`, or until the lease is lost (LeaseLost)."""

    def __init__(self, target: Target, options: Options) -> None:
        self.options: Final = options
        self.counts: Final = Counts()
        policy = usable_policy(options.policy)
        tell_how_it_is_used(options.policy)
        self.identity: Final = options.identity or f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self.api: Final = Api(
            target,
            connections=options.bind_concurrency + EVENT_WRITERS + 16,
            agent=f"wattloom-scheduler/{options.name}",
        )
        self.log: Final = self._log(target.server) if options.log is not None else None
        self.binder: Final = Binder(self.api, in_flight=options.bind_concurrency, there=self._may_bind)
        self.recorder: Final = EventRecorder(
            self.api,
            controller=options.name,
            instance=self.identity,
            writers=EVENT_WRITERS,
            give_way=self._binds_are_waiting,
        )
        self.conditions: Final = PodConditions(self.api, give_way=self._others_write)
        self.scheduling: Final = ScheduleOne(
            lambda: self.driver,
            lambda: self.state.pods,
            self.binder,
            self.recorder,
            self.conditions,
            self.counts,
            leads=lambda: self.deciding_now,
            per_second=options.pods_per_second,
        )
        self.driver: Final = TimedDriver(
            policy,
            self.scheduling.carry_out,
            log=self.log.writer if self.log is not None else None,
            observe=self.counts.decision.observe,
        )
        self.state: Final = ClusterState(
            self.api,
            options.name,
            self.driver,
            ready=self.scheduling.seen,
            not_followed=self.scheduling.rejected,
            node_changed=self._node_changed,
        )
        nodes = self.state.nodes
        self.publisher: Final = WattsPublisher(
            self.api,
            nodes.objects.get,
            nodes.machine_of,
            may=lambda: self.deciding_now,
            busy=lambda: self.scheduling.binds.under_way > 0,
        )
        self.election: Final = self._election(target) if options.leader_elect else None
        answering = Answering(self)
        self.server: Final = (
            page_server(options.http, answering.open, answering.pages, token=options.token) if options.http else None
        )
        self.probes: Final = page_server(options.probes, answering.open, {}, field="probes") if options.probes else None
        self.deciding_now = False
        """Whether this replica leads and has read everything."""
        self._over: Final = asyncio.Event()
        self._problem: WattloomError | None = None

    # -- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            async with self.api:
                await reach(self.api, self.options.first_answer_s)
                for server in filter(None, (self.server, self.probes)):
                    await server.start()
                await self._live()
        finally:
            for server in filter(None, (self.server, self.probes)):
                await server.stop()
            self.driver.stop()
            if self.log is not None:
                self.log.close()
        if self._problem is not None:
            raise self._problem
        LOG.info("%s has ended", self.identity)

    def stop(self) -> None:
        """Finish what is under way and end."""
        self._over.set()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self.recorder.run()),
                group.create_task(self.conditions.run()),
                group.create_task(self.scheduling.queue.run()),
                group.create_task(
                    look_after_owners(
                        self.state.pods, self.driver, self.recorder, self.conditions, lambda: self.deciding_now
                    )
                ),
                group.create_task(self.publisher.run()),
            ]
            fresh = partial(usable_policy, self.options.policy)
            if self.log is not None:
                background.append(group.create_task(look_after_log(self.log, self.driver, fresh)))
            else:
                background.append(group.create_task(look_after_memory(self.driver, fresh)))
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
        elif self.election.holder not in ("", self.identity):
            self._stands_by(self.election.holder)

    async def _finish(self, election: asyncio.Task[None] | None) -> None:
        """Bindings first, then the lease, so that another can go on, then what is still to be told."""
        self.scheduling.queue.close()
        if self._problem is None:
            await self.scheduling.binds.end(LAST_BINDINGS_S)
        else:
            await self.scheduling.binds.end(0.0)
        self.deciding_now = False
        if election is not None:
            election.cancel()
            with suppress(asyncio.CancelledError):
                await election
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_EVENTS_S):
                await self.recorder.drain()

    def _log(self, cluster: str) -> DecisionLog:
        options = self.options
        assert options.log is not None
        return DecisionLog(options.log, usable_spec(options.policy), cluster, most=options.log_size)

    def _end(self, problem: WattloomError) -> None:
        if self._problem is None:
            self._problem = in_words(problem) if isinstance(problem, ApiError) else problem
        self._over.set()

    # -- who leads ---------------------------------------------------------------------------------------------------

    def _election(self, target: Target) -> LeaderElection:
        options = self.options
        return LeaderElection(
            self.api,
            self.identity,
            namespace=options.lease_namespace or target.namespace,
            name=options.lease_name,
            lease_s=options.lease_s,
            renew_s=options.renew_s,
            retry_s=options.retry_s,
            started=self._elected,
            stopped=self._unseated,
            following=self._stands_by,
        )

    def _elected(self) -> None:
        if self.state.synced:
            self._lead()

    def _stands_by(self, leader: str) -> None:
        if self.state.synced and not self._over.is_set():
            LOG.info("%s stands by; %s leads", self.identity, leader)

    def _unseated(self) -> None:
        """Whatever was decided and not sent yet is not sent any more."""
        if not self._over.is_set():
            self.deciding_now = False
            self.scheduling.queue.close()
            why = self.election.why_not if self.election is not None else ""
            self._end(LeaseLost(f"the lease {self.options.lease_name} is lost: {why}"))

    def _lead(self) -> None:
        self.deciding_now = True
        waiting = self.state.pods.waiting()
        LOG.info("%s decides from now on: %d pods wait", self.identity, len(waiting))
        engine = self.driver.engine
        tell_where_tdp_is_not_kept(engine.policy, (cls.machine for cls in engine.ledger.view.classes()))
        self.scheduling.begin(waiting)

    # -- between the parts -------------------------------------------------------------------------------------------

    def _may_bind(self, node: str) -> bool:
        """Asked just before a binding is sent."""
        return self.state.nodes.knows(node) and (self.election is None or self.election.leading)

    def _binds_are_waiting(self) -> bool:
        return self.scheduling.binds.under_way >= self.options.bind_concurrency

    def _others_write(self) -> bool:
        """Conditions go last."""
        return not self.deciding_now or len(self.recorder) > 0 or self._binds_are_waiting()

    def _node_changed(self, name: str) -> None:
        if self.options.publish_watts:
            self.publisher.changed(name)


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
    event_loop.run(live())


async def reach(api: Api, seconds: float) -> None:
    """One question, so that whoever gave a wrong address is told (NoCluster). A server that comes up is waited for."""
    until = monotonic() + seconds
    said = ""
    while True:
        try:
            async with asyncio.timeout(max(0.1, until - monotonic())):
                await api.send("GET", "/version")
            return
        except Forbidden:
            return
        except (Unreachable, TimeoutError) as error:
            problem = error.message if isinstance(error, Unreachable) else "no answer in time"
        if monotonic() > until:
            raise NoCluster(f"no cluster can be reached at {api.target.server}: {problem}")
        level = logging.DEBUG if problem == said else logging.WARNING
        LOG.log(level, "the API server at %s does not answer: %s", api.target.server, problem)
        said = problem
        await asyncio.sleep(1.0)
