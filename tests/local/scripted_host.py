"""A host of workers without workers: it keeps what it is given, and the test says what became of it."""

from collections.abc import Sequence

from wattloom.local import frames
from wattloom.local.frames import EndFrame
from wattloom.local.job import HostWorker, Job
from wattloom.local.nodes import LocalNode
from wattloom.local.worker_host import WorkerListener
from wattloom.runtimes.packing import pack


class ScriptedHost:
    """One worker for each call that does not stand behind another."""

    def __init__(self, nodes: Sequence[LocalNode]) -> None:
        self.nodes = nodes
        self.due: float | None = None
        self.unsent: list[Job] = []
        self.sent: list[Job] = []
        self.cut: list[tuple[Job, str]] = []
        self.refuses: OSError | None = None
        self._listener: WorkerListener
        self._started = 0

    @property
    def has_unsent(self) -> bool:
        return bool(self.unsent)

    def begin(self, listener: WorkerListener) -> None:
        self._listener = listener

    def place(self, job: Job, node: str, behind: Job | None) -> None:
        if self.refuses is not None:
            raise self.refuses
        job.worker = behind.worker if behind is not None else self._start(node)
        self.unsent.append(job)

    def _start(self, node: str) -> HostWorker:
        self._started += 1
        worker = HostWorker(self._started, node, 0)
        self._listener.worker_started(worker)
        return worker

    def send(self, now: float) -> None:
        wanted = [job for job in self.unsent if self._listener.is_wanted(job)]
        self.unsent = [job for job in self.unsent if job not in wanted]
        self.sent += wanted

    def take_back(self, job: Job, now: float) -> bool:
        if job not in self.unsent:
            return False
        self.unsent.remove(job)
        return True

    def cut_off(self, job: Job, why: str) -> None:
        self.cut.append((job, why))

    def wait(self, seconds: float | None) -> None: ...
    def wake(self) -> None: ...
    def hear(self, now: float) -> None: ...
    def look_after(self, now: float) -> None: ...
    def turn_over(self) -> None: ...
    def let_go(self) -> None: ...
    def close(self, *, forget: bool) -> None: ...

    def busy(self) -> list[HostWorker]:
        return [job.worker for job in self.sent if job.worker is not None]

    # -- what the test says --------------------------------------------------------------------------------------------

    def ends(self, job: Job, value: object) -> None:
        self.sent.remove(job)
        assert job.worker is not None
        end = EndFrame(job.number, frames.VALUE, pack(value).body, "", 0.5, 0.5, b"")
        self._listener.ended(job.worker, job, end)

    def loses(self, job: Job, how: str) -> None:
        self.sent.remove(job)
        self._listener.lost(job, how)

    def returns(self, job: Job) -> None:
        self.sent.remove(job)
        self._listener.returned(job)
