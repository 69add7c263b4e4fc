"""What `plan`, `check` and `cluster` are given -> the request that it means."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kfp_placement._package import Package, package_file
from kfp_placement.cli.live_options import Connection, Target, connect
from kfp_placement.cli.pipeline_module import compile_named, is_pipeline_name
from kfp_placement_engine.exceptions import InputError, InputNotFoundError

if TYPE_CHECKING:
    from kfp_placement.clusters.reading import KnownCluster
    from kfp_placement.planning import PlanRequest
    from kfp_placement_engine.plans.progress import Progress

STDIN = "-"
LIVE = "live"


def read_request(
    run: str,
    cluster: str | None,
    history: str | None,
    target: Target,
    progress: "Progress",
    *,
    needs_cluster: bool = True,
    **asked: Any,
) -> "PlanRequest":
    """Read what `plan` or `check` is given.

    Args:
        run: RUN.
        cluster: CLUSTER; None = an example, or nothing.
        history: `--history`; None = nothing.
        target: the cluster that `live` means.
        progress: told how far it is.
        needs_cluster: no CLUSTER is an example.
        **asked: further fields of the request.

    Raises:
        click.UsageError: what cannot be meant, such as two inputs from stdin.
        ClusterError: the live cluster refuses, or gives no answer.
        EngineError: a file is not there or cannot be read.
    """
    sources = {"RUN": run, "CLUSTER": cluster, "the history": history}
    piped = [name for name, source in sources.items() if source == STDIN]
    if len(piped) > 1:
        both = " and ".join(piped[:2])
        raise click.UsageError(f"{both} cannot both come from stdin; name a file for one")
    live = connect_live(cluster, target, history)
    # Before a cluster is asked: a wrong name is reported at once.
    package = read_package(run)
    from kfp_placement.histories import HistorySource
    from kfp_placement.planning import PlanRequest

    is_known = cluster is not None or needs_cluster
    where = read_cluster_source(cluster, progress, live) if is_known else None
    api = None if live is None else live.cluster
    given = None if history is None else named_history(history)
    source = HistorySource(given, api)
    return PlanRequest(package, where, namespace=target.namespace, history=source, **asked)


def read_package(run: str) -> Package:
    """The bytes of RUN, compiled first if it names a pipeline.

    Raises:
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES

    if run == STDIN:
        return _stdin(RUN_MAX_BYTES)
    if is_pipeline_name(run):
        return Package(run, compile_named(run))
    if run.endswith(".py"):
        raise InputError(f"{run}: is Python; name the pipeline in it: {run}:NAME")
    if run.isidentifier() and not Path(run).exists():
        raise InputNotFoundError(
            f"{run}: no such file; a pipeline in a Python module is named {run}:PIPELINE"
        )
    return package_file(run)


def connect_live(
    cluster: str | None, target: Target, history: str | None = None
) -> Connection | None:
    """The live cluster, if that is what CLUSTER, or the history, names.

    Raises:
        click.UsageError: a kubeconfig or context is named for a file.
        ClusterError: no usable kubeconfig.
    """
    if LIVE in (cluster, history):
        return connect(target)
    for option, value in (("--kubeconfig", target.kubeconfig), ("--context", target.context)):
        if value is not None:
            raise click.UsageError(f"{option} is for a live cluster, not for a file or an example")
    return None


def read_cluster_source(
    cluster: str | None, progress: "Progress", live: Connection | None
) -> "KnownCluster":
    """The cluster that CLUSTER describes.

    Args:
        cluster: what is on the command line; None = nothing, which is an example.
        progress: told how far it is.
        live: the cluster that `live` means.

    Raises:
        ClusterError: the live one refuses, or gives no answer.
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement.clusters.examples import default_cluster
    from kfp_placement.clusters.reading import KnownCluster, named_cluster, read_live
    from kfp_placement_engine.readers import read_cluster
    from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES

    if cluster == LIVE and live is not None:
        return read_live(live.cluster, live.namespace, progress)
    if cluster is None:
        return KnownCluster(default_cluster())
    if cluster == STDIN:
        package = _stdin(CLUSTER_MAX_BYTES)
        return KnownCluster(read_cluster(package.data, name=package.name, progress=progress))
    return KnownCluster(named_cluster(cluster, progress))


def named_history(name: str) -> str | Package:
    """The file of past runs that is meant: its name; `-` is stdin, which is read."""
    if name != STDIN:
        return name
    from kfp_placement_engine.readers.history_file import MAX_FILE_BYTES

    return _stdin(MAX_FILE_BYTES)


def _stdin(max_bytes: int) -> Package:
    """Read a file from stdin; a byte more than it may have tells that it is too large."""
    stream = sys.stdin.buffer
    if stream.isatty():
        click.echo("reading from the terminal; end with Ctrl-D", err=True)
    return Package("stdin", stream.read(max_bytes + 1))
