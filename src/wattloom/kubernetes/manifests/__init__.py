"""What is applied to a cluster so that Wattloom can work in it, as YAML.

Owns the files beside it and the few things in them that differ from cluster to cluster. Applies nothing.
"""

from importlib.resources import files
from typing import Final

from wattloom.errors import InputError

ORDER: Final = ("namespace", "crd", "rbac", "deployment")
"""As they have to be applied. Others, like the extender's, are printed when asked for by name."""
IMAGE: Final = "wattloom:latest"
NAMESPACE: Final = "wattloom-system"


def names() -> tuple[str, ...]:
    """All there are: those that belong together in order, then the others."""
    found = {file.name.removesuffix(".yaml") for file in files(__name__).iterdir() if file.name.endswith(".yaml")}
    return (*(name for name in ORDER if name in found), *sorted(found.difference(ORDER)))


def manifest(what: str = "all", *, image: str = IMAGE, namespace: str = NAMESPACE) -> str:
    """YAML for `kubectl apply -f -`. `all`: the scheduler with everything it needs."""
    wanted = ORDER if what == "all" else (what,)
    if any(each not in names() for each in wanted):
        raise InputError("what", f"there is no manifest {what!r}: it is all, {', '.join(names())}")
    texts = [(files(__name__) / f"{each}.yaml").read_text().strip() for each in wanted]
    text = "\n---\n".join(texts) + "\n"
    return text.replace(f"image: {IMAGE}", f"image: {image}").replace(NAMESPACE, namespace)
