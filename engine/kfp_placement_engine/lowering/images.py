"""The images of pods: their sizes, the nodes that hold them, and where they score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.pods import PodShape
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.images import ImageSize, canonical, held_sizes
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers


@dataclass(frozen=True)
class Images:
    """The images of a problem, each in one row, by whatever names the pods call it.

    Attributes:
        size_bytes: [I] size.
        present: [I, N] whether the node holds it.
        of_class: [K] image of the class, -1 = none.
        scored: [K, N] whether kube-scheduler scores the class's image on the node.
    """

    size_bytes: Floats
    present: Booleans
    of_class: Integers
    scored: Booleans

    @property
    def present_of_class(self) -> Booleans:
        """[K, N] Whether the node holds the image of the class; False for a class without one."""
        none = np.zeros((1, self.present.shape[1]), np.bool_)
        return np.concatenate([self.present, none])[self.of_class]


def image_table(
    cluster: Cluster, shapes: Sequence[PodShape], image_sizes: Mapping[str, ImageSize]
) -> Images:
    """Assign numbers to the images of pod shapes, and find the nodes that hold them."""
    held = held_sizes(cluster.nodes, {canonical(shape.image) for shape in shapes if shape.image})
    number = {name: index for index, name in enumerate(held)}
    present = np.zeros((len(held), len(cluster.nodes)), np.bool_)
    for index, node_sizes in enumerate(held.values()):
        present[index] = [size is not None for size in node_sizes]
    sizes = np.array([image_sizes[name].size_bytes for name in held], np.float64)
    of_class = np.full(len(shapes), -1, np.int64)
    scored = np.zeros((len(shapes), len(cluster.nodes)), np.bool_)
    # Many shapes differ in their requests only.
    rows: dict[str, Booleans] = {}
    for row, shape in enumerate(shapes):
        if shape.image:
            of_class[row] = image = number[canonical(shape.image)]
            if shape.image not in rows:
                rows[shape.image] = _scored(cluster, shape.image, present[image])
            scored[row] = rows[shape.image]
    return Images(sizes, present, of_class, scored)


def _scored(cluster: Cluster, name: str, present: Booleans) -> Booleans:
    """Return [N] whether the node, once it holds the image, reports it under the pod's name for it.

    A node that holds it only under other names does not. A node that has yet to pull it will do
    the same as those that hold it.
    """
    named = np.array([name in node.images for node in cluster.nodes], np.bool_)
    return named | (~present & bool(named.any() or not present.any()))
