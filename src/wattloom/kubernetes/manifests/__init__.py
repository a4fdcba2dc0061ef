"""What is applied to a cluster so that Wattloom can work in it, as YAML.

Owns the files beside it and the few things in them that differ from cluster to cluster. Applies nothing.
"""

import re
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from wattloom.errors import InputError

ORDER: Final = ("namespace", "crd", "rbac", "publishing", "deployment")
"""As they have to be applied. Others, like the extender's, are printed when asked for by name."""
EXTENDER: Final = ("extender-publishing", "extender")
PUBLISHING: Final = frozenset(("publishing", "extender-publishing"))
"""The right to write on nodes: only for those who publish watts."""
IMAGE: Final = "wattloom:VERSION"
"""As it stands in the files."""
KUBE_SCHEDULER_IMAGE: Final = "kube-scheduler:v1.37.1"
NAMESPACE: Final = "wattloom-system"
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
REFERENCE: Final = re.compile(r"[A-Za-z0-9][-\w.:/@]*", re.ASCII)
"""Of an image: what cannot be one would make other YAML of ours."""


def names() -> tuple[str, ...]:
    """All there are: those that belong together in order, then the others."""
    found = {file.name.removesuffix(".yaml") for file in files(__name__).iterdir() if file.name.endswith(".yaml")}
    return (*(name for name in ORDER if name in found), *sorted(found.difference(ORDER)))


def manifest(
    what: str = "all",
    *,
    image: str = "",
    kube_scheduler_image: str = KUBE_SCHEDULER_IMAGE,
    namespace: str = NAMESPACE,
    publish_watts: bool = True,
) -> str:
    """YAML for `kubectl apply -f -`. `all`: the scheduler with everything it needs. Without `image` it is one that has
    the version of this program."""
    wanted = {"all": ORDER, "extender": EXTENDER}.get(what, (what,))
    if any(each not in names() for each in wanted):
        raise InputError("what", f"there is no manifest {what!r}: it is all, {', '.join(names())}")
    if not publish_watts:
        wanted = tuple(each for each in wanted if each not in PUBLISHING)
    if not LABEL.fullmatch(namespace):
        raise InputError("namespace", f"must be small letters, digits and dashes, at most 63, not {namespace!r}")
    image = image or f"wattloom:{version('wattloom').replace('+', '-')}"
    images = {"image": (IMAGE, image), "kube-scheduler-image": (KUBE_SCHEDULER_IMAGE, kube_scheduler_image)}
    texts = [(files(__name__) / f"{each}.yaml").read_text().strip() for each in wanted]
    text = ("\n---\n".join(texts) + "\n").replace(NAMESPACE, namespace)
    if not publish_watts:
        text = text.replace("--log-format=json]", "--log-format=json, --no-publish-watts]")
        text = text.replace("- --log-format=json\n", "- --log-format=json\n            - --no-publish-watts\n")
    for field, (ours, given) in images.items():
        if not REFERENCE.fullmatch(given):
            raise InputError(field, f"must be as in {ours}, not {given!r}")
        text = text.replace(f"image: {ours}\n", f"image: {given}\n")
    return text
