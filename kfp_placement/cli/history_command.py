"""`history`: what past runs tell of the next ones; exports it, and forgets it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Connection,
    Target,
    connect,
    connection_options,
    namespace_options,
    warn_of_namespace,
)
from kfp_placement.cli.parameters import INPUT_FILE, LOCAL_PATH, FormatType, now
from kfp_placement.cli.terminal import can_ask, warn

if TYPE_CHECKING:
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
    if forget:
        assert pipeline is not None  # refused otherwise
        return _forget(pipeline, steps, where, yes=yes)
    source = _Source(file, where)
    if output is not None:
        _export(source, pipeline, output, output_format)
    elif pipeline is not None:
        _show_pipeline(source, pipeline, output_format or "table")
    else:
        _show_pipelines(source, output_format or "table")
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


class _Source:
    """A file, or a cluster of which nothing has been read yet.

    Attributes:
        connection: the cluster; None = it is a file.
        namespace: the only one that is meant; "" = all.
        where: the same in words.
    """

    def __init__(self, file: str | None, target: Target) -> None:
        self._file, self._elsewhere = file, list[str]()
        self.connection: Connection | None = None if file is not None else connect(target)
        if self.connection is not None:
            self.namespace = self.connection.namespace
            self.where = f"namespace {self.namespace}" if self.namespace else "any namespace"
        else:
            self.namespace = target.namespace or ""
            self.where = f"{file}, namespace {self.namespace}" if self.namespace else str(file)

    def histories(self) -> "list[PipelineHistory]":
        """All of them; what cannot be read is named on stderr."""
        from kfp_placement.histories import unreadable_notices

        found = self._read()
        for each in unreadable_notices(found):
            warn(each.message)
        return found

    def _read(self) -> "list[PipelineHistory]":
        if self.connection is not None:
            from kfp_placement.live.histories import list_histories

            problems: list[str] = []
            found = list(list_histories(self.connection.cluster, self.namespace, problems))
            for each in problems:
                warn(each)
            return found
        from kfp_placement.cli.inputs import named_history
        from kfp_placement.histories import file_histories

        source = named_history(self._file)
        assert source is not None  # else there is a cluster
        found = list(file_histories(source))
        self._elsewhere = sorted({each.metadata.namespace or "" for each in found} - {""})
        return [each for each in found if self.namespace in ("", each.metadata.namespace)]

    @property
    def none(self) -> str:
        """Why there is nothing, once that is known."""
        from kfp_placement_engine.model.step_names import listed
        from kfp_placement_engine.views.formatting import visible

        others = visible(listed(self._elsewhere))
        of_others = f"; the file has those of namespace {others}" if others else ""
        return f"no pipeline of {self.where} has a history{of_others}"

    @property
    def elsewhere(self) -> str:
        """How to look further; "" = there is nowhere."""
        return " (history -A looks in all namespaces)" if self.connection and self.namespace else ""

    def of(self, histories: "list[PipelineHistory]", name: str) -> "tuple[PipelineHistory, ...]":
        """The histories of one pipeline.

        Raises:
            ClusterAmbiguousError: several namespaces have one.
            ClusterMissingError: there is none.
        """
        from kfp_placement.live.exceptions import ClusterMissingError
        from kfp_placement.live.histories import histories_named

        if not histories:
            raise ClusterMissingError(f"{self.none}{self.elsewhere}")
        try:
            return histories_named(histories, name, self.where)
        except ClusterMissingError as error:
            raise ClusterMissingError(f"{error}{self.elsewhere}") from error


def _show_pipelines(source: _Source, output_format: str) -> None:
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live.documents import history_document, serialized
    from kfp_placement_engine.views.history import pipelines_table
    from kfp_placement_engine.views.past_runs import pipelines_of

    pipelines = pipelines_of(source.histories())
    if not pipelines and source.connection is not None:
        warn_of_namespace(source.connection.cluster, source.namespace)
    if output_format != "table":
        emit(serialized(history_document(pipelines), output_format), None)
    elif pipelines:
        is_of_several = len({each.namespace for each in pipelines}) > 1
        namespaces = is_of_several or not source.namespace
        emit_view(pipelines_table(pipelines, now(), namespaces=namespaces))
    else:
        why = ": no run has ended there since histories are kept" if source.connection else ""
        click.echo(f"N{source.none[1:]}{why}{source.elsewhere}.", err=True)


def _show_pipeline(source: _Source, name: str, output_format: str) -> None:
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live.documents import pipeline_document, serialized
    from kfp_placement_engine.views.history import details_view
    from kfp_placement_engine.views.past_runs import details_of

    histories = source.histories()
    details = details_of(histories, source.of(histories, name))
    if output_format == "table":
        emit_view(details_view(details, now()))
    else:
        emit(serialized(pipeline_document(details), output_format), None)


def _export(source: _Source, name: str | None, output: Path, output_format: str | None) -> None:
    """Write the objects themselves, so that plans can be made on them elsewhere.

    Raises:
        click.UsageError: no format of objects.
        ClusterMissingError: there is nothing to write.
    """
    from kfp_placement.cli.output import check_target, emit, format_for
    from kfp_placement.live.exceptions import ClusterMissingError
    from kfp_placement_engine.contract.pipeline_history import exported
    from kfp_placement_engine.readers.text.yaml_text import yaml_text

    chosen = format_for(output_format, output)
    if chosen not in ("json", "yaml"):
        raise click.UsageError(
            f"--output {output} exports objects, as JSON or YAML; end FILE in .yaml or .json, or"
            " name the format with -o"
        )
    check_target(output)
    histories: Sequence[PipelineHistory] = source.histories()
    if name is not None:
        histories = source.of(list(histories), name)
    if not histories:
        raise ClusterMissingError(f"{source.none}; nothing is written")
    document = exported(histories)
    is_json = chosen == "json"
    text = json.dumps(document) + "\n" if is_json else yaml_text(document, rows_in_a_line=True)
    emit(text, output)


def _forget(name: str, steps: Sequence[str], target: Target, *, yes: bool) -> ExitCode:
    """Ask, then say in the histories of a pipeline what does not count any more.

    Raises:
        click.UsageError: there is nobody to ask.
        ClusterError: no such pipeline or step, refused, or no answer.
    """
    from kfp_placement.live.histories import forget, steps_named
    from kfp_placement_engine.views.formatting import counted, visible
    from kfp_placement_engine.views.past_runs import pipelines_of

    source = _Source(None, target)
    assert source.connection is not None  # no file
    chosen = source.of(source.histories(), name)
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
        forget(source.connection.cluster, each, paths, at)
    click.echo(f"Forgotten: {what} {called}, until now.")
    return ExitCode.OK
