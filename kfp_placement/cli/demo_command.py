"""`demo`: the taxi pipeline on the thesis' cluster, for strangers, in one screen."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kfp_placement.cli.group import debug_option
from kfp_placement.cli.parameters import LOCAL_PATH, DurationType
from kfp_placement.report.visible import visible

if TYPE_CHECKING:
    from kfp_placement.report.table import TableStyle
    from kfp_placement_engine.model.plan import Plan
    from kfp_placement_engine.model.run_graph import RunGraph, Step

LOCATIONS = ("HOME-EDGE", "NITLAB-EDGE", "NITOS-CLOUD")
"""Where the users of the sample may be; there is a package for each, the first is shown in full."""

PREDICT = "predict"

_COLUMNS = 120
"""Width of the plan where there is no terminal."""

_INTRO = """\
An author marks the steps of a pipeline in Python and compiles it with KFP as always:

    @placed(type="Training", duration="20m", outputs={"model": "50Mi"}, cpu="1500m")
    @dsl.component
    def train(...): ...

    place(predict(...), type="Predict", location="HOME-EDGE", max_latency="20ms")
"""

_NEXT = """\
Next: plan a pipeline of yours on a cluster of yours, without touching it.

    kubectl get nodes,pods,pvc,pv -A -o json > dump.json
    kfp-placement cluster dump.json --output cluster.yaml
    kfp-placement plan pipeline.yaml --cluster cluster.yaml -o wide
"""


@dataclass(frozen=True)
class _Planned:
    location: str
    graph: "RunGraph"
    plan: "Plan"


@click.command(
    epilog="""\b
Examples:
  kfp-placement demo
  kfp-placement demo --output /tmp/plan.html
"""
)
@click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    default=Path("taxi-plan.html"),
    show_default=True,
    help="Where to write the report.",
)
@click.option(
    "--budget",
    type=DurationType(),
    metavar="TIME",
    default="1s",
    show_default=True,
    help="Time for each search.",
)
@click.option("--seed", type=click.IntRange(min=0, max=2**63 - 1), default=0, show_default=True)
@debug_option
def demo(output: Path, budget: float, seed: int) -> int:
    """Plan a sample pipeline and write a report.

    Seven steps that learn to predict the tips of taxi trips, on one large node in the cloud and two
    small ones at the edge. Contacts nothing and nobody.
    """
    from kfp_placement.cli.output import check_target, emit, table_style
    from kfp_placement.cli.plan_command import finish
    from kfp_placement.report.html import plan_html

    check_target(output)
    planned = _plans(budget, seed)
    style = table_style(None, wide=False)
    emit(_story(planned, style), None)
    emit(plan_html(planned[0].plan), output)
    click.echo(f"\nReport with time line and graph: {visible(str(output.resolve()))}")
    click.echo(f"\n{_NEXT}", nl=False)
    return finish(planned[0].plan)


def _plans(budget: float, seed: int) -> list[_Planned]:
    from kfp_placement._package import Package
    from kfp_placement.cli.progress import LiveLine
    from kfp_placement.planning import GivenOptions, RunSource, plan_request, read_graph
    from kfp_placement_engine.readers import read_cluster

    options = GivenOptions(budget_seconds=budget, seed=seed)
    with LiveLine() as progress:
        cluster = read_cluster(sample("cluster.yaml"), name="the thesis' cluster")
        planned = []
        for location in LOCATIONS:
            file = f"taxi-{location.lower()}.yaml"
            graph = read_graph(RunSource(Package(file, sample(file))), cluster, options)
            plan = plan_request(graph, cluster, options=options).plan(progress)
            planned.append(_Planned(location, graph, plan))
    return planned


def sample(name: str) -> bytes:
    """A file of the sample, as it ships with the package."""
    from importlib import resources

    return resources.files("kfp_placement").joinpath("demo", name).read_bytes()


def _story(planned: list[_Planned], style: "TableStyle") -> str:
    from kfp_placement.report.table import plan_table

    first = planned[0]
    parts = [
        _INTRO,
        "The marks travel with the compiled package:\n",
        _marks(first.graph, style),
        f"The plan, made before the first step starts, for users at {first.location}:\n",
        # The reasons are the point: they stand beside the plan, or below where there is no room.
        plan_table(first.plan, replace(style, reasons=True, columns=style.columns or _COLUMNS)),
        "Where the prediction goes when the users are elsewhere:\n",
        _elsewhere(planned, style),
    ]
    return "\n".join(parts)


def _marks(graph: "RunGraph", style: "TableStyle") -> str:
    from kfp_placement.report.columns import Column, layout

    columns = [Column(title) for title in ("STEP", "TYPE", "LOCATION", "RUN TIME", "OUTPUTS")]
    return _indented(layout(columns, [_mark(step) for step in graph.steps], style.columns))


def _mark(step: "Step") -> list[str]:
    from kfp_placement.report import values
    from kfp_placement_engine.model.quantities import format_resource

    outputs = [format_resource("memory", size) for size in step.output_bytes.values()]
    location = step.location
    if step.max_latency_ms is not None:
        location += f" within {values.latency(step.max_latency_ms)}"
    return [
        step.name,
        step.type,
        location,
        values.duration(step.duration_seconds),
        ", ".join(outputs),
    ]


def _elsewhere(planned: list[_Planned], style: "TableStyle") -> str:
    from kfp_placement.report import summary, values
    from kfp_placement.report.columns import Column, layout

    rows = []
    for item in planned:
        step = item.plan.step(PREDICT)
        node = step.node or "no node"
        makespan = summary.makespan(item.plan.figures)
        rows.append([item.location, node, values.latency(step.latency_ms), makespan])
    titles = ("USERS AT", "PREDICT GOES TO", "ROUND TRIP", "MAKESPAN")
    return _indented(layout([Column(title) for title in titles], rows, style.columns))


def _indented(lines: list[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)
