"""A recording of kube-scheduler: clusters, pods one after the other, node and scores of each.

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
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.pod import Pod
from kfp_placement_engine.readers.fields import Fields, Place, as_list, as_mapping, as_text
from kfp_placement_engine.readers.kubernetes.nodes import read_node
from kfp_placement_engine.readers.kubernetes.pods import read_pod
from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES, load_documents, read_file

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
        node: where it went; None if nowhere.
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
        InputError: it has another form; the message names the place.
    """
    name = str(path)
    data = _unpacked(read_file(path, max_bytes=CLUSTER_MAX_BYTES), name)
    documents = load_documents(data, name=name, max_bytes=CLUSTER_MAX_BYTES)
    raw = as_mapping(documents[0], name)
    kubernetes = as_text(raw.get("kubernetes"), f"{name}: kubernetes")
    match = _VERSION.fullmatch(kubernetes)
    if match is None:
        raise InputError(f"{name}: kubernetes: {kubernetes!r:.60} is no version such as v1.36.3")
    profile = as_text(raw.get("profile"), f"{name}: profile")
    if profile not in _STOCK_PROFILES:
        raise InputError(
            f"{name}: profile: {profile!r:.60} cannot be replayed; "
            f"only recordings of the stock profile, {_STOCK_PROFILES[0]!r}, can"
        )
    cases = as_list(raw.get("cases"), f"{name}: cases")
    if not cases:
        raise InputError(f"{name}: cases: is empty; nothing to replay")
    return Recording(
        kubernetes,
        (int(match.group(1)), int(match.group(2))),
        tuple(_case(item, f"{name}: cases[{index}]") for index, item in enumerate(cases)),
    )


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            # One byte more than is allowed: the reader then says so.
            return stream.read(CLUSTER_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{name}: is no complete gzip file: {error}") from error


def _case(item: Any, place: str) -> RecordedCase:
    raw = as_mapping(item, place)
    nodes: dict[str, Node] = {}
    for index, entry in enumerate(as_list(raw.get("nodes"), f"{place}.nodes")):
        where = f"{place}.nodes[{index}]"
        node, _ = read_node(Fields.of(entry, Place(where)))
        if node.name in nodes:
            raise InputError(f"{where}: node {node.name!r:.80} stands twice")
        nodes[node.name] = node
    pods = as_list(raw.get("pods"), f"{place}.pods")
    return RecordedCase(
        as_text(raw.get("case"), f"{place}.case") or place,
        tuple(nodes.values()),
        tuple(_pod(entry, f"{place}.pods[{index}]", nodes) for index, entry in enumerate(pods)),
    )


def _pod(item: Any, place: str, nodes: Mapping[str, Node]) -> RecordedPod:
    raw = as_mapping(item, place)
    if "pod" not in raw or "node" not in raw:
        raise InputError(f"{place}: needs pod and node (null where it was unschedulable)")
    node = None if raw["node"] is None else as_text(raw["node"], f"{place}.node")
    scores: dict[str, Mapping[str, int]] = {}
    totals: dict[str, int] = {}
    for name, row in as_mapping(raw.get("scores"), f"{place}.scores").items():
        numbers = _numbers(row, f"{place}.scores.{name}")
        totals[name] = numbers.pop("total", sum(numbers.values()))
        scores[name] = numbers
    for name in (*scores, *([] if node is None else [node])):
        if name not in nodes:
            raise InputError(f"{place}: {name!r:.80} is none of the case's nodes")
    if scores and node not in scores:
        raise InputError(f"{place}: node {node!r:.80} has no scores, though others have")
    pod = read_pod(Fields.of(raw["pod"], Place(f"{place}.pod")))
    if pod.node_name:
        raise InputError(f"{place}.pod: is bound already; a recording holds pods before binding")
    return RecordedPod(pod, node, scores, totals)


def _numbers(value: Any, place: str) -> dict[str, int]:
    numbers = {}
    for name, number in as_mapping(value, place).items():
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) > _MAX_SCORE:
            raise InputError(f"{place}.{name}: {number!r:.40} is no whole number")
        numbers[str(name)] = number
    return numbers
