"""Command `list`: print the runs of a cluster, with what waits and what is wrong.

The columns are in `kfp_placement_engine.views.run_list`.
"""

from typing import Any

import click

from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    format_option,
    namespace_options,
    searched,
    warn_of_namespace,
)
from kfp_placement.cli.option_types import now
from kfp_placement.cli.terminal import warn

_EPILOG = """\b
Examples:
  kfp-placement list
  kfp-placement list -A -o wide
  kfp-placement list -n team-a -o json
"""


@command("list", epilog=_EPILOG)
@namespace_options
@connection_options
@format_option
def list_runs(output_format: str, **target: Any) -> None:
    """List runs: phase, progress, planned time, what waits, what is wrong.

    Latest first.
    """
    api, namespace = connect(Target(**target))
    # Imported here, so that help and errors of the connection come fast.
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live import fetching
    from kfp_placement.live.documents import runs_document, serialized
    from kfp_placement.live.finding import candidates
    from kfp_placement.live.policy import why_off
    from kfp_placement.live.queues import waiting_runs
    from kfp_placement.live.unplanned_runs import unplanned_runs, unplanned_text
    from kfp_placement_engine.views.run_list import runs_table
    from kfp_placement_engine.views.runs import waiting_run

    at = now()
    runs, more = fetching.list_runs(api, namespace, at)
    if not runs:
        warn_of_namespace(api, namespace)
    off = why_off(api)
    planned = {run.key for run in runs}
    unplanned = () if more else unplanned_runs(api, namespace, planned, at)
    if output_format in ("json", "yaml"):
        emit(serialized(runs_document(runs, off, unplanned), output_format), None)
        return
    warn(off)
    warn(unplanned_text(unplanned, candidates(unplanned)))
    queued = waiting_runs(api, namespace)
    shown = [run.in_queue(queued.get(run.key)) for run in runs]
    # If not all runs are listed, a queued run that is not among them may have a plan.
    without_plan = () if more else queued.items()
    shown += [waiting_run(view, at) for key, view in without_plan if key not in planned]
    if shown:
        emit_view(runs_table(shown, wide=output_format == "wide", namespaces=not namespace))
    else:
        click.echo(f"No runs in {searched(namespace)}.", err=True)
    if more:
        click.echo(f"Only {len(runs):,} runs are shown; choose a namespace with -n.", err=True)
