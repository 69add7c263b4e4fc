"""A recording of kube-scheduler: clusters, pods one after another, node and scores of each.

The form is that of the set `kube-scheduler-1.36.3`: `kubernetes` (version), `profile` (`default` if
not given), and `cases`
with `nodes` and `pods`; a pod has `node` (null: unschedulable) and `scores` (node -> plugin ->
weighted score, with `total`; empty when one node or none was feasible).
"""

import gzip
import io
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kube_scheduler.pod import Pod
from benchmarks.kube_scheduler.reading import read_pod
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES, load_documents, read_file
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?:[.+-].*)?", re.ASCII | re.DOTALL)
_STOCK_PROFILES = ("default", "stock", "")
"""Names of kube-scheduler's stock profile; what names none was recorded with it."""

_GZIP = b"\x1f\x8b"
_MAX_SCORE = 2**53


@dataclass(frozen=True)
class RecordedPod:
    """One decision of the real scheduler.

    Attributes:
        pod: the pod.
        node: name of its node; None = it has none.
        scores: node -> plugin -> weighted score; empty when one node or none was feasible.
        totals: node -> sum, as logged.
    """

    pod: Pod
    node: str | None
    scores: Mapping[str, Mapping[str, int]]
    totals: Mapping[str, int]


@dataclass(frozen=True)
class RecordedCase:
    """One cluster and the pods it was given, in order."""

    name: str
    nodes: tuple[Node, ...]
    pods: tuple[RecordedPod, ...]


@dataclass(frozen=True)
class Recording:
    """A whole recording; `version` is kube-scheduler's (major, minor), `kubernetes` as written."""

    kubernetes: str
    version: tuple[int, int]
    cases: tuple[RecordedCase, ...]


def read_recording(path: Path) -> Recording:
    """Read a recording, compressed by gzip or not.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: it is malformed; the message names the place.
    """
    name = str(path)
    data = _unpacked(read_file(path, max_bytes=CLUSTER_MAX_BYTES), name)
    documents = load_documents(data, name=name, max_bytes=CLUSTER_MAX_BYTES)
    raw = Fields.of(documents[0], Place(name))
    kubernetes = raw.text("kubernetes")
    match = _VERSION.fullmatch(kubernetes)
    if match is None:
        raise raw.where("kubernetes").error(f"{kubernetes!r:.60} is not a version such as v1.36.3")
    profile = raw.text("profile")
    if profile not in _STOCK_PROFILES:
        raise raw.where("profile").error(
            f"{profile!r:.60} cannot be compared with the model; "
            f"only recordings of the stock profile, {_STOCK_PROFILES[0]!r}, can"
        )
    if not raw.entries("cases"):
        raise raw.where("cases").error("is empty; nothing to compare")
    return Recording(
        kubernetes,
        (int(match.group(1)), int(match.group(2))),
        tuple(_case(case) for case in raw.each("cases")),
    )


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            # One byte more than is allowed: the reader then says so.
            return stream.read(CLUSTER_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: is not a complete gzip file: {error}") from error


def _case(raw: Fields) -> RecordedCase:
    nodes: dict[str, Node] = {}
    for entry in raw.each("nodes"):
        node, _ = read_node(entry.at(""))
        if node.name in nodes:
            raise entry.error(f"node {node.name!r:.80} appears twice")
        nodes[node.name] = node
    name = raw.text("case") or raw.place.spelled
    pods = tuple(_pod(entry, nodes) for entry in raw.each("pods"))
    return RecordedCase(name, tuple(nodes.values()), pods)


def _pod(raw: Fields, nodes: Mapping[str, Node]) -> RecordedPod:
    if "pod" not in raw or "node" not in raw:
        raise raw.error("needs pod and node (null where it was unschedulable)")
    node = None if raw.get("node") is None else raw.text("node")
    scores: dict[str, Mapping[str, int]] = {}
    totals: dict[str, int] = {}
    for name, row in raw.mapping("scores").items():
        numbers = _numbers(Fields.of(row, raw.place.then(".scores.{}", name)))
        totals[name] = numbers.pop("total", sum(numbers.values()))
        scores[name] = numbers
    for name in (*scores, *([] if node is None else [node])):
        if name not in nodes:
            raise raw.error(f"{name!r:.80} is not one of the case's nodes")
    if scores and node not in scores:
        raise raw.error(f"node {node!r:.80} has no scores, though others have")
    pod = read_pod(raw.fields("pod").at(""))
    if pod.node_name:
        raise raw.where("pod").error("is bound already; a recording holds pods before binding")
    return RecordedPod(pod, node, scores, totals)


def _numbers(row: Fields) -> dict[str, int]:
    numbers = {}
    for name, number in row.raw.items():
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) > _MAX_SCORE:
            raise row.place.then(".{}", name).error(f"{number!r:.40} is not a whole number")
        numbers[str(name)] = number
    return numbers
