"""The extender inside kube-scheduler's process of scheduling: an HTTP server that knows the cluster's watts.

Owns the life of the process. It decides for nobody: kube-scheduler asks which of the nodes that it found feasible
are best by watts, and goes on without it when it is not there.
"""

import asyncio
import gc
import logging
import ssl
from time import monotonic
from typing import Final

import msgspec

from wattloom.bounds import MOST_CLUSTER_WATTS
from wattloom.errors import InputError, WattloomError
from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.client.api import Api
from wattloom.kubernetes.client.errors import ApiError, Forbidden
from wattloom.kubernetes.client.target import Target
from wattloom.kubernetes.extender.answers import ALL, Answers
from wattloom.kubernetes.extender.choice import Choice
from wattloom.kubernetes.extender.cluster_state import ExtenderState
from wattloom.kubernetes.extender.config import LISTEN
from wattloom.kubernetes.extender.http import ExtenderServer, Verb
from wattloom.kubernetes.extender.load import MOST_ENDED
from wattloom.kubernetes.extender.nudge import Nudge
from wattloom.kubernetes.extender.pages import ExtenderPages
from wattloom.kubernetes.metrics import DECISION_S, Histogram
from wattloom.kubernetes.options import tell_how_it_is_used, tell_where_tdp_is_not_kept, usable_policy
from wattloom.kubernetes.publishing.watts import WattsPublisher
from wattloom.kubernetes.state.driver import TimedDriver
from wattloom.policies.protocol import Policy
from wattloom.scheduling import events as ev
from wattloom.serving.server import page_server

LOG: Final = logging.getLogger(__name__)
HTTP: Final = "127.0.0.1:10264"
EXPIRE_EVERY_S: Final = 1.0
BUSY_S: Final = 1.0
"""So long after a question more are expected."""


class Options(msgspec.Struct, frozen=True):
    """How an extender is run; the command's options."""

    policy: str = "least-joules"
    listen: str = LISTEN
    http: str = HTTP
    """Health and metrics; empty: none."""
    probes: str = ""
    """Where health and readiness alone are answered, to everybody. Empty: only at `http`."""
    keep: int = 1
    """Nodes that the filter answers with at most; ALL: every one that watts allow."""
    cap_w: float | None = None
    """Limit on the whole cluster's draw."""
    assume_s: float = 30.0
    """How long a pod is taken to be on its way to where it was sent."""
    token: str = ""
    publish_watts: bool = True


