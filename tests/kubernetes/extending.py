"""The extender at work in a thread of the test, and a kube-scheduler that asks it."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wattloom.kubernetes.extender import Extender, Options
from wattloom.kubernetes.kubeconfig import target_of
from wattloom.testing.kubernetes import ControlPlane, eventually


def curve(full_w: float, **more: Any) -> str:
    """The annotation of a node with 8 cores that draws 50 W idle and so much when all are busy."""
    spec = {"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, full_w]], "provenance": "measured", **more}
    return json.dumps(spec)


class Extending:
    """An extender in a thread."""

    def __init__(self, kubeconfig: Path, options: Options, encryption: ssl.SSLContext | None = None) -> None:
        self.extender: Extender
        self.error: BaseException | None = None
        self._made = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(kubeconfig, options, encryption))

    def _run(self, kubeconfig: Path, options: Options, encryption: ssl.SSLContext | None) -> None:
        async def live() -> None:
            self.extender = Extender(target_of(kubeconfig), options, encryption)
            self._made.set()
            await self.extender.run()

        try:
            self._loop.run_until_complete(live())
        except BaseException as error:
            self.error = error
        finally:
            self._made.set()
            self._loop.close()

    def start(self) -> "Extending":
        self._thread.start()
        self._made.wait(30)
        return self

    def call(self, work: Callable[[], Any]) -> Any:
        """In the extender's own thread, between two of its steps."""

        async def do() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(30)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.extender.stop)
        self._thread.join(60)
        assert not self._thread.is_alive()

    def answered(self, verb: str, result: str) -> int:
        return int(self.call(lambda: self.extender.answers.counts.get((verb, result), 0)))


@contextmanager
def extending(
    plane: ControlPlane,
    listen: str = "127.0.0.1:0",
    *,
    kubeconfig: Path | None = None,
    encryption: ssl.SSLContext | None = None,
    **options: Any,
) -> Iterator[Extending]:
    """An extender that has read the cluster. It must end without an error and without contradictions."""
    given: dict[str, Any] = {"http": "", "listen": listen, "publish_watts": False, **options}
    running = Extending(kubeconfig or plane.kubeconfig, Options(**given), encryption).start()
    try:
        eventually(lambda: running.error or running.extender.state.synced, 60)
        if running.error is None:
            yield running
    finally:
        running.stop()
    if running.error is not None:
        raise running.error
    assert running.extender.deciding.refused == 0
