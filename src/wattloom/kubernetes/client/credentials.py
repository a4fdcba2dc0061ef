"""Who we are to an API server: a token, a certificate, or a program that knows.

Owns how each kind of credentials is read, kept and read again. Knows no kubeconfig file and no request.
"""

import asyncio
import base64
import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, time
from typing import Any, Final, Protocol

import msgspec

from wattloom.errors import InputError
from wattloom.files import read_bytes
from wattloom.kubernetes.client.backoff import Backoff

MOST_BYTES: Final = 16 << 20
"""Of a token or certificate: a path may be that of something else."""
TOKEN_FILE_S: Final = 60.0
"""A token file is read again after this long: the kubelet replaces it well before it expires."""
PLUGIN_PATIENCE_S: Final = 60.0
EARLY_S: Final = 10.0
"""A plugin's answer is not used in its last seconds, or in the second half of a shorter life."""
MOST_SAID: Final = 1 << 20
"""Bytes that a plugin may print: far more than any credentials have."""
FOREVER_S: Final = 1e10
STEADY_S: Final = 60.0
"""What was accepted for so long is refused for another reason than what came before it."""
TOKEN: Final = re.compile(r"[!-~]+")
"""What can stand in a header: anything else would break the request, or add headers to it."""


class Pair(msgspec.Struct, frozen=True):
    """A client certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


class Credentials(Protocol):
    """Asked before each request and each new connection, so it answers from memory where it can."""

    async def authorization(self) -> str:
        """The value of the Authorization header, "" for none."""

    async def pair(self) -> Pair | None:
        """The client certificate, where there is one."""

    def renew(self) -> None:
        """The server did not accept them: read them again next time."""


class Pem(msgspec.Struct, frozen=True):
    """A certificate or key: given in place, or in a file that may be replaced."""

    field: str
    data: bytes = b""
    path: Path | None = None

    def read(self) -> bytes:
        return self.data if self.path is None else read(self.path, self.field)


def read(path: Path, field: str) -> bytes:
    try:
        return read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise InputError(field, f"cannot read {path}: {error.strerror}") from None


class Fixed:
    """Nothing, a token or a password that stays, and a certificate."""

    def __init__(self, authorization: str = "", certificate: Pem | None = None, key: Pem | None = None) -> None:
        self._authorization = authorization
        self._certificate = certificate
        self._key = key

    async def authorization(self) -> str:
        return self._authorization

    async def pair(self) -> Pair | None:
        if self._certificate is None or self._key is None:
            return None
        return Pair(self._certificate.read(), self._key.read())

    def renew(self) -> None:
        """Files are read at each new connection as it is."""


def bearer(token: str, field: str = "token") -> str:
    """White space around it is no part of it: files and YAML end in a new line."""
    token = token.strip()
    if not token:
        raise InputError(field, "is empty")
    if not TOKEN.fullmatch(token):
        odd = next(number for number, letter in enumerate(token, 1) if not TOKEN.fullmatch(letter))
        raise InputError(field, f"is no token: character {odd} of {len(token)} is no letter, digit or sign of ASCII")
    return f"Bearer {token}"


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class TokenFile:
    """A token in a file that is replaced from time to time, such as a service account's."""

    def __init__(self, path: Path, field: str) -> None:
        self._path = path
        self._field = field
        self._value = ""
        self._until = 0.0

    async def authorization(self) -> str:
        if not self._value or monotonic() >= self._until:
            text = read(self._path, self._field).decode("utf-8", "replace")
            self._value = bearer(text, f"{self._field}: {self._path}")
            self._until = monotonic() + TOKEN_FILE_S
        return self._value

    async def pair(self) -> Pair | None:
        return None

    def renew(self) -> None:
        self._value = ""


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What a plugin gives: a token, a certificate or both, and until when."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: Answer


