"""Image references: as kube-scheduler compares them, and as container runtimes do.

kube-scheduler scores a node that reports the very name a pod asks for. A runtime pulls nothing
where it holds the image under any name: containerd reports `docker.io/library/python:3.12` and runs
`python:3.12` from it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from kfp_placement_engine.model.cluster import Node


def normalised(image: str) -> str:
    """The reference with `:latest` added where it has neither tag nor digest.

    Only a pod's reference is changed before it is looked up among the names a node reports
    (`imagelocality/image_locality.go`, normalizedImageName).
    """
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"


@lru_cache(maxsize=2**14)
def canonical(image: str) -> str:
    """The reference in full: `python` is `docker.io/library/python:latest`.

    Beside a digest a tag says nothing. The first part is a registry if it has a dot or a port, is
    `localhost`, or has a capital letter (`distribution/reference/normalize.go`, splitDockerDomain).
    """
    name, at, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    has_mark = "." in first or ":" in first or first != first.lower()
    if not slash or not (has_mark or first == "localhost"):
        first, rest = "docker.io", name
    if first in ("docker.io", "index.docker.io"):
        first, rest = "docker.io", rest if "/" in rest else f"library/{rest}"
    if at:
        head, colon, tag = rest.rpartition(":")
        rest = head if colon and "/" not in tag else rest
        return f"{first}/{rest}@{digest}"
    return normalised(f"{first}/{rest}")


def held_sizes(nodes: Sequence[Node], images: Iterable[str]) -> dict[str, list[int | None]]:
    """Who holds which image, under any name.

    Args:
        nodes: the nodes.
        images: canonical references.

    Returns:
        For each image what every node says that it takes, in bytes; None where it is missing.
    """
    names: dict[str, list[str]] = {image: [] for image in images}
    for name in sorted({name for node in nodes for name in node.images}):
        if canonical(name) in names:
            names[canonical(name)].append(name)
    return {image: _sizes_on(nodes, known) for image, known in names.items()}


def _sizes_on(nodes: Sequence[Node], names: Sequence[str]) -> list[int | None]:
    """What each node says of the first of the names that it knows."""
    sizes: list[int | None] = [None] * len(nodes)
    for name in reversed(names):
        sizes = [node.images.get(name, size) for node, size in zip(nodes, sizes, strict=True)]
    return sizes
