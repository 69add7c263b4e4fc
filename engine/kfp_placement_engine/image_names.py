"""Image references as kube-scheduler compares them, and what holding an image is worth."""

from collections.abc import Iterable

from kfp_placement_engine.cluster import Node


def normalised(image: str) -> str:
    """The reference with `:latest` added where it has neither tag nor digest.

    Only a pod's reference is changed before it is looked up among the names a node reports
    (`imagelocality/image_locality.go`, normalizedImageName).
    """
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"


def scaled_sizes(nodes: Iterable[Node]) -> dict[str, int]:
    """What a node that holds the image gets for it: its size times the share of nodes that hold it.

    The size is the one that the first node with that name reports; all nodes count, feasible or not
    (`backend/cache/cache.go`, addNodeImageStates; scaledImageScore).
    """
    sizes: dict[str, int] = {}
    holders: dict[str, int] = {}
    total = 0
    for node in nodes:
        total += 1
        for name, size_bytes in node.images.items():
            sizes.setdefault(name, size_bytes)
            holders[name] = holders.get(name, 0) + 1
    return {
        name: int(float(size_bytes) * (float(holders[name]) / float(total)))
        for name, size_bytes in sizes.items()
    }