class Plugin:
    """A program that knows who we are; asked once, and again when what it said expires or is refused.

    It runs once at a time, for all who wait. One that fails, or whose answers are refused, is asked again after 1, 2, 4
    ... 60 s; until then its failure holds for everybody.
    """

    def __init__(
        self,
        command: list[str],
        env: Mapping[str, str],
        api_version: str,
        field: str,
        *,
        hint: str = "",
        cluster: Mapping[str, Any] | None = None,
    ) -> None:
        self._command = command
        self._env = dict(env)
        self._api_version = api_version
        self._field = field
        self._hint = hint
        self._cluster = cluster
        self._answer: Answer | None = None
        self._answered_at = self._use_until = 0.0
        self._asking: asyncio.Task[Answer] | None = None
        self._backoff = Backoff(1.0, 60.0)
        self._again_at = 0.0
        self._problem = ""
        """Why the last run was of no use."""

    async def authorization(self) -> str:
        token = (await self._known()).token
        return bearer(token, self._field) if token else ""

    async def pair(self) -> Pair | None:
        answer = await self._known()
        if not answer.client_certificate_data:
            return None
        return Pair(answer.client_certificate_data.encode(), answer.client_key_data.encode())

    def renew(self) -> None:
        """Unless what it says is refused again and again: then it is left alone for a while."""
        now = monotonic()
        if now < self._again_at:
            return
        if now - self._answered_at > STEADY_S:
            self._backoff.reset()
        self._answer = None
        self._again_at = now + self._backoff.next_s()

    async def _known(self) -> Answer:
        if self._answer is not None and time() < self._use_until:
            return self._answer
        if self._asking is None:
            if self._problem and monotonic() < self._again_at:
                raise self._wrong(self._problem)
            self._asking = asyncio.get_running_loop().create_task(self._ask_once())
        try:
            return await asyncio.shield(self._asking)
        except InputError as error:
            raise self._wrong(error.problem) from None  # one of its own for each who waits

    async def _ask_once(self) -> Answer:
        """For all who wait, also where one of them does so no longer."""
        try:
            answer = self._answer = await self._ask()
        except InputError as error:
            self._problem = error.problem
            self._again_at = monotonic() + self._backoff.next_s()
            raise
        finally:
            self._asking = None
        self._problem, self._answered_at = "", monotonic()
        left_s = _left_s(answer)
        self._use_until = time() + left_s - min(EARLY_S, left_s / 2)
        return answer

    async def _ask(self) -> Answer:
        spec: dict[str, Any] = {"interactive": False}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        asked = {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": spec}
        env = {**os.environ, **self._env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode()}
        return self._read(await self._run(env))

    async def _run(self, env: Mapping[str, str]) -> bytes:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            run = await asyncio.create_subprocess_exec(
                *self._command, stdin=nothing, stdout=pipe, stderr=pipe, env=env, start_new_session=True
            )
        except OSError as error:
            raise self._failed(f"cannot be started: {error.strerror}. {self._hint}".rstrip(". ")) from None
        try:
            async with asyncio.timeout(PLUGIN_PATIENCE_S):
                out, err = await asyncio.gather(_said(run, run.stdout), _said(run, run.stderr))
                await run.wait()
        except BaseException as error:
            await _end(run)
            if isinstance(error, TimeoutError):
                raise self._failed(f"did not answer in {PLUGIN_PATIENCE_S:g} s") from None
            raise
        if max(len(out), len(err)) > MOST_SAID:
            raise self._failed(f"printed more than {MOST_SAID >> 20} MiB")
        if run.returncode:
            raise self._failed(f"ended with {run.returncode}: {err.decode('utf-8', 'replace').strip()[-500:]}")
        return out

    def _read(self, out: bytes) -> Answer:
        try:
            told = msgspec.json.decode(out, type=ExecCredential)
        except msgspec.MsgspecError as error:
            raise self._failed(f"answered no ExecCredential: {error}") from None
        if told.api_version != self._api_version:
            raise self._failed(f"answered in {told.api_version!r} where {self._api_version!r} was asked for")
        answer = told.status
        if not answer.token and not (answer.client_certificate_data and answer.client_key_data):
            raise self._failed("gave neither a token nor a certificate with its key")
        if _left_s(answer) <= 0.0:
            raise self._failed(f"gave credentials that have expired, at {answer.expiration_timestamp}")
        if answer.token:
            self._check(answer.token)
        return answer

    def _check(self, token: str) -> None:
        try:
            bearer(token)
        except InputError as error:
            raise self._failed(f"gave a token that {error.problem}") from None

    def _failed(self, problem: str) -> InputError:
        return self._wrong(f"{self._command[0]} {problem}")

    def _wrong(self, problem: str) -> InputError:
        return InputError(self._field, problem)


async def _said(run: asyncio.subprocess.Process, stream: asyncio.StreamReader | None) -> bytes:
    """All that it says; one that says too much is ended."""
    assert stream is not None
    parts = bytearray()
    while part := await stream.read(65_536):
        if len(parts) <= MOST_SAID:
            parts += part
        else:
            _kill(run)
    return bytes(parts)


async def _end(run: asyncio.subprocess.Process) -> None:
    """With whatever it has started, which would keep the pipes open; what is in them is thrown away."""
    _kill(run)
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await run.communicate()
            await run.wait()


def _kill(run: asyncio.subprocess.Process) -> None:
    """While its pipes are open: when nobody is left in its group, the number may be that of somebody else's."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(run.pid, signal.SIGKILL)


def _left_s(answer: Answer) -> float:
    until = answer.expiration_timestamp
    return until.replace(tzinfo=until.tzinfo or UTC).timestamp() - time() if until is not None else FOREVER_S
