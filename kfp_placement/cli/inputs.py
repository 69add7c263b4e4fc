"""RUN and CLUSTER as named on the command line -> the engine's nouns."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kfp_placement.cli.pipeline_module import compile_named, is_pipeline_name
from kfp_placement_engine.exceptions import InputError

if TYPE_CHECKING:
    from kfp_placement._package import Package
    from kfp_placement_engine.cluster import Cluster
    from kfp_placement_engine.planning import Progress

STDIN = "-"
LIVE = "live"


@dataclass(frozen=True)
class Source:
    """A file that was read: what to call it, and its bytes."""

    name: str
    data: bytes


def check_sources(run: str, cluster: str | None) -> None:
    """Refuse what cannot be meant.

    Raises:
        click.UsageError: both from stdin, or a live cluster.
    """
    if run == STDIN and cluster == STDIN:
        raise click.UsageError("RUN and CLUSTER cannot both come from stdin; name a file for one")
    refuse_live(cluster)


def refuse_live(cluster: str | None) -> None:
    """Refuse a live cluster.

    Raises:
        click.UsageError: it is `live`.
    """
    if cluster == LIVE:
        raise click.UsageError(
            "a live cluster needs the controller, which this version does not have yet; until"
            " then: kubectl get nodes,pods,pvc,pv -A -o json > cluster.json"
        )


def read_package(run: str) -> "Package":
    """The bytes of RUN, compiled first if it names a pipeline.

    Raises:
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement._package import Package
    from kfp_placement_engine.readers.documents import RUN_MAX_BYTES, read_file

    if run == STDIN:
        return Package("stdin", _stdin(RUN_MAX_BYTES))
    if is_pipeline_name(run):
        return Package(run, compile_named(run))
    if run.endswith(".py"):
        raise InputError(f"{run}: is Python; name the pipeline in it: {run}:NAME")
    return Package(run, read_file(Path(run), max_bytes=RUN_MAX_BYTES))


def read_cluster_source(cluster: str, progress: "Progress") -> "Cluster":
    """The cluster that CLUSTER describes.

    Raises:
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement_engine.readers import read_cluster
    from kfp_placement_engine.readers.documents import CLUSTER_MAX_BYTES, read_file

    if cluster == STDIN:
        return read_cluster(_stdin(CLUSTER_MAX_BYTES), name="stdin", progress=progress)
    progress(0.0, f"reading {cluster}")
    data = read_file(Path(cluster), max_bytes=CLUSTER_MAX_BYTES)
    return read_cluster(data, name=cluster, progress=progress)


def _stdin(max_bytes: int) -> bytes:
    stream = sys.stdin.buffer
    if stream.isatty():
        click.echo("reading from the terminal; end with Ctrl-D", err=True)
    return stream.read(max_bytes + 1)
