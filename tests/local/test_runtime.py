"""A call is bytes with a content type: Python's runtime alone, in a real worker, and across the end of a program."""

import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.local.test_worker_host import pool

import wattloom
from wattloom.energy.forecast import Unknown
from wattloom.history.log import VERSION, Header
from wattloom.journal.journal import Journal
from wattloom.journal.progress import Progress
from wattloom.local import frames
from wattloom.local.errors import TaskRejected
from wattloom.local.frames import CallFrame, EndFrame, Hello
from wattloom.local.future import TaskFuture
from wattloom.local.job import Job
from wattloom.local.journaled_run import JournaledRun
from wattloom.local.recovery import recovered
from wattloom.machines.this_machine import this_machine
from wattloom.runtimes.packing import LARGE, pack, pack_call, unpack
from wattloom.runtimes.protocol import BYTES, JSON, PICKLE, Outcome
from wattloom.runtimes.python import PythonRuntime, decoded_value
from wattloom.scheduling import events as ev
from wattloom.testing.builders import machine
from wattloom.testing.worker_host_conformance import Bench
from wattloom.workload.function import Function
from wattloom.workload.task import Task

RUNTIME = PythonRuntime()


def run(function: object, body: bytes, content: str) -> Outcome:
    return RUNTIME.call(RUNTIME.load(pack(function).body), body, [], content)


def value(outcome: Outcome) -> object:
    assert outcome.status == frames.VALUE
    return decoded_value(outcome.packed.body, outcome.packed.raw, outcome.content)


@pytest.mark.parametrize(
    ("function", "body", "content", "expected"),
    [
        (divmod, pack_call((17, 5), {}).body, PICKLE, (3, 2)),
        (divmod, b"[17, 5]", JSON, [3, 2]),
        (dict, b'{"a": 1}', JSON, {"a": 1}),
        (bytes.upper, b"raw", BYTES, b"RAW"),
        (bytes, b"x" * LARGE, BYTES, b"x" * LARGE),
    ],
    ids=["pickle", "json", "named", "bytes", "large"],
)
def test_a_call_of_each_kind_ends_in_kind(function: object, body: bytes, content: str, expected: object) -> None:
    outcome = run(function, body, content)
    assert outcome.content == content
    assert value(outcome) == expected


def test_an_exception_is_pickled_for_python_and_told_to_others() -> None:
    ours = run(math.sqrt, pack_call((-1.0,), {}).body, PICKLE)
    assert ours.status == frames.RAISED
    assert isinstance(unpack(ours.packed.body, [])[0], ValueError)
    others = run(math.sqrt, b"[-1]", JSON)
    assert (others.status, others.content) == (frames.RAISED, JSON)
    assert msgspec.json.decode(others.packed.body)["type"] == "ValueError"


def test_what_cannot_be_encoded_or_decoded_is_said() -> None:
    assert run(Path, b'["folder"]', JSON).status == frames.UNSENDABLE
    told = run(abs, b"whatever", "text/unheard-of")
    assert "text/unheard-of" in msgspec.json.decode(told.packed.body)["message"]


@pytest.mark.parametrize(
    ("function", "body", "content", "expected"),
    [(divmod, b"[17, 5]", JSON, [3, 2]), (bytes.upper, b"raw", BYTES, b"RAW")],
)
def test_a_worker_makes_calls_of_each_kind(
    tmp_path: Path, function: object, body: bytes, content: str, expected: object
) -> None:
    host = pool(tmp_path)
    try:
        bench = Bench(host)
        job = bench.call(function)  # type: ignore[arg-type]
        job.args, job.content = body, content
        bench.place(job)
        host.send(bench.now)
        assert bench.outcome(job) == "ended"
        end = bench.listener.ends[job.task.id][1]
        assert (end.status, end.content) == (frames.VALUE, content)
        assert decoded_value(end.body, [], end.content) == expected
    finally:
        host.close(forget=True)


def test_the_kind_of_a_call_outlives_its_program(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "work.journal")
    journaled = JournaledRun(journal, Header(VERSION, "fifo", "local"), time.time())
    job = _job()
    journaled.accept(job)
    journaled.write(ev.FunctionDefined(0.0, Function("f")), [])
    journaled.write(ev.TaskSubmitted(0.0, job.task), [])
    journaled.commit()
    journal.close()
    journal = Journal.open(tmp_path / "work.journal")
    ((again, _),) = recovered(journal).jobs
    assert (again.args, again.content) == (b"[1]", JSON)
    journal.close()


