"""Command `explain`: print where each step of a run is and why, or what it waits for."""

from os.path import isfile
from typing import Any

import click

from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    format_option,
    namespace_options,
    run_argument,
)
from kfp_placement.cli.option_types import now
from kfp_placement.cli.terminal import warn

_EPILOG = """\b
RUN is a Workflow's name or NAMESPACE/NAME, KFP's run id, or KFP's name of the run. STEP is a step's
name, or a task's for all its iterations.

\b
Examples:
  kfp-placement explain taxi-x7k2p
  kfp-placement explain taxi-x7k2p predict
  kfp-placement explain -A 5d0a3a5e-6f0c-4c3a-9d0f-2f6b8c1d7e10 -o json

\b
Exit codes: 0 explained; 1 no answer, or it cannot be read; 2 several runs may be meant;
3 no such run or step.
"""


@command(epilog=_EPILOG)
@run_argument
@click.argument("step", metavar="[STEP]", required=False)
@namespace_options
@connection_options
@format_option
def explain(run: str, step: str | None, output_format: str, **target: Any) -> int:
    """Say where each step of a run is and why.

    State, planned against actual times, what it waits for and until when, the next best nodes.
    """
    # Where there is no such file, it may be the name of a run, which may have dots. Unlike
    # `Path.is_file`, this takes a name that is too long for a file.
    if run.endswith((".yaml", ".yml", ".json", ".py")) and isfile(run):
        raise click.UsageError(
            f"{run} is a file, and explain is for runs in a cluster; for a file,"
            f" `kfp-placement plan {run} -o wide` says why each step goes where it goes"
        )
    api, namespace = connect(Target(**target))
    # Imported here, so that help and errors of the connection come fast.
    from kfp_placement.cli.exit_codes import ExitCode
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live.documents import explanation_document, serialized
    from kfp_placement.live.fetching import look_at
    from kfp_placement.live.finding import steps_named, the_run
    from kfp_placement.live.histories import with_memory_advice
    from kfp_placement.live.policy import why_off
    from kfp_placement.live.queues import queue_of
    from kfp_placement_engine.views.explanation import explanation
    from kfp_placement_engine.views.runs import UNREADABLE

    named_run = the_run(api, namespace, run)
    is_document = output_format in ("json", "yaml")
    queue = None if is_document else queue_of(api, named_run.key)
    view = look_at(api, named_run, now(), queue)
    off = why_off(api)
    steps = view.steps if step is None else steps_named(view, step)
    in_full = output_format == "wide" or step is not None
    if is_document or in_full:
        steps = with_memory_advice(api, view, steps)
    if is_document:
        emit(serialized(explanation_document(view, steps, off), output_format), None)
    else:
        warn(off)
        emit_view(explanation(view, steps, in_full=in_full))
    for problem in view.missing:
        warn(problem)
    return ExitCode.FAILURE if view.phase == UNREADABLE else ExitCode.OK
