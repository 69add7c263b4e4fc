"""`bench`: published tables and checks, reproduced."""

from pathlib import Path

import click

from kfp_placement.cli.group import debug_option
from kfp_placement.cli.parameters import LOCAL_PATH, DurationType

_DATA_HELP = "default: the variable KFP_PLACEMENT_DATA, else ../shared/data"


@click.group(
    epilog="""\b
Examples:
  kfp-placement bench scheduler
  kfp-placement bench paper
"""
)
def bench() -> None:
    """Reproduce published tables and checks."""


@bench.command(
    epilog="""\b
Examples:
  kfp-placement bench scheduler
  kfp-placement bench scheduler --data recordings.json.gz

\b
Exit codes: 0 all equal, 1 differences (they are printed) or nothing was scored, 3 no data.
"""
)
@click.option(
    "--data",
    metavar="FILE",
    type=LOCAL_PATH,
    help=f"The recording, or the folder it is in.  [{_DATA_HELP}]",
)
@debug_option
def scheduler(data: Path | None) -> int:
    """Replay what the real kube-scheduler chose and compare: nodes, scores, choice."""
    from kfp_placement.bench.scheduler import main

    return main(data, click.echo)


@bench.command(
    epilog="""\b
Examples:
  kfp-placement bench paper
  kfp-placement bench paper --seeds 20 --budget 10s --output paper.md

\b
Exit codes: 0 done, 1 a target is missed or a bound is wrong.
"""
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=3,
    show_default=True,
    help="Draws of each mix and kind of durations; the committed table has 20.",
)
@click.option(
    "--budget",
    type=DurationType(),
    metavar="TIME",
    default="1s",
    show_default=True,
    help="Time for each search; the committed table has 10s.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    help="Also write the tables to FILE, as Markdown.",
)
@debug_option
def paper(seeds: int, budget: float, output: Path | None) -> int:
    """Repeat the paper's experiment: its queue, its model, fair baselines and the bound."""
    from kfp_placement.bench.paper import PaperSettings, run, show
    from kfp_placement.cli.output import check_target
    from kfp_placement.cli.progress import LiveLine

    check_target(output)
    with LiveLine() as progress:
        result = run(PaperSettings(seeds, budget), progress)
    return show(result, click.echo, output)
