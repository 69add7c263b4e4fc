"""Command `plan`: plan a run and print where every step would go, when and why."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import Target, connection_options
from kfp_placement.cli.option_types import (
    BASELINES,
    CONFIDENCE,
    DURATION,
    FORMATS,
    INPUT_FILE,
    KUBE_VERSION,
    MAKESPAN_WITHIN,
    NAMESPACE,
    TIME,
    WHOLE_NUMBER,
    FormatType,
    NamesType,
    changes,
    output_option,
    run_options,
)
from kfp_placement_engine.views.formatting import visible

_EPILOG = """\b
RUN is a compiled KFP package (pipeline.yaml), an Argo Workflow, a folder with one and with the
templates that it refers to, a workflow in wfformat (JSON), a pipeline in Python (module:pipeline or
file.py:pipeline), or - for stdin.
CLUSTER is what kubectl prints, a Cluster file (see `cluster`) by path or URL, - for stdin, `live`,
which reads the cluster of the kubeconfig (nothing is written), or an example (example:equal,
example:uneven, example:edge):
  kubectl get nodes,pods,pvc,pv,resourcequotas,limitranges -A -o json > cluster.json

\b
Examples:
  kfp-placement plan pipeline.yaml
  kfp-placement plan pipeline.yaml --cluster cluster.json
  kfp-placement plan pipeline.yaml --cluster cluster.yaml -o wide --arg rows=5000
  kfp-placement plan pipelines:taxi --cluster cluster.yaml --duration train=1h --seed 7
  kfp-placement plan run.yaml --cluster cluster.yaml --output plan.html
  kfp-placement plan workflow.yaml --package pipeline.yaml --cluster cluster.yaml
  kfp-placement plan workflow.yaml --with templates/ --cluster cluster.yaml
  kfp-placement plan library.yaml --entrypoint sync --arg what=all
  kfp-placement plan pipeline.yaml --cluster live -n team-a
  kfp-placement plan pipeline.yaml --cluster cluster.yaml --history history.yaml --at 10:14
  kfp-placement plan pipeline.yaml --cluster cluster.yaml --what-if best
  kfp-placement plan pipeline.yaml --cluster cluster.yaml --what-if '+2 of worker'

\b
A CHANGE is one of:
  '+2 of worker'                      two empty nodes more like worker, or like worker-1, worker-2
  '-1 of worker'                      one node fewer
  'gpu-node cpu=32 memory=64Gi'       other sizes; 'worker-* speed=2' another speed
  'loop for-loop-1 limit=4'           or limit=off
  'step train cpu=4 memory=8Gi gpu=1' other requests
  'step train node=worker-2'          other nodes that it may go to; '*' for any
  'step train duration=10m'           another run time
  'step predict max-latency=30ms'     or max-latency=off
  'image python:3.12 everywhere'      held by every node before the run
  'volume data access=ReadWriteMany'  another access mode

\b
The first word may be left out where that is clear: 'train node=worker-2', 'for-loop-1 limit=4',
and 'train cpu=4' where no node has that name. gpu is short for nvidia.com/gpu.

