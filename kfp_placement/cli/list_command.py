"""`list`: the runs of a cluster, with what waits and what is wrong."""

from typing import Any

import click

from kfp_placement.cli.group import debug_option
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    format_option,
    namespace_options,
    warn_of_namespace,
)
from kfp_placement.cli.parameters import now
from kfp_placement.cli.terminal import warn

_EPILOG = """\b
Examples:
  kfp-placement list
  kfp-placement list -A -o wide
  kfp-placement list -n team-a -o json
"""


@click.command("list", epilog=_EPILOG)
@namespace_options
@connection_options
@format_option
@debug_option
def list_runs(output_format: str, **target: Any) -> None:
    """List runs: phase, progress, planned time, what waits, what is wrong.

    Latest first.
    """
    cluster, namespace = connect(Target(**target))
    # Only now: without a cluster the answer needs none of it.
    from kfp_placement.cli.output import emit, table_style
    from kfp_placement.live import fetching
    from kfp_placement.live.choosing import candidates
    from kfp_placement.live.documents import document_text, runs_document
    from kfp_placement.live.listing import runs_table
    from kfp_placement.live.policy import why_off
    from kfp_placement.live.queues import waiting_runs
    from kfp_placement.live.workflows import unplanned_runs, unplanned_text

    runs, more = fetching.list_runs(cluster, namespace)
    if not runs:
        warn_of_namespace(cluster, namespace)
    off = why_off(cluster)
    planned = {run.key for run in runs}
    unplanned = () if more else unplanned_runs(cluster, namespace, planned, now())
    if output_format in ("json", "yaml"):
        document = runs_document(runs, now(), off, unplanned)
        emit(document_text(document, output_format), None)
        return
    warn(off)
    warn(unplanned_text(unplanned, candidates(unplanned)))
    queued = waiting_runs(cluster, namespace)
    # Where not all runs are listed, those left out may have a plan.
    only_queued = [] if more else [view for key, view in queued.items() if key not in planned]
    if runs or only_queued:
        style = table_style(None, wide=output_format == "wide")
        table = runs_table(runs, now(), style, queued, only_queued, namespaces=not namespace)
        emit(table, None)
    else:
        searched = (
            f"namespace {namespace}; -A looks in all namespaces" if namespace else "any namespace"
        )
        click.echo(f"No runs in {searched}.", err=True)
    if more:
        click.echo(f"Only {len(runs):,} runs are shown; choose a namespace with -n.", err=True)
