"""Command `history`: print, export or forget what is known from past runs of pipelines."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Target,
    connection_options,
    namespace_options,
    searched,
    warn_of_namespace,
)
from kfp_placement.cli.option_types import INPUT_FILE, LOCAL_PATH, FormatType, now
from kfp_placement.cli.terminal import can_ask, warn
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.views.formatting import counted, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kfp_placement.live.connection import ClusterApi
    from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
    from kfp_placement_engine.views.document import Document, Table
    from kfp_placement_engine.views.history import PipelineDetails

_EPILOG = """\b
A time is the typical one, and in brackets the range in which nine of ten lie. Without PIPELINE the
pipelines of the namespace are listed, with it the steps of one. Of a step in a loop it is the time
of a new item; a plan has that of each item that was seen. To forget you need the right to patch
PipelineHistories (ClusterRole kfp-placement-edit-history).

\b
Examples:
  kfp-placement history
  kfp-placement history taxi
  kfp-placement history -n team-a --output history.yaml
  kfp-placement history taxi --file history.yaml -o json
  kfp-placement history taxi --forget --step train

\b
Exit codes: 0 shown, written or forgotten, or there is nothing; 1 no answer, it is refused, or
nobody has agreed to forget; 2 several pipelines may be meant; 3 no such pipeline, step or file, or
histories are not installed.
"""


@command(epilog=_EPILOG)
@click.argument("pipeline", metavar="[PIPELINE]", required=False)
@click.option(
    "--file",
    metavar="FILE",
    type=INPUT_FILE,
    help="Read what --output wrote, or - for stdin, and no cluster.",
)
@click.option(
    "-o",
    "output_format",
    type=FormatType(("table", "json", "yaml")),
    help="Format.  [default: table, or what the ending of --output names]",
)
@click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    help="Export the histories to FILE, whole or not at all, and show nothing.",
)
@click.option("--forget", is_flag=True, help="Do not count what has ended until now.")
@click.option(
    "--step",
    "steps",
    metavar="STEP",
    multiple=True,
    help="With --forget: only the times of this step. Repeatable.",
)
@click.option("--yes", is_flag=True, help="With --forget: do not ask.")
@namespace_options
@connection_options
def history(
    pipeline: str | None,
    file: str | None,
    output_format: str | None,
    output: Path | None,
    forget: bool,
    steps: tuple[str, ...],
    yes: bool,
    **target: Any,
) -> int:
    """Show what past runs tell: how long pipelines and their steps take.

    Plans are made on these times.
    """
    is_one = pipeline is not None and file is None and output is None
    if (forget or steps or yes) and not (forget and is_one):
        raise click.UsageError(
            "--step and --yes go with --forget, and --forget is for one PIPELINE of a cluster: name"
            " it, without --file and --output"
        )
    from kfp_placement.cli.output import check_target, format_for

    chosen = format_for(output_format, output)
    if output is not None and chosen not in ("json", "yaml"):
        raise click.UsageError(
            "--output exports objects as JSON or YAML: end FILE in .yaml or .json, or name the"
            " format with -o"
        )
    check_target(output)
    api, namespace, histories = _read(file, Target(**target))
    where = searched(namespace)
    if file is not None:
        where = f"{file}, namespace {namespace}" if namespace else file
    from kfp_placement.live.histories import histories_named
    from kfp_placement_engine.views.history import pipeline_details

    if output is not None:
        _export(histories_named(histories, pipeline, where), output, chosen)
        return ExitCode.OK
    details = None
    if pipeline is not None:
        history, *_ = histories_named(histories, pipeline, where)
        details = pipeline_details(history, histories)
        if forget and api is not None:
            return _forget(api, history, details, steps, yes=yes)
    if histories or chosen != "table":
        _show(histories, details, chosen, namespaces=not namespace)
    else:
        click.echo(f"No pipeline has a history ({where}).", err=True)
    return ExitCode.OK


def _read(
    file: str | None, target: Target
) -> "tuple[ClusterApi | None, str, Sequence[PipelineHistory]]":
    """Read the histories of a file, or of a cluster if `file` is None.

    Returns:
        The cluster, or None for a file; the namespace, or "" for all; and its histories.
    """
    from kfp_placement._input_file import LIVE
    from kfp_placement.cli.inputs import connect_live, named_history
    from kfp_placement.histories import HistorySource, read_histories

    live = connect_live(LIVE if file is None else None, target)
    api, namespace = live or (None, target.namespace or "")
    source = HistorySource(file and named_history(file), api)
    histories, problems = read_histories(source, namespace)
    for problem in problems:
        warn(problem)
    if api is not None and not histories:
        warn_of_namespace(api, namespace)
    return api, namespace, histories


def _show(
    histories: "Sequence[PipelineHistory]",
    details: "PipelineDetails | None",
    output_format: str,
    *,
    namespaces: bool,
) -> None:
    """Print the details of one pipeline; if there are none, a table of all pipelines."""
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live import documents
    from kfp_placement_engine.views import history as views

    view: Document | Table
    if details is not None:
        document, view = documents.pipeline_document(details), views.pipeline_view(details, now())
    else:
        pipelines = [views.pipeline_times(each) for each in histories]
        pipelines.sort(key=lambda each: (each.namespace, each.name))
        document = documents.history_document(pipelines)
        view = views.pipelines_table(pipelines, now(), namespaces=namespaces)
    if output_format == "table":
        emit_view(view)
    else:
        emit(documents.serialized(document, output_format), None)


def _export(histories: "Sequence[PipelineHistory]", output: Path, output_format: str) -> None:
    """Write the PipelineHistory objects to a file, from which plans can be made elsewhere."""
    from kfp_placement.cli.output import emit
    from kfp_placement_engine.contract.history.pipeline_history import exported
    from kfp_placement_engine.readers.text.yaml_text import yaml_text

    document = exported(histories)
    is_json = output_format == "json"
    text = json.dumps(document) + "\n" if is_json else yaml_text(document, rows_in_a_line=True)
    emit(text, output)


def _forget(
    api: "ClusterApi",
    history: "PipelineHistory",
    details: "PipelineDetails",
    steps: "Sequence[str]",
    *,
    yes: bool,
) -> ExitCode:
    """Ask for confirmation, then mark in a pipeline's history what does not count any more.

    Raises:
        click.UsageError: stdin is not a terminal, so nobody can confirm.
        InputNotFoundError: a step does not exist.
        ClusterError: the cluster refuses, or gives no answer.
    """
    from kfp_placement.live.histories import forget
    from kfp_placement_engine.model.step_names import StepNames, listed

    times = details.pipeline
    names = StepNames((each.step, each.step, "") for each in details.steps)
    where = f"{times.name}: "
    paths = [path for step in steps for path in names.check(step, InputNotFoundError, where)]
    which = f"the times of {visible(listed(paths))} in" if paths else "all that is known of"
    if not yes:
        if not can_ask():
            raise click.UsageError("--forget asks first, and there is nobody to ask; add --yes")
        runs = counted(times.runs, "run")
        question = f"Forget {which} {times.text} ({runs})? That cannot be undone once its next run"
        if not click.confirm(f"{question} has ended."):
            click.echo("Nothing is forgotten.", err=True)
            return ExitCode.FAILURE
    forget(api, history, paths, now())
    click.echo(f"Forgotten: {which} {times.text}, until now.")
    return ExitCode.OK
