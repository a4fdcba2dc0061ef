"""Where the API server is and who we are to it: kubeconfig files, or the service account of the pod we run in.

Owns the reading of these files and every word about what is wrong in them. Connects to nothing.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from wattloom.errors import InputError, MissingExtra
from wattloom.files import read_bytes
from wattloom.kubernetes.client.credentials import MOST_BYTES, Credentials, Fixed, Pem, Plugin, TokenFile, basic, bearer
from wattloom.kubernetes.client.target import Target

try:
    import yaml
except ModuleNotFoundError as missing:
    raise MissingExtra("Kubernetes", "kubernetes") from missing

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NO_KUBECONFIG: Final = "is no kubeconfig: no clusters, users or contexts are in it"
PLUGIN_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
Named = TypeVar("Named", bound="_Named")


class _Named(msgspec.Struct, rename="kebab"):
    name: str
    file: Path = Path()
    place: str = ""
    """Which entry of which file this is, filled in while reading: `FILE: clusters[0].cluster`."""


class ClusterPart(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class EnvPart(msgspec.Struct):
    name: str
    value: str


class ExecPart(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[EnvPart] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class UserPart(msgspec.Struct, rename={"token_file": "tokenFile", "impersonate": "as"}):
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec: ExecPart | None = None
    impersonate: str = ""
    client_certificate: str = msgspec.field(default="", name="client-certificate")
    client_certificate_data: str = msgspec.field(default="", name="client-certificate-data")
    client_key: str = msgspec.field(default="", name="client-key")
    client_key_data: str = msgspec.field(default="", name="client-key-data")
    auth_provider: Any = msgspec.field(default=None, name="auth-provider")


class ContextPart(msgspec.Struct):
    cluster: str
    user: str = ""
    namespace: str = ""


class Cluster(_Named):
    cluster: ClusterPart = msgspec.field(default_factory=ClusterPart)


class User(_Named):
    user: UserPart = msgspec.field(default_factory=UserPart)


class Context(_Named):
    context: ContextPart | None = None


class File(msgspec.Struct, rename="kebab"):
    """One kubeconfig file; several are laid over each other, the first to name something wins."""

    current_context: str | None = None
    clusters: list[Cluster] | None = None
    users: list[User] | None = None
    contexts: list[Context] | None = None


def target_of(
    kubeconfig: Path | None = None,
    context: str = "",
    *,
    env: Mapping[str, str] = os.environ,
    account: Path = ACCOUNT,
) -> Target:
    """The API server meant: the file given, $KUBECONFIG, ~/.kube/config, or the service account of this pod."""
    paths = _paths(kubeconfig, env)
    if any(path.exists() for path in paths) or kubeconfig is not None:
        return from_files(paths, context)
    if "KUBERNETES_SERVICE_HOST" in env and not context:
        return in_cluster(env, account)
    looked = ", ".join(map(str, paths))
    raise InputError("kubeconfig", f"none of {looked} exists, and this is no pod: give --kubeconfig FILE")


def _paths(kubeconfig: Path | None, env: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        return [kubeconfig]
    named = [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path(env.get("HOME") or Path.home()) / ".kube" / "config"]


def in_cluster(env: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> Target:
    """The API server of the cluster this process is a pod of."""
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise InputError("KUBERNETES_SERVICE_HOST", "is not set: this is no pod of a cluster")
    if not (account / "token").exists():
        raise InputError(str(account / "token"), "is not there: the pod has automountServiceAccountToken: false")
    space = account / "namespace"
    return Target(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        TokenFile(account / "token", "service account token"),
        field="KUBERNETES_SERVICE_HOST",
        ca=Pem("service account CA", path=account / "ca.crt"),
        namespace=space.read_text().strip() if space.exists() else "default",
    )


def from_files(paths: list[Path], context: str = "") -> Target:
    """The API server of one context, by kubeconfig files laid over each other."""
    files = [_file(path) for path in paths if path.exists() or len(paths) == 1]
    where = ", ".join(map(str, paths))
    if not any(file.clusters or file.users or file.contexts for file in files):
        raise InputError(where, NO_KUBECONFIG)
    chosen = context or next((file.current_context for file in files if file.current_context), "")
    if not chosen:
        raise InputError(f"{where}: current-context", f"is not set: give --context, one of {_names(files)}")
    entry = _named(chosen, [one for file in files for one in file.contexts or ()], f"{where}: contexts")
    part = entry.context
    if part is None:
        raise InputError(entry.place, "is missing")
    cluster = _named(part.cluster, [one for file in files for one in file.clusters or ()], f"{entry.place}.cluster")
    users = [one for file in files for one in file.users or ()]
    user = _named(part.user, users, f"{entry.place}.user") if part.user else User("", cluster.file, entry.place)
    return _target(cluster, user, part.namespace)


def _names(files: list[File]) -> str:
    return ", ".join(one.name for file in files for one in file.contexts or ()) or "none at all"


def _named(name: str, entries: list[Named], field: str) -> Named:
    for entry in entries:
        if entry.name == name:
            return entry
    known = ", ".join(sorted({entry.name for entry in entries})) or "none at all"
    raise InputError(field, f"no {name!r}: there is {known}")


def _file(path: Path) -> File:
    try:
        read = yaml.safe_load(read_bytes(path, MOST_BYTES))
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # no date, no bytes: YAML's own words for them
        raise InputError(str(path), f"is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(read, dict | None):
        raise InputError(str(path), NO_KUBECONFIG)
    try:
        file = msgspec.convert(read if read is not None else {}, type=File)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise InputError(f"{path}{': ' + place.strip('.`') if place else ''}", problem) from None
    for kind, entries in (("cluster", file.clusters), ("user", file.users), ("context", file.contexts)):
        for number, entry in enumerate(entries or ()):
            entry.file, entry.place = path, f"{path}: {kind}s[{number}].{kind}"
    return file


def _target(cluster: Cluster, user: User, namespace: str) -> Target:
    part, place = cluster.cluster, cluster.place
    if part.proxy_url:
        raise InputError(f"{place}.proxy-url", "proxies are not supported: give an address that is reached directly")
    if not part.server:
        raise InputError(f"{place}.server", "is missing: https://HOST:PORT")
    ca = _pem(part.certificate_authority_data, part.certificate_authority, cluster, "certificate-authority")
    return Target(
        part.server,
        _credentials(user, cluster),
        field=f"{place}.server",
        ca=ca,
        skip_verify=part.insecure_skip_tls_verify,
        server_name=part.tls_server_name,
        namespace=namespace or "default",
    )


def _credentials(user: User, cluster: Cluster) -> Credentials:
    part, place = user.user, user.place
    if part.auth_provider is not None:
        raise InputError(f"{place}.auth-provider", "is no longer supported by Kubernetes: use an exec plugin")
    if part.impersonate:
        raise InputError(f"{place}.as", "acting as somebody else is not supported: use credentials of that account")
    if part.exec is not None:
        return _plugin(part.exec, user, cluster)
    if part.token_file:
        return TokenFile(user.file.parent / part.token_file, f"{place}.tokenFile")
    certificate = _pem(part.client_certificate_data, part.client_certificate, user, "client-certificate")
    key = _pem(part.client_key_data, part.client_key, user, "client-key")
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise InputError(f"{place}.{missing}", "is missing: a certificate is of use only with its key")
    return Fixed(_authorization(part, place), certificate, key)


def _authorization(part: UserPart, place: str) -> str:
    if part.token:
        return bearer(part.token, f"{place}.token")
    return basic(part.username, part.password) if part.username else ""


def _pem(data: str, path: str, entry: _Named, field: str) -> Pem | None:
    if data:
        name = f"{entry.place}.{field}-data"
        try:
            return Pem(name, data=base64.b64decode(data, validate=True))
        except binascii.Error:
            raise InputError(name, "is no base64") from None
    return Pem(f"{entry.place}.{field}", path=entry.file.parent / path) if path else None


def _plugin(part: ExecPart, user: User, cluster: Cluster) -> Plugin:
    place = f"{user.place}.exec"
    if part.api_version not in PLUGIN_VERSIONS:
        raise InputError(f"{place}.apiVersion", f"{part.api_version!r} is none of {', '.join(PLUGIN_VERSIONS)}")
    if part.interactive_mode == "Always":
        raise InputError(f"{place}.interactiveMode", "a program that asks at a terminal cannot be used here")
    # As kubectl does: a path with a slash is meant from the file's folder, a bare name from PATH.
    command = str(user.file.parent / part.command) if "/" in part.command else part.command
    env = {one.name: one.value for one in part.env or ()}
    about = _about(cluster) if part.provide_cluster_info else None
    return Plugin(
        [command, *(part.args or ())], env, part.api_version, place, hint=part.install_hint.strip(), cluster=about
    )


def _about(cluster: Cluster) -> dict[str, Any]:
    """The cluster as a plugin is told of it."""
    part = cluster.cluster
    told: dict[str, Any] = {"server": part.server, "insecure-skip-tls-verify": part.insecure_skip_tls_verify}
    ca = _pem(part.certificate_authority_data, part.certificate_authority, cluster, "certificate-authority")
    if ca is not None:
        told["certificate-authority-data"] = base64.b64encode(ca.read()).decode()
    if part.tls_server_name:
        told["tls-server-name"] = part.tls_server_name
    return told