class Extender:
    """`run` until `stop`."""

    def __init__(self, target: Target, options: Options, encryption: ssl.SSLContext | None = None) -> None:
        if options.cap_w is not None and not 0.0 < options.cap_w <= MOST_CLUSTER_WATTS:
            raise InputError(
                "cap", f"must be a positive number of watts, at most {MOST_CLUSTER_WATTS:g}, not {options.cap_w}"
            )
        self.options: Final = options
        self.seconds: Final = Histogram(DECISION_S)
        self.api: Final = Api(target, connections=16, agent="wattloom-extender")
        self.driver: Final = recording(options.policy)
        tell_how_it_is_used(options.policy)
        if options.cap_w is not None:
            self.driver.tell(ev.CapChanged(0.0, options.cap_w))
        self.state: Final = ExtenderState(
            self.api,
            self.driver,
            assume_s=options.assume_s,
            changed=self._node_changed,
            freed=lambda node: self.nudge.freed(node),
        )
        engine = self.driver.engine
        self.answers: Final = Answers(
            self.driver,
            Choice(engine.policy, engine.ledger),
            self.state.loads,
            keep=options.keep,
            synced=lambda: self.state.synced,
            refused=lambda: self.nudge.refused(),
        )
        self.nudge: Final = Nudge(self.api)
        nodes = self.state.nodes
        self.publisher: Final = WattsPublisher(self.api, nodes.objects.get, nodes.machine_of, busy=self._is_asked)
        verbs: dict[str, Verb] = {"filter": self.answers.filter, "prioritize": self.answers.prioritize}
        self.server: Final = ExtenderServer(
            options.listen, verbs, token=options.token, encryption=encryption, observe=self._answered
        )
        pages = ExtenderPages(self)
        self.web: Final = (
            page_server(options.http, pages.open, pages.pages, token=options.token) if options.http else None
        )
        self.probes: Final = page_server(options.probes, pages.open, {}, field="probes") if options.probes else None
        self._asked_at = -BUSY_S
        self._cap_told = False
        self._over: Final = asyncio.Event()
        self._problem: WattloomError | None = None

    async def run(self) -> None:
        try:
            async with self.api:
                await self.server.start()
                for server in filter(None, (self.web, self.probes)):
                    await server.start()
                LOG.info("answers kube-scheduler at port %d, by %s", self.server.port, self.options.policy)
                await self._live()
        finally:
            await self.server.stop()
            for server in filter(None, (self.web, self.probes)):
                await server.stop()
            self.driver.stop()
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        self._over.set()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._expire()), group.create_task(self.nudge.run())]
            if self.options.publish_watts:
                tasks.append(group.create_task(self.publisher.run()))
            tasks.append(group.create_task(self._start(group, tasks)))
            await self._over.wait()
            for task in tasks:
                task.cancel()

    async def _start(self, group: asyncio.TaskGroup, tasks: list[asyncio.Task[None]]) -> None:
        try:
            await self.state.start(lambda work: tasks.append(group.create_task(work)))
        except ApiError as error:
            self._problem = in_words(error)
            self._over.set()
            return
        nodes, pods = len(self.state.nodes.objects), len(self.state.loads.pods.by_uid)
        LOG.info("in step with the cluster: %d nodes, %d pods", nodes, pods)
        engine = self.driver.engine
        tell_where_tdp_is_not_kept(engine.policy, (cls.machine for cls in engine.ledger.view.classes()))
        self._look_at_cap()
        gc.collect()
        gc.freeze()  # what was read stays: looking through it again and again would make answers late

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EXPIRE_EVERY_S)
            self.state.loads.expire()
            self._look_at_cap()

    def _look_at_cap(self) -> None:
        """A cap that leaves no room for any pod is told once."""
        cap_w = self.options.cap_w
        if cap_w is not None and not self._cap_told and (idle_w := self.state.nodes.idle_w) > cap_w:
            self._cap_told = True
            words = "the cap of %g W is less than the %g W that the nodes draw idle: every pod is refused"
            LOG.warning(words, cap_w, idle_w)

    def _answered(self, seconds: float) -> None:
        self.seconds.observe(seconds)
        self._asked_at = monotonic()

    def _is_asked(self) -> bool:
        return monotonic() - self._asked_at < BUSY_S

    def _node_changed(self, name: str) -> None:
        if self.options.publish_watts:
            self.publisher.changed(name)


def recording(policy: str) -> TimedDriver:
    """An engine that is told what kube-scheduler decides: what it advises before is no decision of its own."""
    return TimedDriver(
        advising(usable_policy(policy)), lambda instruction: None, mode="record", remembered_ends=MOST_ENDED
    )


def advising(policy: Policy) -> Policy:
    """Room for CPU is kube-scheduler's question: here cores count for watts alone."""
    policy.terms = msgspec.structs.replace(policy.terms, guarantee=0.0)
    return policy


def in_words(error: ApiError) -> WattloomError:
    if isinstance(error, Forbidden):
        return WattloomError(f"{error}; `wattloom kubernetes manifests --what extender` has all that is needed")
    return error


def kept(text: str) -> int:
    """The number of nodes that `--keep` names."""
    if text == "all":
        return ALL
    if not text.isdecimal() or not 1 <= int(text) < ALL:
        raise InputError("keep", f"must be a number from 1, or all, not {text!r}")
    return int(text)


def run(target: Target, options: Options, encryption: ssl.SSLContext | None = None) -> None:
    """An extender in this process, until SIGTERM or SIGINT."""
    import signal

    async def live() -> None:
        extender = Extender(target, options, encryption)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, extender.stop)
        await extender.run()

    event_loop.run(live())
