"""What a question costs by the extender's own protocol, and by uvicorn's: why the extender keeps its own.

The same answer to the same question, each server in a process of its own with the same event loop, asked over 8
connections that stay open. The CPU time of the server for one question counts: it says less about what else runs here
than questions a second, which stand beside it. Rounds go in turn, A B B A; the best of each contender counts.
"""

import argparse
import asyncio
import multiprocessing as mp
import time
from multiprocessing.connection import Connection
from typing import Any, Final

from wattloom.kubernetes.client import event_loop
from wattloom.kubernetes.extender.http import LIMITS, ExtenderServer
from wattloom.serving.address import Address
from wattloom.serving.pages import JSON, Answered, Receive, Scope, Send, reply
from wattloom.serving.server import app_server

ANSWER: Final = b'{"NodeNames":["node-17"],"FailedNodes":{},"Error":""}'
CONNECTIONS: Final = 8
SIZES: Final = {"2 kB (a pod)": 2_000, "22 kB (and 1,000 names of nodes)": 22_000}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await reply(send, Answered(200, JSON, ANSWER))


def server_of(kind: str) -> Any:
    if kind == "own":
        return ExtenderServer("127.0.0.1:0", {"filter": lambda body, last=False: ANSWER})
    return app_server(Address("127.0.0.1", 0), app, limits=LIMITS, parser=kind)


def serve(kind: str, told: Connection) -> None:
    async def live() -> None:
        server = server_of(kind)
        await server.start()
        told.send(server.port)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, told.recv)
        began = time.process_time()
        told.send(None)
        await loop.run_in_executor(None, told.recv)
        told.send(time.process_time() - began)
        await server.stop()

    event_loop.run(live())


async def ask(port: int, question: bytes, times: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(times):
        writer.write(question)
        await reader.readuntil(ANSWER)
    writer.close()


def measure(kind: str, size: int, questions: int) -> tuple[float, float]:
    """CPU microseconds of the server for a question, and questions a second."""
    here, there = mp.Pipe()
    process = mp.get_context("spawn").Process(target=serve, args=(kind, there))
    process.start()
    port = here.recv()
    head = f"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    question = head.encode() + b"x" * size

    async def load(times: int) -> None:
        await asyncio.gather(*(ask(port, question, times // CONNECTIONS) for _ in range(CONNECTIONS)))

    event_loop.run(load(questions // 10))
    here.send(None)
    here.recv()
    began = time.perf_counter()
    event_loop.run(load(questions))
    took_s = time.perf_counter() - began
    here.send(None)
    cpu_s = here.recv()
    process.join()
    return cpu_s / questions * 1e6, questions / took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    contenders = ["own", "httptools", "h11"]
    for words, size in SIZES.items():
        found: dict[str, list[tuple[float, float]]] = {each: [] for each in contenders}
        for number in range(2 * options.rounds):
            for each in contenders[:: 1 if number % 2 == 0 else -1]:
                found[each].append(measure(each, size, options.questions))
        least = {each: min(cpu for cpu, _ in figures) for each, figures in found.items()}
        print(f"{words}:")
        for each, figures in found.items():
            most = max(rate for _, rate in figures)
            print(f"  {each:10} {least[each]:6.0f} us CPU ({least[each] / least['own']:.1f}x), {most:6.0f} a second")


if __name__ == "__main__":
    main()
