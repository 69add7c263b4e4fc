"""`history`: what past runs tell of the next ones; exports it, and forgets it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    namespace_options,
    searched,
    warn_of_namespace,
)
from kfp_placement.cli.parameters import INPUT_FILE, LOCAL_PATH, FormatType, now
from kfp_placement.cli.terminal import can_ask, warn
from kfp_placement_engine.views.formatting import counted, visible

if TYPE_CHECKING:
    from kfp_placement.live.connection import LiveCluster
    from kfp_placement_engine.contract.pipeline_history import PipelineHistory
    from kfp_placement_engine.views.document import Document, Table

_EPILOG = """\b
A time is the typical one, and in brackets the range in which nine of ten lie. Without PIPELINE the
pipelines of the namespace are listed, with it the steps of one. Of a step in a loop it is the time
of a new item; a plan has that of each item that was seen.

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
    where = Target(**target)
    if forget and (pipeline is None or file is not None or output is not None):
        raise click.UsageError(
            "--forget is for one PIPELINE of a cluster; name it, without --file and --output"
        )
    if (steps or yes) and not forget:
        raise click.UsageError("--step and --yes are for --forget")
    if file is not None and (where.kubeconfig is not None or where.context is not None):
        raise click.UsageError("--file FILE or a cluster? --kubeconfig and --context are for one")
    from kfp_placement.cli.output import check_target, format_for

    chosen = format_for(output_format, output)
    if output is not None and (chosen not in ("json", "yaml") or where.all_namespaces):
        raise click.UsageError(
            "--output exports the objects of one namespace as JSON or YAML: name it with -n, and"
            " end FILE in .yaml or .json, or name the format with -o"
        )
    check_target(output)
    found = _find(file, where)
    if pipeline is None and output is None:
        _show(found, None, chosen)
        return ExitCode.OK
    from kfp_placement.live.histories import histories_named

    histories = histories_named(found.histories, pipeline, found.where)
    if forget:
        return _forget(found, histories[0], steps, yes=yes)
    if output is not None:
        _export(histories, output, chosen)
    else:
        _show(found, histories[0], chosen)
    return ExitCode.OK


class _Found(NamedTuple):
    """The histories of a file or a cluster.

    Attributes:
        histories: those that are meant; what cannot be read of them has been named on stderr.
        cluster: None = they are from a file.
        namespace: the only one that is meant; "" = all.
        where: where was looked, in words.
    """

    histories: "list[PipelineHistory]"
    cluster: "LiveCluster | None"
    namespace: str
    where: str


def _find(file: str | None, target: Target) -> _Found:
    """Read the histories that are meant."""
    from kfp_placement.histories import HistorySource, read_histories

    if file is None:
        api, namespace = connect(target)
        source, where = HistorySource(api=api), searched(namespace)
    else:
        from kfp_placement.cli.inputs import named_history

        source, namespace = HistorySource(named_history(file)), target.namespace or ""
        where = f"{file}, namespace {namespace}" if namespace else file
    problems: list[str] = []
    histories = read_histories(source, namespace, problems)
    for each in problems:
        warn(each)
    if source.api is not None and not histories:
        warn_of_namespace(source.api, namespace)
    return _Found(histories, source.api, namespace, where)


def _show(found: _Found, chosen: "PipelineHistory | None", output_format: str) -> None:
    """Show the steps of the pipeline that is chosen; None = all pipelines."""
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live import documents
    from kfp_placement_engine.views.history import details_view, pipelines_table
    from kfp_placement_engine.views.past_runs import details_of, pipelines_of

    view: Document | Table
    if chosen is None:
        pipelines = pipelines_of(found.histories)
        document = documents.history_document(pipelines)
        view = pipelines_table(pipelines, now(), namespaces=not found.namespace)
    else:
        details = details_of(found.histories, chosen)
        document, view = documents.pipeline_document(details), details_view(details, now())
    if output_format != "table":
        emit(documents.serialized(document, output_format), None)
    elif found.histories:
        emit_view(view)
    else:
        click.echo(f"No pipeline has a history ({found.where}).", err=True)


def _export(histories: "Sequence[PipelineHistory]", output: Path, output_format: str) -> None:
    """Write the objects themselves, so that plans can be made on them elsewhere."""
    from kfp_placement.cli.output import emit
    from kfp_placement_engine.contract.pipeline_history import exported
    from kfp_placement_engine.readers.text.yaml_text import yaml_text

    document = exported(histories)
    is_json = output_format == "json"
    text = json.dumps(document) + "\n" if is_json else yaml_text(document, rows_in_a_line=True)
    emit(text, output)


def _forget(
    found: _Found, history: "PipelineHistory", steps: Sequence[str], *, yes: bool
) -> ExitCode:
    """Ask, then say in the history of a pipeline what does not count any more.

    Raises:
        click.UsageError: there is nobody to ask.
        ClusterError: no such step, refused, or no answer.
    """
    from kfp_placement.live.histories import forget, steps_named
    from kfp_placement_engine.views.past_runs import key_of

    assert found.cluster is not None  # no file
    paths = steps_named(history, steps)
    called = visible("/".join(filter(None, key_of(history))))
    runs = counted(len(history.runs_that_count()), "run")
    what = f"the times of {', '.join(map(visible, paths))} in" if paths else "all that is known of"
    if not yes:
        if not can_ask():
            raise click.UsageError("--forget asks first, and there is nobody to ask; add --yes")
        question = f"Forget {what} {called} ({runs})? That cannot be undone once its next run"
        if not click.confirm(f"{question} has ended."):
            click.echo("Nothing is forgotten.", err=True)
            return ExitCode.FAILURE
    forget(found.cluster, history, paths, now())
    click.echo(f"Forgotten: {what} {called}, until now.")
    return ExitCode.OK
