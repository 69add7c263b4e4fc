"""Constraints of pods on the nodes where they may run, and tolerated taints, as in Kubernetes."""

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override

Labels = Mapping[str, str]
"""Labels of an object, or those that it wants of another one."""


@dataclass(frozen=True)
class Toleration:
    """A pod's toleration, as in Kubernetes; an empty key with Exists matches every taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True)
class Requirement:
    """One match expression on node labels (or on `metadata.name`, when `is_field`).

    `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    is_field: bool = False

    @override
    def __str__(self) -> str:
        """Return the expression in one line: `pool In a, b`."""
        return f"{self.key} {self.operator} {', '.join(self.values)}".rstrip()


@dataclass(frozen=True)
class PodSelector:
    """Selector of pods beside which a pod may not be on a node (required anti-affinity).

    Attributes:
        requirements: requirements on the labels of these pods, which must all hold.
        is_own_run: whether only pods of the same run are meant.
    """

    requirements: tuple[Requirement, ...] = ()
    is_own_run: bool = False


@dataclass(frozen=True)
class NodeSelectorTerm:
    """Requirements that must all hold; a term without requirements matches nothing."""

    requirements: tuple[Requirement, ...] = ()


def node_term(name: str) -> NodeSelectorTerm:
    """Return the term that only the node of this name fulfils."""
    return NodeSelectorTerm((Requirement("metadata.name", "In", (name,), is_field=True),))


@dataclass(frozen=True)
class PreferredTerm:
    """A preferred node-affinity term and its weight (1 to 100)."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True)
class NodeAffinity:
    """Required terms (any of them must match; `None`: no requirement) and preferred terms."""

    required: tuple[NodeSelectorTerm, ...] | None = None
    preferred: tuple[PreferredTerm, ...] = ()
