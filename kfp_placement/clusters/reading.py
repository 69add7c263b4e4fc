"""Reading of a cluster to plan on, in every form in which people give one."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import kfp_placement_engine.model.cluster as model
from kfp_placement._input_file import LIVE
from kfp_placement.clusters.examples import EXAMPLES, PREFIX, default_cluster, read_example
from kfp_placement.exceptions import UsageError
from kfp_placement_engine.exceptions import InputError, InputNotFoundError
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.readers import read_cluster
from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES, read_file

if TYPE_CHECKING:
    from kfp_placement.live.connection import ClusterApi

_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


class KnownCluster(NamedTuple):
    """A cluster to plan on, as it was read.

    Attributes:
        cluster: the cluster as the planner sees it.
        namespace: namespace of runs that name none; "" = no namespace.
        api: connection to the cluster; None if it is not live.
    """

    cluster: model.Cluster
    namespace: str = ""
    api: "ClusterApi | None" = None


def known_cluster(given: object) -> KnownCluster:
    """Read a cluster.

    Args:
        given: a `Cluster`, ours or the planner's; a name for `named_cluster`; a Cluster file as
            text, bytes or a mapping; `live` for the kubeconfig's cluster; None for an example.

    Raises:
        UsageError: a cluster cannot be given in this form.
        PlacementError: the live cluster refuses, or a mapping cannot be read.
        EngineError: another form cannot be read.
    """
    # Here and not above: the command line, which has names only, needs none of it.
    from kfp_placement.clusters.description import Cluster, read_document

    if given is None:
        return KnownCluster(default_cluster())
    if isinstance(given, Cluster):
        return KnownCluster(given.noun)
    if isinstance(given, model.Cluster):
        return KnownCluster(given)
    if isinstance(given, str) and given == LIVE:
        from kfp_placement.live.connection import ClusterApi

        api = ClusterApi.connect()
        return read_live(api, api.namespace)
    if isinstance(given, Mapping):
        return KnownCluster(read_document(given, "cluster"))
    if isinstance(given, os.PathLike) or (
        isinstance(given, str) and "\n" not in given and not given.lstrip().startswith("{")
    ):
        return KnownCluster(named_cluster(os.fsdecode(given)))
    if isinstance(given, str | bytes):
        data = given.encode("utf-8") if isinstance(given, str) else given
        return KnownCluster(read_cluster(data, name="cluster"))
    hint = "; write Cluster([Node(...), ...])" if isinstance(given, list | tuple) else ""
    raise UsageError(
        "a cluster is given as a path, a URL, text, a mapping or a Cluster, not"
        f" {type(given).__name__}{hint}"
    )


def named_cluster(name: str, progress: Progress = no_progress) -> model.Cluster:
    """Read a cluster by its name on a command line.

    Args:
        name: the path or URL of a Cluster file or of what `kubectl get
            nodes,pods,pvc,pv,resourcequotas,limitranges -A -o yaml` prints; `example:equal`.
        progress: receiver of reports on how far reading is.

    Raises:
        EngineError: the cluster does not exist or cannot be read.
    """
    if not name.strip():
        raise InputError("the name of the cluster is empty; give a path, a URL or example:equal")
    if name.startswith(PREFIX):
        return read_example(name.removeprefix(PREFIX)).noun
    if is_url(name):
        # Here and not above: few clusters come from a web server.
        from kfp_placement.clusters.download import download

        progress(0.0, "fetching the cluster")
        file = download(name)
        return read_cluster(file.data, name=file.name, progress=progress)
    if _SCHEME.match(name):
        raise InputError(
            f"{name!r:.200}: give a path, or an address that begins with http:// or https://"
        )
    progress(0.0, f"reading {name}")
    try:
        data = read_file(Path(name), max_bytes=CLUSTER_MAX_BYTES)
    except InputNotFoundError as error:
        others = f"a cluster may also be a URL, or an example such as {PREFIX}equal"
        hint = f"the example cluster is {PREFIX}{name}" if name in EXAMPLES else others
        raise InputNotFoundError(f"{error}; {hint}") from error
    return read_cluster(data, name=name, progress=progress)


def is_url(name: str) -> bool:
    """Return whether a name is a URL of a web server."""
    return name[:8].lower().startswith(("http://", "https://"))


def read_live(api: "ClusterApi", namespace: str, progress: Progress = no_progress) -> KnownCluster:
    """Read a live cluster.

    Args:
        api: connection to the cluster.
        namespace: namespace of runs that name none.
        progress: receiver of reports on how far reading is.

    Raises:
        ClusterError: the cluster refuses, or gives no answer.
    """
    from kfp_placement.live.cluster_objects import live_cluster

    return KnownCluster(live_cluster(api, namespace, progress), namespace, api)
