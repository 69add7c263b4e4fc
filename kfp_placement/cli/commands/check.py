"""Command `check`: apply the rules of `kfp_placement.check` to a run and print the findings."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import Target, connection_options
from kfp_placement.cli.option_types import (
    INPUT_FILE,
    NAMESPACE,
    FormatType,
    output_option,
    run_options,
)

if TYPE_CHECKING:
    from kfp_placement.check.findings import CheckReport

_EPILOG = """\b
RUN and CLUSTER are as for `plan`.

\b
Examples:
  kfp-placement check pipeline.yaml
  kfp-placement check pipelines:taxi --cluster cluster.yaml
  kfp-placement check workflow.yaml --package pipeline.yaml
  kfp-placement check workflow.yaml --with templates/
  kfp-placement check pipeline.yaml --cluster live
  kfp-placement check pipeline.yaml --history history.yaml
  kfp-placement check pipeline.yaml -o json

\b
Exit codes: 0 nothing but warnings and notes; 4 a step fits no node of the cluster; 1 another error
was found, or the input cannot be read.
"""


@command(epilog=_EPILOG)
@click.argument("run", metavar="RUN", type=INPUT_FILE)
@click.option(
    "-c",
    "--cluster",
    metavar="CLUSTER",
    type=INPUT_FILE,
    help="Also check what depends on the cluster: room, locations, volumes.",
)
@run_options
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
    type=NAMESPACE,
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
@output_option
@connection_options
def check(
    run: str,
    cluster: str | None,
    package: str | None,
    templates: tuple[str, ...],
    history: str | None,
    output_format: str,
    output: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    **request_fields: Any,
) -> int:
    """List what would surprise about a run.

    Unknown locations, marks that get lost, steps that fit nowhere, retries that are ignored, hints
    that are far from what past runs took.
    Follows the PlacementPolicy of CLUSTER, if it holds one.
    """
    from kfp_placement.cli.inputs import read_inputs
    from kfp_placement.cli.output import check_target, emit
    from kfp_placement.cli.redrawing import ProgressLine

    check_target(output)
    with ProgressLine() as progress:
        request = read_inputs(
            run,
            cluster,
            "none" if history is None else history,
            Target(kubeconfig, context, namespace),
            progress,
            package=package,
            templates=templates,
            needs_cluster=False,
        )
        from kfp_placement.check.rules import checked

        report = checked(replace(request, **request_fields), progress)
    emit(_json(report) if output_format == "json" else _text(report, output), output)
    return _exit_code(report)


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
