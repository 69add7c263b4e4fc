"""`bench`: published tables and checks, reproduced."""

from pathlib import Path
from typing import Any

import click

from kfp_placement.cli.group import debug_option
from kfp_placement.cli.parameters import DurationType

_DATA_HELP = "default: the variable KFP_PLACEMENT_DATA, else ../shared/data"


@click.group(
    epilog="""\b
Examples:
  kfp-placement bench scheduler
  kfp-placement bench paper --seeds 3 --budget 2s
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
Exit codes: 0 all equal, 1 differences (they are printed), 3 no data.
"""
)
@click.option(
    "--data",
    metavar="FILE",
    type=click.Path(path_type=Path),
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
  kfp-placement bench paper --seeds 3 --budget 2s

\b
Exit codes: 0 done, 1 a bound or a target is missed, 3 no data.
"""
)
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=f"Folder of the data.  [{_DATA_HELP}]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=20,
    show_default=True,
    help="How many seeds.",
)
@click.option(
    "--budget",
    type=DurationType(),
    metavar="TIME",
    default="10s",
    show_default=True,
    help="Time for each search.",
)
@debug_option
def paper(data: Path | None, seeds: int, budget: float) -> Any:
    """Repeat the paper's experiment: its queue, its model, fair baselines and the bound."""
    from kfp_placement.bench.paper import main

    return main(data, click.echo, seeds=seeds, budget_seconds=budget)
