"""Reading of the inputs RUN, CLUSTER and `--history` of the commands that plan or check a run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kfp_placement._input_file import LIVE, InputFile, read_input, run_input
from kfp_placement.cli.live_options import Connection, Target, connect
from kfp_placement.cli.pipeline_module import compile_named, is_pipeline_name
from kfp_placement_engine.exceptions import InputError, InputNotFoundError

if TYPE_CHECKING:
    from kfp_placement.clusters.reading import KnownCluster
    from kfp_placement.live.connection import ClusterApi
    from kfp_placement.live.run_templates import TemplateSources
    from kfp_placement.planning import PlanRequest
    from kfp_placement_engine.plans.progress import Progress

STDIN = "-"


def read_inputs(
    run: str,
    cluster: str | None,
    history: str | None,
    target: Target,
    progress: "Progress",
    *,
    package: str | None = None,
    templates: Sequence[str] = (),
    needs_cluster: bool = True,
) -> "PlanRequest":
    """Read the inputs of `plan` or `check` into a request without further options.

    Args:
        run: argument RUN.
        cluster: option `--cluster`; None = not given.
        history: option `--history`; None = not given.
        target: cluster that `live` stands for.
        progress: receiver of reports on how far reading is.
        package: option `--package`; None = not given.
        templates: values of option `--with`.
        needs_cluster: whether an example cluster is used if none is given.

    Raises:
        click.UsageError: the inputs do not go together, such as two from stdin.
        ClusterError: the live cluster refuses, or gives no answer.
        EngineError: a file does not exist or cannot be read.
    """
    sources = [("RUN", run), ("CLUSTER", cluster), ("the history", history)]
    sources += [("the package", package), *(("a file of templates", each) for each in templates)]
    piped = [name for name, source in sources if source == STDIN]
    if len(piped) > 1:
        both = " and ".join(piped[:2])
        raise click.UsageError(f"{both} cannot both come from stdin; name a file for one")
    live = connect_live(cluster, target, (history, *templates))
    # Before the cluster is read: a wrong name is reported at once.
    run_file = run_input(run) if Path(run).is_dir() else read_package(run)
    beside = None if package is None else read_package(package)
    from kfp_placement.histories import HistorySource
    from kfp_placement.planning import PlanRequest

    has_cluster = cluster is not None or needs_cluster
    where = read_cluster_source(cluster, progress, live) if has_cluster else None
    api = None if live is None else live.api
    given = None if history is None else named_history(history)
    source = HistorySource(given, api)
    return PlanRequest(
        run_file,
        where,
        beside,
        _templates(templates, api),
        namespace=target.namespace,
        history=source,
    )


def _templates(names: Sequence[str], api: "ClusterApi | None") -> "TemplateSources":
    from kfp_placement.live.run_templates import TemplateSources, read_templates
    from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES

    if not names:
        return TemplateSources()
    return read_templates((_stdin(RUN_MAX_BYTES) if each == STDIN else each for each in names), api)


def read_package(run: str) -> InputFile:
    """Read the file that RUN or `--package` names; compile it if that is a pipeline in Python.

    Raises:
        EngineError: the package does not exist or cannot be read.
    """
    from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES
    from kfp_placement_engine.readers.text.other_texts import OLD_KFP, is_old_kfp

    if run == STDIN:
        return _stdin(RUN_MAX_BYTES)
    if is_pipeline_name(run):
        return InputFile(run, compile_named(run))
    if run.endswith(".py"):
        if Path(run).is_file() and is_old_kfp(Path(run).read_bytes()):
            raise InputError(f"{run}: {OLD_KFP}")
        raise InputError(f"{run}: is Python; name the pipeline in it: {run}:NAME")
    if run.isidentifier() and not Path(run).exists():
        raise InputNotFoundError(
            f"{run}: no such file; a pipeline in a Python module is named {run}:PIPELINE"
        )
    return read_input(run)


def connect_live(
    cluster: str | None, target: Target, others: Sequence[str | None] = ()
) -> Connection | None:
    """Connect to the live cluster if an input is `live`; return None if none is.

    Args:
        cluster: option `--cluster`; None = not given.
        target: cluster that `live` stands for.
        others: values of `--history` and `--with`; None = not given.

    Raises:
        click.UsageError: a kubeconfig or context is given though no input is `live`.
        ClusterError: there is no usable kubeconfig.
    """
    if LIVE in (cluster, *others):
        return connect(target)
    for option, value in (("--kubeconfig", target.kubeconfig), ("--context", target.context)):
        if value is not None:
            raise click.UsageError(f"{option} is for a live cluster, not for a file or an example")
    return None


def read_cluster_source(
    cluster: str | None, progress: "Progress", live: Connection | None
) -> "KnownCluster":
    """Read the cluster that CLUSTER names.

    Args:
        cluster: option or argument on the command line; None = the example cluster.
        progress: receiver of reports on how far reading is.
        live: cluster that `live` stands for; None if no input is `live`.

    Raises:
        ClusterError: the live cluster refuses, or gives no answer.
        EngineError: the file does not exist or cannot be read.
    """
    from kfp_placement.clusters.examples import default_cluster
    from kfp_placement.clusters.reading import KnownCluster, named_cluster, read_live
    from kfp_placement_engine.readers import read_cluster
    from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES

    if cluster == LIVE and live is not None:
        return read_live(live.api, live.namespace, progress)
    if cluster is None:
        return KnownCluster(default_cluster())
    if cluster == STDIN:
        package = _stdin(CLUSTER_MAX_BYTES)
        return KnownCluster(read_cluster(package.data, name=package.name, progress=progress))
    return KnownCluster(named_cluster(cluster, progress))


def named_history(name: str) -> str | InputFile:
    """Return the name of a history file; for `-`, read stdin and return its content."""
    if name != STDIN:
        return name
    from kfp_placement_engine.readers.history_file import MAX_FILE_BYTES

    return _stdin(MAX_FILE_BYTES)


def _stdin(max_bytes: int) -> InputFile:
    """Read stdin; one byte beyond the limit shows that it is too large."""
    stream = sys.stdin.buffer
    if stream.isatty():
        click.echo("reading from the terminal; end with Ctrl-D", err=True)
    return InputFile("stdin", stream.read(max_bytes + 1))
