"""`explain`: where each step of a run is, why there, why not yet, until when."""

from typing import Any

import click

from kfp_placement.cli.group import debug_option
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    format_option,
    namespace_options,
    the_run,
)
from kfp_placement.cli.parameters import now
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


@click.command(epilog=_EPILOG)
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="[STEP]", required=False)
@namespace_options
@connection_options
@format_option
@debug_option
def explain(run: str, step: str | None, output_format: str, **target: Any) -> int:
    """Say where each step of a run is and why.

    State, planned against actual times, what it waits for and until when, the next best nodes.
    """
    _refuse_file(run)
    cluster, namespace = connect(Target(**target))
    # Only now: without a cluster the answer needs none of it.
    from kfp_placement.cli.exit_codes import ExitCode
    from kfp_placement.cli.output import emit, table_style
    from kfp_placement.live.choosing import planned_run, steps_named
    from kfp_placement.live.documents import document_text, explanation_document
    from kfp_placement.live.explanation import (
        explanation,
        unplanned_explanation,
        without_past_plan,
    )
    from kfp_placement.live.memory import with_memory_advice
    from kfp_placement.live.policy import why_off
    from kfp_placement.live.promises import promise_after_start_of
    from kfp_placement.live.queues import queue_of, waiting_text
    from kfp_placement.live.workflows import why_no_plan

    named_run = the_run(cluster, namespace, run)
    is_document = output_format in ("json", "yaml")
    queue = None if is_document else queue_of(cluster, named_run.key)
    if queue is not None and named_run.raw is None:
        why = why_no_plan(cluster, named_run.namespace, named_run.name)
        emit(unplanned_explanation(queue, why), None)
        return ExitCode.OK
    view, missing = planned_run(cluster, named_run)
    off = why_off(cluster)
    view = without_past_plan(view, queue)
    steps = view.steps if step is None else steps_named(view, step)
    in_full = output_format == "wide" or step is not None
    if is_document or in_full:
        steps = with_memory_advice(cluster, view, steps)
    if is_document:
        document = explanation_document(view, steps, now(), missing, off)
        emit(document_text(document, output_format), None)
    else:
        warn(off)
        style = table_style(None, wide=output_format == "wide")
        if queue is not None and queue.is_waiting:
            promised = promise_after_start_of(view) is not None
            emit(f"{waiting_text(queue, promised=promised)}\n", None)
        emit(explanation(view, steps, now(), style, in_full=in_full), None)
    for each in missing:
        warn(each)
    return ExitCode.FAILURE if view.placement is None else ExitCode.OK


def _refuse_file(run: str) -> None:
    if run.endswith((".yaml", ".yml", ".json", ".py")):
        raise click.UsageError(
            f"{run} is a file, and explain is for runs in a cluster; for a file,"
            f" `kfp-placement plan {run} -o wide` says why each step goes where it goes"
        )
