"""The extender at work in a thread of the test, and a kube-scheduler that asks it."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.beds.kubernetes import ControlPlane, eventually
from tests.kubernetes.in_thread import InThread

from wattloom.kubernetes.client.kubeconfig import target_of
from wattloom.kubernetes.extender.extender import Extender, Options


def curve(full_w: float, **more: Any) -> str:
    """The annotation of a node with 8 cores that draws 50 W idle and so much when all are busy."""
    spec = {"cores": 8, "threads": 8, "coresWatts": [[0, 50], [8, full_w]], "provenance": "measured", **more}
    return json.dumps(spec)


class Extending(InThread[Extender]):
    """An extender in a thread."""

    @property
    def extender(self) -> Extender:
        return self.part

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
    target = target_of(kubeconfig or plane.kubeconfig)
    running = Extending(lambda: Extender(target, Options(**given), encryption))
    running.start()
    try:
        eventually(lambda: running.error or running.extender.state.synced, 60)
        if running.error is None:
            yield running
    finally:
        running.stop()
    if running.error is not None:
        raise running.error
    assert running.extender.driver.refused == 0
