"""`check`: what would surprise about a run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import debug_option
from kfp_placement.cli.live_options import Connection, Target, connection_options
from kfp_placement.cli.parameters import (
    INPUT_FILE,
    LOCAL_PATH,
    FormatType,
    NamespaceType,
    pairs,
)

if TYPE_CHECKING:
    from kfp_placement.check.findings import CheckReport

_EPILOG = """\b
RUN and CLUSTER are as for `plan`.

\b
Examples:
  kfp-placement check pipeline.yaml
  kfp-placement check pipelines:taxi --cluster cluster.yaml
  kfp-placement check pipeline.yaml --cluster live
  kfp-placement check pipeline.yaml --history history.yaml
  kfp-placement check pipeline.yaml -o json

\b
Exit codes: 0 nothing but warnings and notes; 4 a step fits no node of the cluster; 1 another error
was found, or the input cannot be read.
"""


@click.command(epilog=_EPILOG)
@click.argument("run", metavar="RUN", type=INPUT_FILE)
@click.option(
    "-c",
    "--cluster",
    metavar="CLUSTER",
    type=INPUT_FILE,
    help="Also check what depends on the cluster: room, locations, volumes.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs("rows=5000", last=False),
    help="A pipeline parameter, typed by the pipeline. Repeatable.",
)
@click.option(
    "--history",
    metavar="FILE|live|none",
    type=INPUT_FILE,
    help="Also compare hints with past runs: what `history --output` wrote, or live.  [default:"
    " none]",
)
@click.option(
    "-n",
    "--namespace",
    type=NamespaceType(),
    metavar="NAME",
    help="Namespace of the run, whose past runs count.  [default: the run's own, if any, else the"
    " only one of FILE, with live the context's]",
)
@click.option(
    "-o",
    "output_format",
    type=FormatType(("table", "json")),
    default="table",
    show_default=True,
    help="Format.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    help="Write to FILE, whole or not at all, instead of stdout.",
)
@connection_options
@debug_option
def check(
    run: str,
    cluster: str | None,
    arguments: dict[str, str],
    history: str | None,
    output_format: str,
    output: Path | None,
    **target: Any,
) -> int:
    """List what would surprise about a run.

    Unknown locations, marks that get lost, steps that fit nowhere, retries that are ignored, hints
    that are far from what past runs took.
    Follows the PlacementPolicy of CLUSTER, if it holds one.
    """
    from kfp_placement.cli.inputs import check_sources, connect_live
    from kfp_placement.cli.output import check_target, emit

    check_sources(run, cluster, history)
    check_target(output)
    where = Target(**target)
    live = connect_live(cluster, where, history)
    report = _report(run, cluster, live, arguments, history, where.namespace or "")
    emit(_json(report) if output_format == "json" else _text(report, output), output)
    return _exit_code(report)


def _report(
    run: str,
    cluster: str | None,
    live: Connection | None,
    arguments: dict[str, str],
    history: str | None,
    namespace: str,
) -> "CheckReport":
    from kfp_placement.cli.inputs import (
        LIVE,
        read_cluster_source,
        read_package,
        read_past,
        usage_errors,
    )
    from kfp_placement.cli.progress import LiveLine

    with LiveLine() as progress:
        package = read_package(run)
        from kfp_placement.check.rules import check_run
        from kfp_placement.planning import RunSource, read_graph, with_learned_widths
        from kfp_placement_engine.exceptions import ArgumentError

        read = live if cluster == LIVE else None
        known = None if cluster is None else read_cluster_source(cluster, progress, read)
        with usage_errors(ArgumentError):
            source = RunSource(package, arguments)
            graph = read_graph(source, known, progress=progress)
        place = namespace or ("" if live is None else live.namespace)
        if history is None:
            return check_run(graph, cluster=known, default_namespace=place)
        where = namespace or graph.namespace
        past = read_past(history, graph.name, where, progress, live, known)
        graph = with_learned_widths(graph, past.past, source, known)
        graph = past.noted_on(graph)
        place = place or past.namespace
        return check_run(graph, cluster=known, default_namespace=place, past=past.past)


def _text(report: "CheckReport", output: Path | None) -> str:
    from kfp_placement.cli.output import text_style

    style = text_style(output)
    return "\n".join(report.lines(style.columns, colour=style.colour)) + "\n"


def _json(report: "CheckReport") -> str:
    from kfp_placement_engine.contract.keys import API_VERSION

    document = {
        "apiVersion": API_VERSION,
        "kind": "CheckReport",
        "run": {"name": report.run_name},
        "ok": report.ok,
        "findings": [
            {
                "level": str(finding.level),
                "code": finding.code,
                "step": finding.step,
                "message": finding.message,
                "steps": list(finding.steps),
            }
            for finding in report.findings
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _exit_code(report: "CheckReport") -> ExitCode:
    errors = {finding.code for finding in report.findings if finding.level == "error"}
    if "unschedulable" in errors:
        return ExitCode.UNSCHEDULABLE
    return ExitCode.FAILURE if errors else ExitCode.OK
