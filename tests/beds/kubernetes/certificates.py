"""Certificates of a control plane: an authority and what it signs, by openssl.

Owns keys and their files. Knows user and group names as text, nothing of kubeconfig files or processes.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wattloom.errors import WattloomError

DAYS = "3650"
NEW_KEY = ("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out")
"""Elliptic keys: made in a millisecond, where RSA's take a tenth of a second."""


class Certificate(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a folder; what it issued before is found again."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            raise WattloomError("openssl is missing (Debian: apt-get install openssl)")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.own = Certificate(folder / "ca.crt", folder / "ca.key")
        if not self.own.certificate.exists():
            self._found()

    def client(self, user: str, groups: Sequence[str] = ()) -> Certificate:
        """A client's certificate: the API server takes its name for the user, its organisations for the groups."""
        return self._issue("client", [*(("O", group) for group in groups), ("CN", user)], "extendedKeyUsage=clientAuth")

    def server(self, name: str, addresses: Sequence[str]) -> Certificate:
        """A server's certificate. `addresses` as openssl writes them: IP:127.0.0.1, DNS:localhost."""
        return self._issue(
            "server", [("CN", name)], f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(addresses)}"
        )

    def signing_key(self, name: str) -> tuple[Path, Path]:
        """A private key and its public half, for service accounts' tokens."""
        private, public = self.folder / f"{name}.key", self.folder / f"{name}.pub"
        if not public.exists():
            _openssl(*NEW_KEY, str(private))
            _openssl("ec", "-in", str(private), "-pubout", "-out", str(public))
        return private, public

    def _found(self) -> None:
        _openssl(*NEW_KEY, str(self.own.key))
        words = ["req", "-x509", "-new", "-key", str(self.own.key), "-days", DAYS, "-subj", "/CN=wattloom-test-bed"]
        _openssl(*words, "-out", str(self.own.certificate))

    def _issue(self, kind: str, subject: Sequence[tuple[str, str]], extensions: str) -> Certificate:
        # Two names may look alike as a file's name: their hash does not.
        proof = hashlib.sha256(repr((kind, subject, extensions)).encode()).hexdigest()[:8]
        stem = f"{kind}-{re.sub(r'[^A-Za-z0-9.-]', '_', subject[-1][1])}-{proof}"
        paths = [self.folder / f"{stem}.{end}" for end in ("crt", "key", "csr", "ext")]
        certificate, key, request, extra = map(str, paths)
        if not paths[0].exists():
            extra_path = paths[3]
            extra_path.write_text(extensions + "\n")
            _openssl(*NEW_KEY, key)
            _openssl("req", "-new", "-utf8", "-key", key, "-subj", _subject(subject), "-out", request)
            signer = ["-CA", str(self.own.certificate), "-CAkey", str(self.own.key), "-CAcreateserial"]
            _openssl("x509", "-req", "-in", request, *signer, "-days", DAYS, "-extfile", extra, "-out", certificate)
        return Certificate(paths[0], paths[1])


def _subject(parts: Sequence[tuple[str, str]]) -> str:
    def escaped(text: str) -> str:
        return re.sub(r"([\\/+])", r"\\\1", text)

    return "".join(f"/{kind}={escaped(text)}" for kind, text in parts)


def _openssl(*words: str) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WattloomError(f"`openssl {' '.join(words)}` failed: {done.stderr.strip()}")
