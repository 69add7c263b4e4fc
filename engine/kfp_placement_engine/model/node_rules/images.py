"""Images: how their references are compared, who holds them, and how large they are.

kube-scheduler scores a node that reports the very name a pod asks for. A runtime pulls nothing
where it holds the image under any name: containerd reports `docker.io/library/python:3.12` and runs
`python:3.12` from it.

A size is what a node has to download: compressed, as registries state it and as containerd reports
it in the node's status (`internal/cri/store/image`, "image compressed resource size"; CRI-O reports
what the image takes unpacked, two to three times as much). It is what nodes report, else what
people say, else what is usual, else 400Mi.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.run_graph import Step

_MIB = 2**20

UNKNOWN_IMAGE_BYTES = 400 * _MIB
"""Size of an image of which nothing is known: about that of `python:3.12`."""

_PYTHON = "docker.io/library/python"
_CUDA = "docker.io/nvidia/cuda"
_PYTORCH = "docker.io/pytorch/pytorch"
_TENSORFLOW = "docker.io/tensorflow/tensorflow"

_USUAL_MIB: tuple[tuple[str, str, int], ...] = (
    # Of the official images: docker-library/repo-info, linux/amd64, August 2026.
    (_PYTHON, "alpine", 18),
    (_PYTHON, "slim", 41),
    (_PYTHON, "", 390),
    ("docker.io/library/debian", "slim", 28),
    ("docker.io/library/debian", "", 47),
    ("docker.io/library/ubuntu", "", 29),
    ("docker.io/library/alpine", "", 4),
    ("docker.io/library/busybox", "", 2),
    # Of these, typical of the registries' listings in 2025: releases differ by up to a half.
    ("registry.access.redhat.com/ubi9/python-311", "", 330),
    (_PYTORCH, "devel", 6500),
    (_PYTORCH, "", 3200),
    (_TENSORFLOW, "gpu", 3400),
    (_TENSORFLOW, "", 600),
    (_CUDA, "base", 100),
    (_CUDA, "devel", 4000),
    (_CUDA, "", 1300),
)
"""Repository, part of the tag, MiB; the first row that fits counts."""


class SizeSource(Enum):
    """Sources of an image's size; the first that is known counts."""

    NODE = "a node reports it"
    STEP = "a step states it"
    LISTED = "the cluster's source lists the image"
    DEFAULT = "the cluster's source or its policy sets it for all others"
    USUAL = "a common base image"
    UNKNOWN = "nothing is known of it"


@dataclass(frozen=True)
class ImageSize:
    """The size of one image.

    Attributes:
        size_bytes: bytes that a node without the image has to pull.
        source: origin of the size.
    """

    size_bytes: int
    source: SizeSource


def usual_size(image: str) -> int | None:
    """Return the usual size in bytes of a common base image, rounded, or None for any other.

    Args:
        image: a reference; one with a digest and no tag may be any variant, and is not known.
    """
    name, at, _ = image.partition("@")
    if at and ":" not in name.rpartition("/")[2]:
        return None
    repository, _, tag = canonical(name).rpartition(":")
    for common, part, mebibytes in _USUAL_MIB:
        if repository == common and part in tag:
            return mebibytes * _MIB
    return None


def image_sizes(
    cluster: Cluster, users: Iterable[Iterable[Step]], default_bytes: int | None
) -> dict[str, ImageSize]:
    """Return the size of each image of the steps, by canonical reference.

    Of several sizes the first node's counts, and the largest that the steps of a namespace state:
    an image has one size, whichever of its users knows it. If namespaces disagree, what they state
    does not count, since none should be able to spoil the plans of another.

    Args:
        cluster: cluster whose nodes report sizes, and whose source may list some.
        users: steps that use the images, by namespace.
        default_bytes: size of an image that nobody knows; None = its usual size, else 400Mi.
    """
    # As a step spells them: the usual size of an image may depend on its tag.
    names: dict[str, str] = {}
    votes: dict[str, set[int | None]] = {}
    for steps in users:
        used: set[str] = set()
        stated: dict[str, int] = {}
        for step in steps:
            if step.image:
                image = canonical(step.image)
                used.add(image)
                names.setdefault(image, step.image)
                if step.image_bytes is not None:
                    stated[image] = max(step.image_bytes, stated.get(image, 0))
        for image in used:
            votes.setdefault(image, set()).add(stated.get(image))
    agreed = {image: next(iter(each)) for image, each in votes.items() if len(each) == 1}
    listed = {canonical(name): size for name, size in cluster.image_bytes.items()}
    sizes: dict[str, ImageSize] = {}
    for image, held in held_sizes(cluster.nodes, names).items():
        candidates = (
            (next((size for size in held if size is not None), None), SizeSource.NODE),
            (agreed.get(image), SizeSource.STEP),
            (listed.get(image), SizeSource.LISTED),
            (default_bytes, SizeSource.DEFAULT),
            (usual_size(names[image]), SizeSource.USUAL),
            (UNKNOWN_IMAGE_BYTES, SizeSource.UNKNOWN),
        )
        sizes[image] = next(ImageSize(size, why) for size, why in candidates if size is not None)
    return sizes


def normalised(image: str) -> str:
    """Return the reference with `:latest` added where it has neither tag nor digest.

    Only a pod's reference is changed before it is looked up among the names a node reports
    (`imagelocality/image_locality.go`, normalizedImageName).
    """
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"


@lru_cache(maxsize=2**14)
def canonical(image: str) -> str:
    """Return the reference in full: `python` is `docker.io/library/python:latest`.

    Beside a digest a tag says nothing. The first part is a registry if it has a dot or a port, is
    `localhost`, or has a capital letter (`distribution/reference/normalize.go`, splitDockerDomain).
    """
    name, at, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    has_mark = "." in first or ":" in first or first != first.lower()
    if not slash or not (has_mark or first == "localhost"):
        first, rest = "docker.io", name
    if first in ("docker.io", "index.docker.io"):
        first = "docker.io"
        rest = rest if "/" in rest else f"library/{rest}"
    if at:
        head, colon, tag = rest.rpartition(":")
        rest = head if colon and "/" not in tag else rest
        return f"{first}/{rest}@{digest}"
    return normalised(f"{first}/{rest}")


def held_sizes(nodes: Sequence[Node], images: Iterable[str]) -> dict[str, list[int | None]]:
    """Return the size of each image on every node, under any name.

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
    return {image: _sizes_on(nodes, own_names) for image, own_names in names.items()}


def _sizes_on(nodes: Sequence[Node], names: Sequence[str]) -> list[int | None]:
    """Return the size that each node reports for the first of the names that it knows."""
    sizes: list[int | None] = [None] * len(nodes)
    for name in reversed(names):
        sizes = [node.images.get(name, size) for node, size in zip(nodes, sizes, strict=True)]
    return sizes
