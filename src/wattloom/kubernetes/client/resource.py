"""One kind of object as the API server files it: its path, and the type its objects are read as.

Owns paths and queries. Knows no object and no request.
"""

import re
from typing import Final, Generic, TypeVar
from urllib.parse import quote, urlencode

T = TypeVar("T")
PLAIN: Final = re.compile("[A-Za-z0-9._-]+").fullmatch


class Resource(Generic[T]):
    """Such as `Resource("", "v1", "pods", Pod)` or `Resource("apps", "v1", "deployments", Deployment)`."""

    def __init__(self, group: str, version: str, plural: str, type: type[T], *, namespaced: bool = True) -> None:
        self.group: Final = group
        self.version: Final = version
        self.plural: Final = plural
        self.type: Final = type
        self.namespaced: Final = namespaced
        self._root = f"/apis/{group}/{version}" if group else f"/api/{version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Of one object, or of all of a namespace, or of all."""
        path = f"{self._root}/namespaces/{_part(namespace)}" if namespace and self.namespaced else self._root
        path = f"{path}/{self.plural}"
        if name:
            path = f"{path}/{_part(name)}"
        return f"{path}/{subresource}" if subresource else path

    def __repr__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _part(name: str) -> str:
    return name if PLAIN(name) else quote(name, safe="")


def query(**parts: str | int | bool | None) -> str:
    """`?a=b&c=d`, with what is empty left out."""
    given = {key: _text(value) for key, value in parts.items() if value not in (None, "", False)}
    return f"?{urlencode(given)}" if given else ""


def _text(value: str | int | bool | None) -> str:
    return "true" if value is True else str(value)