def _job() -> Job:
    job = Job(Task("1-1", "f"), TaskFuture("1-1"), "digest", b"blob", b"[1]", "")
    job.content = JSON
    return job


# -- architectures -----------------------------------------------------------------------------------------------------


def test_a_function_for_other_machines_is_rejected_and_says_so(tmp_path: Path) -> None:
    with wattloom.Executor(1, journal=tmp_path / "j", meter="off") as executor:
        elsewhere = wattloom.function(arch=("sparc64",), executor=executor)(abs)
        here = wattloom.function(arch=("sparc64", this_machine().arch), executor=executor)(math.sqrt)
        assert here.remote(4.0).result(60) == 2.0
        problem = elsewhere.remote(-1).exception(60)
        assert isinstance(problem, TaskRejected)
        assert f"it runs on sparc64, and this is {this_machine().arch}" in str(problem)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two virtual nodes need two cores")
def test_a_function_goes_to_the_node_of_its_architecture(tmp_path: Path) -> None:
    nodes = [
        wattloom.VirtualNode("arm", machine("arm-box", arch="aarch64")),
        wattloom.VirtualNode("x86", machine("x86-box", arch="x86_64")),
    ]
    with wattloom.Executor(nodes=nodes, journal=tmp_path / "j", policy="fifo") as executor:
        calls = {
            arch: wattloom.function(arch=(arch,), executor=executor)(os.sched_getaffinity)
            for arch in ("aarch64", "x86_64")
        }
        cores = {arch: [call.remote(0).result(60) for _ in range(4)] for arch, call in calls.items()}
        assert not isinstance(calls["aarch64"].remote(0).energy, Unknown)
    assert all(each == cores["aarch64"][0] for each in cores["aarch64"])
    assert all(each == cores["x86_64"][0] for each in cores["x86_64"])
    assert cores["aarch64"][0] != cores["x86_64"][0]


# -- another language --------------------------------------------------------------------------------------------------

OTHER = """
import socket, sys
from wattloom.journal.progress import Progress
from wattloom.local import frames
from wattloom.runtimes.packing import Packed
from wattloom.runtimes.protocol import JSON, Outcome
from wattloom.local.worker import Worker

class Words:
    '''Functions are words, and a call repeats its word so often.'''

    def load(self, blob):
        return blob.decode()

    def call(self, function, body, buffers, content):
        assert content == JSON
        return Outcome(frames.VALUE, Packed(b'"' + function.encode() * int(body) + b'"', []), JSON)

    def failed(self, problem, content):
        return Outcome(frames.RAISED, Packed(b'{}', []), JSON)

    def processes(self):
        return []

Worker(socket.socket(fileno=int(sys.argv[1])), Words()).serve()
"""


def test_a_worker_speaks_another_language_with_another_runtime(tmp_path: Path) -> None:
    """No pickle goes either way."""
    progress = Progress.create(tmp_path / "spool" / "worker-1-1", 7)
    ours, theirs = socket.socketpair()
    hello = Hello([], os.fsencode(tmp_path), os.fsencode(progress.path), b"", 1, b"", 0, [], [], "test", 1.0)
    command = [sys.executable, "-c", OTHER, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as there:
        theirs.close()
        encode = msgspec.msgpack.encode
        calls = [CallFrame(1, 1, b"2", "", JSON), CallFrame(2, 1, b"3", "", JSON)]
        for kind, body in ((frames.HELLO, hello), (frames.FUNCTION, (1, b"ho")), (frames.CALLS, calls)):
            ours.sendall(frames.frame(kind, encode(body)))
        ours.sendall(frames.frame(frames.STOP, b""))
        inbox, said = frames.Inbox(), list[tuple[int, bytes]]()
        while data := ours.recv(65536):
            said += inbox.frames(data)
        assert there.wait(60) == 0
    ends = msgspec.msgpack.Decoder(list[EndFrame])
    ended = [end for kind, body in said if kind == frames.ENDED for end in ends.decode(body)]
    assert [(end.number, end.status, end.body, end.content) for end in ended] == [
        (1, frames.VALUE, b'"hoho"', JSON),
        (2, frames.VALUE, b'"hohoho"', JSON),
    ]
    assert progress.begun() == 2
    progress.close()
