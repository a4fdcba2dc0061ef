"""What kube-scheduler finds feasible: an extender that writes down which nodes it is asked about, and takes none.

The extender is asked after kube-scheduler's own filters, so the nodes named are exactly those that passed. Because it
refuses them all, every pod keeps waiting and the cluster stays as it is.
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from sys import exception
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

import msgspec

CONFIG: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: false}}
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{disabled: [{{name: DefaultPreemption}}]}}}}
extenders:
- {{urlPrefix: "{url}", filterVerb: filter, nodeCacheCapable: true, httpTimeout: 30s}}
"""
"""Without preemption: nothing that is placed may be removed."""


class ExtenderArgs(msgspec.Struct):
    """A call of the extender."""

    pod: dict[str, Any] = msgspec.field(name="Pod")
    nodes: list[str] | None = msgspec.field(name="NodeNames", default=None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """kube-scheduler ends without saying good-bye; that is no error of ours."""
        if not isinstance(exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Reference:
    """The extender, answering on loopback."""

    def __init__(self) -> None:
        self.passed: dict[str, frozenset[str]] = {}
        """Nodes that passed the filters, by the pod's uid, when it was last asked about."""
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def write_config(self, path: Path, kubeconfig: Path) -> Path:
        """The configuration of a kube-scheduler that asks us."""
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        path.write_text(CONFIG.format(kubeconfig=kubeconfig, url=url))
        return path

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        passed = self.passed

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                args = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])), type=ExtenderArgs)
                names = args.nodes or []
                passed[args.pod["metadata"]["uid"]] = frozenset(names)
                answer = {"NodeNames": [], "FailedNodes": dict.fromkeys(names, "only written down"), "Error": ""}
                body = msgspec.json.encode(answer)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is said of single calls."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
