"""Clusters as authors give them -> the engine's noun; the engine's errors -> ours."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kfp_placement.exceptions import RunError, UnknownStepError, UsageError
from kfp_placement_engine import exceptions as engine
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.readers import read_cluster
from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES, read_file

_LIVE = "live"


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn the engine's errors into ours, with the same message."""
    try:
        yield
    except engine.UnknownStepError as error:
        raise UnknownStepError(str(error)) from error
    except engine.EngineError as error:
        raise RunError(str(error)) from error


def cluster_of(cluster: object) -> Cluster:
    """Read a cluster.

    Args:
        cluster: a `Cluster`; the path of a Cluster file or of what `kubectl get nodes,pods,pvc,pv
            -A -o yaml` prints; the same as text, bytes or a mapping.

    Raises:
        UsageError: it is none of these.
        RunError: it cannot be read.
    """
    if isinstance(cluster, Cluster):
        return cluster
    if isinstance(cluster, str) and cluster == _LIVE and not Path(_LIVE).exists():
        raise UsageError(
            "cluster='live' is for the command line; write the cluster to a file with"
            " `kfp-placement cluster live --output cluster.yaml` and name that"
        )
    with engine_errors():
        if isinstance(cluster, os.PathLike) or (isinstance(cluster, str) and _is_path(cluster)):
            data = read_file(Path(cluster), max_bytes=CLUSTER_MAX_BYTES)
            return read_cluster(data, name=str(cluster))
        return read_cluster(_cluster_text(cluster), name="cluster")


def _is_path(text: str) -> bool:
    return "\n" not in text and not text.lstrip().startswith("{")


def _cluster_text(cluster: object) -> bytes:
    if isinstance(cluster, bytes):
        return cluster
    if isinstance(cluster, str):
        return cluster.encode("utf-8")
    if isinstance(cluster, Mapping):
        try:
            return json.dumps(cluster).encode("utf-8")
        except (TypeError, ValueError) as error:
            raise RunError(f"the cluster's mapping cannot be written as JSON: {error}") from error
    raise UsageError(
        f"a cluster is given as a path, text, a mapping or a Cluster, not {type(cluster).__name__}"
    )
