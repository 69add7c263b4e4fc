"""Changes of a run or its cluster that people can ask about, to see the plan after them.

Each change has a form as text, the one in which people write it; `readers.change_text` reads it.
Nodes are named as people name them: a node, the group of all nodes called `worker-1`, `worker-2`
and so on by `worker`, or a pattern with `*`.
"""

from dataclasses import dataclass
from typing import Literal

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany")
"""Access modes of volume claims."""

SHARED = "ReadWriteMany"
"""The access mode under which steps on several nodes write to one volume."""

OFF = "off"
"""Word for no limit, in place of a limit."""

Kind = Literal["node", "step", "loop", "volume"]
"""Kinds of things whose properties can be changed; a volume is a volume claim."""


@dataclass(frozen=True)
class AddNodes:
    """Change: additional nodes like an existing one, but empty: without pods and images.

    Attributes:
        like: name of the node, or of a group of equal ones.
        count: number of nodes, 1 or more.
    """

    like: str
    count: int

    @property
    def text(self) -> str:
        """Text of the change as people write it: `+2 of worker`."""
        return f"+{self.count} of {self.like}"


@dataclass(frozen=True)
class RemoveNodes:
    """Fewer nodes; of several that are named the last ones go.

    Attributes:
        nodes: name of the nodes of which some go.
        count: number of nodes, 1 or more.
    """

    nodes: str
    count: int

    @property
    def text(self) -> str:
        """Text of the change as people write it: `-1 of worker`."""
        return f"-{self.count} of {self.nodes}"


@dataclass(frozen=True)
class HoldImage:
    """Change: every node holds the image before the run starts.

    Attributes:
        image: reference of the image, by any of its names.
    """

    image: str

    @property
    def text(self) -> str:
        """Text of the change as people write it: `image python:3.12 everywhere`."""
        return f"image {self.image} everywhere"


@dataclass(frozen=True)
class SetProperties:
    """Change: other properties of nodes, steps, loops or volumes; the rest stays.

    Attributes:
        kinds: possible meanings of the name; the first with anything of that name counts.
        name: name of the thing that changes.
        values: name of each property, and its value as people write it.
    """

    kinds: tuple[Kind, ...]
    name: str
    values: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Text of the change as people write it: `step train duration=10m`.

        Nodes need no word before them: `gpu-node cpu=32 speed=2`.
        """
        kind = [] if self.kinds[0] == "node" else [self.kinds[0]]
        return " ".join([*kind, self.name, *map("=".join, self.values)])


Change = AddNodes | RemoveNodes | HoldImage | SetProperties
"""A change of any kind."""
