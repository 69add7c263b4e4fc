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
    warn_of_namespace,
)
from kfp_placement.cli.parameters import INPUT_FILE, LOCAL_PATH, FormatType, now
from kfp_placement.cli.terminal import can_ask, warn
from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement_engine.views.formatting import counted, visible

if TYPE_CHECKING:
    from kfp_placement.live.connection import LiveCluster
    from kfp_placement_engine.contract.pipeline_history import PipelineHistory

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
    _refuse(pipeline, file, output, forget, bool(steps) or yes, where)
    chosen = output_format or "table" if output is None else _export_format(output_format, output)
    found = _find(file, where)
    if forget:
        assert pipeline is not None  # refused otherwise
        return _forget(found, pipeline, steps, yes=yes)
    if output is not None:
        _export(found, pipeline, output, chosen)
    elif pipeline is not None:
        _show_pipeline(found, pipeline, chosen)
    else:
        _show_pipelines(found, chosen)
    return ExitCode.OK


def _refuse(
    pipeline: str | None,
    file: str | None,
    output: Path | None,
    forget: bool,
    is_of_forget: bool,
    target: Target,
) -> None:
    """Refuse options that do not go together.

    Raises:
        click.UsageError: these do not.
    """
    if forget and pipeline is None:
        raise click.UsageError("--forget is for one PIPELINE; name it")
    if forget and (file is not None or output is not None):
        raise click.UsageError("--forget is for a cluster, and takes no --file and no --output")
    if is_of_forget and not forget:
        raise click.UsageError("--step and --yes are for --forget")
    if file is not None and (target.kubeconfig is not None or target.context is not None):
        raise click.UsageError("--file FILE or a cluster? --kubeconfig and --context are for one")
    if output is not None and target.all_namespaces:
        raise click.UsageError("--output exports one namespace; name it with -n")


class _Found(NamedTuple):
    """The histories of a file or a cluster.

    Attributes:
        histories: those that are meant; what cannot be read of them has been named on stderr.
        cluster: None = they are from a file.
        namespace: the only one that is meant; "" = all.
        where: the same in words.
    """

    histories: "list[PipelineHistory]"
    cluster: "LiveCluster | None"
    namespace: str
    where: str

    @property
    def further(self) -> str:
        """Where else there may be some; "" = nowhere."""
        is_one_of_several = self.cluster and self.namespace
        return " (history -A looks in all namespaces)" if is_one_of_several else ""

    @property
    def none(self) -> str:
        """Why there is nothing."""
        return f"no pipeline of {self.where} has a history"

    def of(self, name: str) -> "tuple[PipelineHistory, ...]":
        """The histories of one pipeline.

        Raises:
            ClusterAmbiguousError: several namespaces have one.
            ClusterMissingError: there is none.
        """
        from kfp_placement.live.histories import histories_named

        try:
            if not self.histories:
                raise ClusterMissingError(self.none)
            return histories_named(self.histories, name, self.where)
        except ClusterMissingError as error:
            raise ClusterMissingError(f"{error}{self.further}") from error


def _find(file: str | None, target: Target) -> _Found:
    """Read the histories that are meant."""
    from kfp_placement.histories import file_histories

    problems: list[str] = []
    if file is None:
        from kfp_placement.live.histories import list_histories

        cluster, namespace = connect(target)
        histories = list(list_histories(cluster, namespace, problems))
        where = f"namespace {namespace}" if namespace else "any namespace"
        found = _Found(histories, cluster, namespace, where)
    else:
        from kfp_placement.cli.inputs import named_history

        all_of_it, namespace = file_histories(named_history(file)), target.namespace or ""
        histories = [each for each in all_of_it if namespace in ("", each.metadata.namespace)]
        where = f"{file}, namespace {namespace}" if namespace else file
        found = _Found(histories, None, namespace, where)
    for each in problems:
        warn(each)
    return found


def _show_pipelines(found: _Found, output_format: str) -> None:
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live.documents import history_document, serialized
    from kfp_placement_engine.views.history import pipelines_table
    from kfp_placement_engine.views.past_runs import pipelines_of

    pipelines = pipelines_of(found.histories)
    if not pipelines and found.cluster is not None:
        warn_of_namespace(found.cluster, found.namespace)
    if output_format != "table":
        emit(serialized(history_document(pipelines), output_format), None)
    elif pipelines:
        is_of_several = len({each.namespace for each in pipelines}) > 1
        namespaces = is_of_several or not found.namespace
        emit_view(pipelines_table(pipelines, now(), namespaces=namespaces))
    else:
        why = ": no run has ended there since histories are kept" if found.cluster else ""
        click.echo(f"N{found.none[1:]}{why}{found.further}.", err=True)


def _show_pipeline(found: _Found, name: str, output_format: str) -> None:
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live.documents import pipeline_document, serialized
    from kfp_placement_engine.views.history import details_view
    from kfp_placement_engine.views.past_runs import details_of

    details = details_of(found.histories, found.of(name))
    if output_format == "table":
        emit_view(details_view(details, now()))
    else:
        emit(serialized(pipeline_document(details), output_format), None)


def _export_format(output_format: str | None, output: Path) -> str:
    """The format of an export.

    Raises:
        click.UsageError: no format of objects.
        InputError: the file cannot be written.
    """
    from kfp_placement.cli.output import check_target, format_for

    chosen = format_for(output_format, output)
    if chosen not in ("json", "yaml"):
        raise click.UsageError(
            f"--output {output} exports objects, as JSON or YAML; end FILE in .yaml or .json, or"
            " name the format with -o"
        )
    check_target(output)
    return chosen


def _export(found: _Found, name: str | None, output: Path, output_format: str) -> None:
    """Write the objects themselves, so that plans can be made on them elsewhere.

    Raises:
        ClusterMissingError: there is nothing to write.
    """
    from kfp_placement.cli.output import emit
    from kfp_placement_engine.contract.pipeline_history import exported
    from kfp_placement_engine.readers.text.yaml_text import yaml_text

    histories = found.histories if name is None else found.of(name)
    if not histories:
        raise ClusterMissingError(f"{found.none}{found.further}; nothing is written")
    document = exported(histories)
    is_json = output_format == "json"
    text = json.dumps(document) + "\n" if is_json else yaml_text(document, rows_in_a_line=True)
    emit(text, output)


def _forget(found: _Found, name: str, steps: Sequence[str], *, yes: bool) -> ExitCode:
    """Ask, then say in the histories of a pipeline what does not count any more.

    Raises:
        click.UsageError: there is nobody to ask.
        ClusterError: no such pipeline or step, refused, or no answer.
    """
    from kfp_placement.live.histories import forget, steps_named
    from kfp_placement_engine.views.past_runs import pipelines_of

    assert found.cluster is not None  # no file
    chosen = found.of(name)
    paths = steps_named(chosen, steps) if steps else ()
    (times,) = pipelines_of(chosen)
    called = visible("/".join(filter(None, (times.namespace, times.name))))
    runs = counted(times.runs, "run")
    what = f"the times of {', '.join(map(visible, paths))} in" if paths else "all that is known of"
    question = (
        f"Forget {what} {called} ({runs})? That cannot be undone once its next run has ended."
    )
    if not yes:
        if not can_ask():
            raise click.UsageError("--forget asks first, and there is nobody to ask; add --yes")
        if not click.confirm(question):
            click.echo("Nothing is forgotten.", err=True)
            return ExitCode.FAILURE
    at = now()
    for each in chosen:
        forget(found.cluster, each, paths, at)
    click.echo(f"Forgotten: {what} {called}, until now.")
    return ExitCode.OK
