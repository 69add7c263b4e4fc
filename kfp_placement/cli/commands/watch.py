"""Command `watch`: follow a run until it ends."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    namespace_options,
    run_argument,
)
from kfp_placement.cli.option_types import DURATION, now
from kfp_placement.cli.terminal import warn

if TYPE_CHECKING:
    from kfp_placement.cli.redrawing import RedrawnBlock
    from kfp_placement.live.watching import Outcome

_MAX_STEPS = 100
"""Steps that are laid out; those that do not fit on the terminal are cut off."""

_EPILOG = """\b
RUN is as for `explain`. On a terminal the steps that run or wait are shown and redrawn; elsewhere
there is a line for each change.

\b
Examples:
  kfp-placement watch taxi-x7k2p
  kfp-placement watch taxi-x7k2p --timeout 2h && echo done

\b
Exit codes: 0 the run succeeded; 1 it failed, was refused or deleted; 2 several runs may be meant;
3 no such run; 5 it has not ended in time.
"""


@command(epilog=_EPILOG)
@run_argument
@click.option(
    "--timeout", type=DURATION, metavar="TIME", help="Give up after this time.  [default: never]"
)
@namespace_options
@connection_options
def watch(run: str, timeout: float | None, **target: Any) -> int:
    """Follow a run until it ends.

    Survives restarts of the API server.
    """
    api, namespace = connect(Target(**target))
    # Imported here, so that help and errors of the connection come fast.
    from kfp_placement.cli.redrawing import RedrawnBlock
    from kfp_placement.live.finding import the_run
    from kfp_placement.live.policy import why_off
    from kfp_placement.live.queues import queue_of
    from kfp_placement.live.unplanned_runs import why_no_plan
    from kfp_placement.live.watching import looks
    from kfp_placement_engine.views.explanation import progress

    named_run = the_run(api, namespace, run)
    warn(why_off(api))
    if named_run.raw is None and queue_of(api, named_run.key) is None:
        why = why_no_plan(api, named_run.namespace, named_run.name)
        warn(f"if the run gets no plan within seconds, {why}")
    with RedrawnBlock() as block:
        for look in looks(api, named_run, now=now, timeout_seconds=timeout):
            for note in look.notes:
                block.print(note, err=True)
            for line in look.lines:
                block.print(line)
            if look.outcome is not None:
                return _end(look.outcome, block)
            if look.run is not None:
                block.draw(progress(replace(look.run, seen_at=now()), _MAX_STEPS))
    raise AssertionError("a run is followed until there is an outcome")


def _end(outcome: "Outcome", block: "RedrawnBlock") -> ExitCode:
    from kfp_placement.live.watching import Outcome

    if outcome is Outcome.TIMED_OUT:
        block.clear()
        click.echo("Timed out; the run has not ended.", err=True)
        return ExitCode.TIMED_OUT
    return ExitCode.OK if outcome is Outcome.SUCCEEDED else ExitCode.FAILURE
