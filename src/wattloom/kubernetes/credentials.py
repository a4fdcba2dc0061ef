"""Who we are to an API server: a token, a certificate, or a program that knows.

Owns how each kind of credentials is read, kept and read again. Knows no kubeconfig file and no request.
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, time
from typing import Any, Final, Protocol

import msgspec

from wattloom.errors import InputError
from wattloom.files import read_bytes

MOST_BYTES: Final = 16 << 20
"""Of a token or certificate: a path may be that of something else."""
TOKEN_FILE_S: Final = 60.0
"""A token file is read again after this long: the kubelet replaces it well before it expires."""
PLUGIN_PATIENCE_S: Final = 60.0
EARLY_S: Final = 10.0
"""A plugin's answer is not used in its last seconds."""


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


def bearer(token: str) -> str:
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
            token = read(self._path, self._field).decode("utf-8", "replace").strip()
            if not token:
                raise InputError(self._field, f"{self._path} is empty")
            self._value = bearer(token)
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
    """A program that knows who we are; asked once, and again when what it said expires or is refused."""

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
        self._asking = asyncio.Lock()

    async def authorization(self) -> str:
        token = (await self._known()).token
        return bearer(token) if token else ""

    async def pair(self) -> Pair | None:
        answer = await self._known()
        if not answer.client_certificate_data:
            return None
        return Pair(answer.client_certificate_data.encode(), answer.client_key_data.encode())

    def renew(self) -> None:
        self._answer = None

    async def _known(self) -> Answer:
        answer = self._answer
        if answer is not None and _lasts(answer):
            return answer
        async with self._asking:  # many requests may find it expired at once; one asks
            answer = self._answer
            if answer is None or not _lasts(answer):
                answer = self._answer = await self._ask()
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
            run = await asyncio.create_subprocess_exec(*self._command, stdin=nothing, stdout=pipe, stderr=pipe, env=env)
        except OSError as error:
            raise self._wrong(f"cannot be started: {error.strerror}. {self._hint}".rstrip(". ")) from None
        try:
            async with asyncio.timeout(PLUGIN_PATIENCE_S):
                out, err = await run.communicate()
        except BaseException as error:
            if run.returncode is None:
                run.kill()
                await run.wait()
            if isinstance(error, TimeoutError):
                raise self._wrong(f"did not answer in {PLUGIN_PATIENCE_S:g} s") from None
            raise
        if run.returncode:
            raise self._wrong(f"ended with {run.returncode}: {err.decode('utf-8', 'replace').strip()[-500:]}")
        return out

    def _read(self, out: bytes) -> Answer:
        try:
            told = msgspec.json.decode(out, type=ExecCredential)
        except msgspec.MsgspecError as error:
            raise self._wrong(f"answered no ExecCredential: {error}") from None
        if told.api_version != self._api_version:
            raise self._wrong(f"answered in {told.api_version!r} where {self._api_version!r} was asked for")
        answer = told.status
        if not answer.token and not (answer.client_certificate_data and answer.client_key_data):
            raise self._wrong("gave neither a token nor a certificate with its key")
        return answer

    def _wrong(self, problem: str) -> InputError:
        return InputError(self._field, f"{self._command[0]} {problem}")


def _lasts(answer: Answer) -> bool:
    until = answer.expiration_timestamp
    if until is None:
        return True
    return until.replace(tzinfo=until.tzinfo or UTC).timestamp() - EARLY_S > time()
