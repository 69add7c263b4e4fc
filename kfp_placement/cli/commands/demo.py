"""Command `demo`: plan a sample that comes with the package, and explain the plan."""

from pathlib import Path

import click

from kfp_placement.cli.group import command
from kfp_placement.cli.option_types import DURATION, LOCAL_PATH, WHOLE_NUMBER
from kfp_placement_engine.views.formatting import visible

SAMPLES = ("unequal-steps", "taxi")
"""Samples that can be planned; the first is the default."""

_NEXT = """\
Next: plan a pipeline of yours on a cluster of yours, without touching it.

    kubectl get nodes,pods,pvc,pv,resourcequotas,limitranges -A -o json > dump.json
    kfp-placement cluster dump.json --output cluster.yaml
    kfp-placement plan pipeline.yaml --cluster cluster.yaml -o wide
"""


@command(
    epilog="""\b
Examples:
  kfp-placement demo
  kfp-placement demo taxi --output /tmp/plan.html
"""
)
@click.argument("sample", type=click.Choice(SAMPLES), default=SAMPLES[0])
@click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    help="Where to write the report.  [default: SAMPLE-plan.html]",
)
@click.option(
    "--budget",
    type=DURATION,
    metavar="TIME",
    default="1s",
    show_default=True,
    help="Time for each search.",
)
@click.option("--seed", type=WHOLE_NUMBER, default=0, show_default=True)
def demo(sample: str, output: Path | None, budget: float, seed: int) -> int:
    """Plan a sample pipeline and write a report.

    unequal-steps: seven trainings of unequal length on three workers, beside what the default
    scheduler does. taxi: a pipeline that predicts the tips of taxi trips, in the cloud and at the
    edge, near its users. Contacts nothing and nobody.
    """
    from kfp_placement.cli.commands import demo_stories
    from kfp_placement.cli.output import check_target, emit, text_style
    from kfp_placement.cli.plan_result import report_unplaced
    from kfp_placement.cli.redrawing import ProgressLine
    from kfp_placement_engine.render.html import html_page
    from kfp_placement_engine.views.plans.detail import PAGE
    from kfp_placement_engine.views.plans.view import plan_view

    target = output or Path(f"{sample}-plan.html")
    check_target(target)
    tell = demo_stories.taxi if sample == "taxi" else demo_stories.unequal_steps
    options = {"budget_seconds": budget, "seed": seed}
    with ProgressLine() as progress:
        story = tell(options, text_style(None), progress)
    emit(story.text, None)
    emit(html_page(plan_view(story.plan, PAGE)), target)
    click.echo(f"\nReport with time line and graph: {visible(str(target.resolve()))}")
    click.echo(f"\n{_NEXT}", nl=False)
    return report_unplaced(story.plan)