\b
Exit code 4: a step fits no node or is refused (a pod that Kubernetes does not accept), or would be
after the changes; the plan is printed anyway.
"""

_WITHOUT_PAST_RUNS = (
    "--confidence has no effect: it is for ranges that are made of past runs, and this plan rests"
    " on none; name some with --history FILE or --history live"
)


_PLANNER_OPTIONS = (
    "budget_seconds",
    "compare",
    "dispatch",
    "generations",
    "kube_version",
    "makespan_within",
    "marked_only",
    "objective",
    "seed",
)
"""Options that are fields of `PlanOptions`; the others are fields of `PlanRequest`."""


@command(epilog=_EPILOG)
@click.argument("run", metavar="RUN", type=INPUT_FILE)
@click.option(
    "-c",
    "--cluster",
    metavar="CLUSTER",
    type=INPUT_FILE,
    help="Where the run will go: a kubectl dump or Cluster file, its URL, - for stdin, live, or an"
    " example.  [default: example:equal]",
)
@run_options
@click.option(
    "--history",
    type=INPUT_FILE,
    metavar="FILE|live|none",
    help="Past runs to take run times from: what `history --output` wrote, or live, those of the"
    " run's namespace.  [default: live with --cluster live, where there are any, else none]",
)
@click.option(
    "--confidence",
    type=CONFIDENCE,
    metavar="SHARE",
    help="How often the ranges that are made of past runs are to hold; needs --history."
    "  [default: as the policy says, else 90%]",
)
@click.option(
    "--at",
    type=TIME,
    metavar="TIME",
    help="When the run is submitted, to see times of day: now, a date with a time, or 10:26 or"
    " 10:26:30, which is tomorrow's if it has passed today.",
)
@click.option(
    "-n",
    "--namespace",
    type=NAMESPACE,
    metavar="NAME",
    help="Namespace of the run, which decides whose volume claims it uses.  [default: the run's"
    " own, if any, else with live the context's, else the only one of the history]",
)
@click.option(
    "--seed", type=WHOLE_NUMBER, help="Seed of the search.  [default: the policy's, else 0]"
)
@click.option(
    "--budget",
    "budget_seconds",
    type=DURATION,
    metavar="TIME",
    help="Time for the search.  [default: the policy's, else 2s]",
)
@click.option(
    "--generations",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Stop the search after N generations instead; reproduces a plan exactly.",
)
@click.option(
    "--objective",
    type=click.Choice(["completion", "makespan", "paper", "packing"]),
    help="What makes a plan better, after placed steps and latency rules.  [default: the policy's,"
    " else completion]",
)
@click.option(
    "--makespan-within",
    type=MAKESPAN_WITHIN,
    metavar="LIMIT",
    help="How late the last of several runs may end, 3% or 20m; decides nothing for one run, as"
    " here.  [default: the policy's, else none]",
)
@click.option(
    "--dispatch",
    type=click.Choice(["auto", "ready", "ordered"]),
    help="ready: pods start when they can; ordered: a step may wait for its node.  [default: what"
    " the policy's actuator does, else auto]",
)
@click.option(
    "--kube-version",
    type=KUBE_VERSION,
    metavar="X.Y",
    default="1.36",
    show_default=True,
    help="Version of the default scheduler that kube-default imitates.",
)
@click.option(
    "--compare",
    type=NamesType(BASELINES),
    metavar="NAMES",
    default="kube-default,heft",
    show_default=True,
    help=f"Schedulers to simulate as well, with commas: {', '.join(BASELINES)}; or none.",
)
@click.option(
    "--marked-only",
    is_flag=True,
    help="Plan only marked steps, as the cluster does; others go where the default sends them.",
)
@click.option(
    "--what-if",
    "changes",
    multiple=True,
    metavar="CHANGE",
    callback=changes,
    help="Plan again with this changed, such as '+2 of worker'; best: name the single changes that"
    " make the run shorter. Repeatable.",
)
@click.option(
    "-o",
    "output_format",
    type=FormatType(FORMATS),
    help="Format.  [default: table, or what the ending of --output names]",
)
@output_option
@connection_options
def plan(
    run: str,
    cluster: str | None,
    package: str | None,
    templates: tuple[str, ...],
    history: str | None,
    at: datetime | None,
    output_format: str | None,
    output: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    **request_fields: Any,
) -> int:
    """Show where every step of a run would go.

    Which node, when, why, and how that compares with the default scheduler. Follows the
    PlacementPolicy of CLUSTER, if it holds one. Contacts no cluster but with --cluster live.
    """
    from kfp_placement.cli.inputs import read_inputs
    from kfp_placement.cli.output import check_target, emit, format_for
    from kfp_placement.cli.plan_result import rendered, report_unplaced_of_answer
    from kfp_placement.cli.redrawing import ProgressLine
    from kfp_placement.cli.terminal import warn

    check_target(output)
    chosen = format_for(output_format, output)
    options = {name: request_fields.pop(name) for name in _PLANNER_OPTIONS}
    target = Target(kubeconfig, context, namespace)
    with ProgressLine() as progress:
        request = read_inputs(
            run, cluster, history, target, progress, package=package, templates=templates
        )
        request = replace(request, options=options, **request_fields)
        from kfp_placement.planning import planned

        plan_answer = planned(request, progress)
    submitted = replace(plan_answer.plan.run, submitted_at=at)
    plan_answer = replace(plan_answer, plan=replace(plan_answer.plan, run=submitted))
    emit(rendered(plan_answer, chosen, output), output)
    if request.confidence is not None and plan_answer.plan.promise is None:
        warn(_WITHOUT_PAST_RUNS)
    if output is not None:
        click.echo(f"Wrote {visible(str(output))}", err=True)
    is_shown = output is None and chosen in ("table", "wide")
    return report_unplaced_of_answer(plan_answer, is_shown=is_shown)
