"""Example clusters, for a first plan without an own cluster."""

from dataclasses import replace
from typing import TYPE_CHECKING

import kfp_placement_engine.model.cluster as model
from kfp_placement._reading import engine_errors
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES, load_documents

if TYPE_CHECKING:
    from kfp_placement.clusters.description import Cluster

EXAMPLES = {
    "equal": "three equal workers of 4 CPU",
    "uneven": "one fast node of 8 CPU, two of 16 CPU half as fast",
    "edge": "one cloud node and two small nodes at the edge",
}
"""Name of each example cluster -> description in a few words."""

DEFAULT = "equal"
"""Example cluster that is planned on if no cluster is given."""

PREFIX = "example:"
"""Prefix of the name of an example cluster: `example:equal`."""


def example_cluster(name: str) -> "Cluster":
    """Return an example cluster: `equal`, `uneven` or `edge`; all have scheduling gates.

    Args:
        name: `equal`: three equal workers of 4 CPU; `uneven`: one fast node of 8 CPU and two of 16
            CPU that are half as fast; `edge`: the taxi sample's, one node in the cloud and two
            small ones at the edge, with round trips to three locations.

    Raises:
        RunError: there is no example of that name; the message names all.
    """
    with engine_errors():
        return read_example(name)


def read_example(name: str) -> "Cluster":
    """Return an example cluster, as `example_cluster` does, but raise the engine's errors."""
    # A list, because what people give may not be hashable.
    if name not in list(EXAMPLES):
        raise InputNotFoundError(
            f"there is no example cluster {name!r:.60}; there are {', '.join(EXAMPLES)}"
        )
    from importlib import resources

    from kfp_placement.clusters.description import cluster_from

    file = resources.files(__package__).joinpath(f"{name}.yaml")
    (document,) = load_documents(file.read_bytes(), name=name, max_bytes=CLUSTER_MAX_BYTES)
    return cluster_from(document, f"example cluster {name!r}: {EXAMPLES[name]}")


def default_cluster() -> model.Cluster:
    """Return the example cluster that is used if no cluster is given; its first notice says so."""
    notice = Notice(
        "example-cluster",
        f"no cluster was given, so this plan is for the example cluster {DEFAULT!r}"
        f" ({EXAMPLES[DEFAULT]}), as with scheduling gates, and image pulls are assumed; name your"
        " own cluster (cluster=..., --cluster) to plan on it",
    )
    noun = read_example(DEFAULT).noun
    return replace(noun, notices=(notice, *noun.notices))
