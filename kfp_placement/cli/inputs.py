"""RUN and CLUSTER as named on the command line -> the engine's nouns."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kfp_placement.cli.live_options import Connection, Target, connect
from kfp_placement.cli.pipeline_module import compile_named, is_pipeline_name
from kfp_placement_engine.exceptions import EngineError, InputError, InputNotFoundError
from kfp_placement_engine.views.formatting import visible

if TYPE_CHECKING:
    from kfp_placement._package import Package
    from kfp_placement.histories import KnownPast
    from kfp_placement_engine.contract.pipeline_history import PipelineHistory
    from kfp_placement_engine.model.cluster import Cluster
    from kfp_placement_engine.model.progress import Progress

STDIN = "-"
LIVE = "live"

_NAMING = "-n {}"
"""How a namespace is named on the command line."""


@contextlib.contextmanager
def usage_errors(*kinds: type[EngineError]) -> Iterator[None]:
    """Tell the engine's errors of these kinds as wrong use: they come from the command line."""
    try:
        yield
    except kinds as error:
        raise click.UsageError(visible(str(error))) from error


def check_sources(run: str, cluster: str | None, history: str | None = None) -> None:
    """Refuse what cannot be meant.

    Raises:
        click.UsageError: two of them from stdin.
    """
    sources = {"RUN": run, "CLUSTER": cluster, "the history": history}
    piped = [name for name, source in sources.items() if source == STDIN]
    if len(piped) > 1:
        both = " and ".join(piped[:2])
        raise click.UsageError(f"{both} cannot both come from stdin; name a file for one")


def read_package(run: str) -> "Package":
    """The bytes of RUN, compiled first if it names a pipeline.

    Raises:
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement._package import Package, package_file
    from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES

    if run == STDIN:
        return Package("stdin", _stdin(RUN_MAX_BYTES))
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
    if cluster == LIVE:
        return connect(target)
    if history == LIVE:
        return _connect_for_history(target)
    for option, value in (("--kubeconfig", target.kubeconfig), ("--context", target.context)):
        if value is not None:
            raise click.UsageError(f"{option} is for a live cluster: --cluster {LIVE}")
    return None


def _connect_for_history(target: Target) -> Connection:
    from kfp_placement.live.exceptions import ClusterMissingError

    try:
        return connect(target)
    except ClusterMissingError as error:
        raise ClusterMissingError(
            f"--history {LIVE} asks a cluster: {error}; or give --history FILE or none"
        ) from error


def read_cluster_source(
    cluster: str | None, progress: "Progress", live: Connection | None = None
) -> "Cluster":
    """The cluster that CLUSTER describes.

    Args:
        cluster: what is on the command line; None = nothing, which is an example.
        progress: told how far it is.
        live: the cluster that `live` means.

    Raises:
        ClusterError: the live one refuses, or gives no answer.
        PlacementError: there is no such example.
        EngineError: it is not there or cannot be read.
    """
    if live is not None:
        from kfp_placement.live.cluster_objects import live_cluster

        return live_cluster(live.cluster, live.namespace, progress)
    from kfp_placement.clusters.examples import default_cluster
    from kfp_placement.clusters.reading import named_cluster
    from kfp_placement_engine.readers import read_cluster
    from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES

    if cluster is None:
        return default_cluster()
    if cluster == STDIN:
        return read_cluster(_stdin(CLUSTER_MAX_BYTES), name="stdin", progress=progress)
    return named_cluster(cluster, progress)


def read_histories_source(file: str) -> "tuple[PipelineHistory, ...]":
    """The past runs that a file holds; `-` is stdin.

    Raises:
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement_engine.readers.history_file import (
        MAX_FILE_BYTES,
        read_histories,
        read_histories_file,
    )

    if file == STDIN:
        return read_histories(_stdin(MAX_FILE_BYTES), name="stdin")
    return read_histories_file(file)


def read_past(
    history: str | None,
    pipeline: str,
    namespace: str,
    progress: "Progress",
    live: Connection | None = None,
    cluster: "Cluster | None" = None,
) -> "KnownPast":
    """What past runs tell, as far as somebody asks, or the live cluster keeps them.

    Args:
        history: what is on the command line: a file, `-`, `live` or `none`; None = nothing.
        pipeline: of the run.
        namespace: of the run; "" = nobody says.
        progress: told what is read.
        live: the cluster that `live` means.
        cluster: where the run goes; its policy says how long runs count, its nodes how fast
            they are.

    Raises:
        ClusterError: `live`, and the cluster refuses, gives no answer, or has no histories.
        EngineError: the file is not there, cannot be read, or is of another namespace.
    """
    from kfp_placement.histories import past_given, past_in

    if history == STDIN:
        histories = read_histories_source(history)
        return past_in(histories, pipeline, namespace, cluster, naming=_NAMING)
    if live is not None or history is not None:
        progress(0.0, "reading past runs")
    api = None if live is None else live.cluster
    return past_given(history, pipeline, namespace, api, cluster, naming=_NAMING)


def _stdin(max_bytes: int) -> bytes:
    stream = sys.stdin.buffer
    if stream.isatty():
        click.echo("reading from the terminal; end with Ctrl-D", err=True)
    return stream.read(max_bytes + 1)
