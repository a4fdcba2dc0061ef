"""Kubeconfig files: where the API server is and who asks, in the form that every Kubernetes tool reads.

Owns the form only. Paths of certificates in it are absolute, so a file can be used from anywhere.
"""

from pathlib import Path
from typing import Final

from tests.beds.kubernetes.client import Access

FORM: Final = """apiVersion: v1
kind: Config
current-context: test-bed
clusters:
- name: test-bed
  cluster:
    server: https://{host}:{port}
    certificate-authority: {authority}
contexts:
- name: test-bed
  context:
    cluster: test-bed
    user: user
users:
- name: user
  user:
{proof}
"""


def write_kubeconfig(path: Path, access: Access) -> Path:
    """Write the file, readable by its owner only, and return its path."""
    text = FORM.format(
        host=access.host, port=access.port, authority=access.authority.absolute(), proof="\n".join(_proof(access))
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.part")
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.rename(path)
    return path


def _proof(access: Access) -> list[str]:
    if access.certificate is not None:
        certificate, key = (each.absolute() for each in access.certificate)
        return [f"    client-certificate: {certificate}", f"    client-key: {key}"]
    return [f"    token: {access.token}"] if access.token is not None else ["    {}"]
