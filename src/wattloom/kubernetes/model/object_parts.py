"""What objects of Kubernetes have in common: their names, owners and selectors, and old kinds of volumes.

Owns the shape of these parts. Only fields that somebody looks at are here; what is sent beside them is skipped.
"""

from typing import Final

import msgspec

Amounts = dict[str, str]
"""Quantities by resource."""


class Part(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A part of an object: unknown fields are skipped."""


class Owner(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()


# -- selectors -------------------------------------------------------------------------------------------------------


class Requirement(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()


class NodeSelectorTerm(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Present(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Something that is there; what it says does not matter."""


class InTree(Part, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Kinds of storage that once were part of Kubernetes and that its scheduler treats in ways of their own."""

    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    azure_file: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    iscsi: Present | None = None
    portworx_volume: Present | None = None
    rbd: Present | None = None
    vsphere_volume: Present | None = None

    def in_tree(self) -> str:
        """The field that is set; empty: none."""
        for name, written in IN_TREE:
            if getattr(self, name) is not None:
                return written
        return ""


IN_TREE: Final = tuple(zip(InTree.__struct_fields__, InTree.__struct_encode_fields__, strict=True))
