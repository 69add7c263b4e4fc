"""Command `release`: stop holding pods and runs back, for all runs or for some."""

from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import Target, connect, connection_options, namespace_options
from kfp_placement.cli.terminal import tell_error
from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
    ClusterUnreachableError,
)
from kfp_placement_engine.views.formatting import counted, visible

if TYPE_CHECKING:
    from kfp_placement.live.connection import ClusterApi
    from kfp_placement_engine.model.keys import RunKey

_EPILOG = """\b
Without RUN the policy is paused: no new pod is marked or gated and no new run waits in a queue,
also after restarts, until --resume. Then our scheduling gate is taken off every pod, gates of
others stay, and runs that wait in queues begin. With RUN only these runs, and the pods that they
have now, are released, and the policy goes on.

\b
Examples:
  kfp-placement release --dry-run
  kfp-placement release
  kfp-placement release --resume
  kfp-placement release -n team-a taxi-x7k2p

\b
Exit codes: 0 done; 1 something could not be done, all else was; 2 several runs may be meant;
3 no such run, or no controller.
"""


@command(epilog=_EPILOG)
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--resume", is_flag=True, help="Let the policy go on.")
@click.option(
    "--dry-run", is_flag=True, help="Let the API server check every change and make none."
)
@namespace_options
@connection_options
def release(runs: tuple[str, ...], resume: bool, dry_run: bool, **target: Any) -> int:
    """Pause placement and free all pods and runs that wait for it."""
    if resume and runs:
        raise click.UsageError("--resume lets the policy go on; it takes no RUN")
    where = Target(**target)
    if not runs and (where.namespace is not None or where.all_namespaces):
        raise click.UsageError("-n and -A say where to look for RUN; without one all is released")
    api, namespace = connect(where)
    if resume:
        return _resume(api, dry_run=dry_run)
    chosen = None
    if runs:
        from kfp_placement.live.finding import the_run

        chosen = [the_run(api, namespace, run).key for run in runs]
    paused = ExitCode.OK if runs else _pause(api, dry_run=dry_run)
    opened = _open_gates(api, chosen, dry_run=dry_run)
    begun = _let_begin(api, chosen, dry_run=dry_run)
    return paused if opened and begun else ExitCode.FAILURE


def _resume(api: "ClusterApi", *, dry_run: bool) -> ExitCode:
    from kfp_placement.live.releasing import set_paused

    changed = set_paused(api, paused=False, dry_run=dry_run)
    done = "The policy would go on." if dry_run else "The policy goes on."
    click.echo(_result(done if changed else "The policy was not paused.", dry_run))
    return ExitCode.OK


def _pause(api: "ClusterApi", *, dry_run: bool) -> ExitCode:
    """Pause the policy; if that fails, gates are taken off anyway."""
    from kfp_placement.live.releasing import set_paused

    try:
        changed = set_paused(api, paused=True, dry_run=dry_run)
    except ClusterUnreachableError:
        raise
    except ClusterError as error:
        tell_error(f"the policy is not paused: {error}")
        missing = isinstance(error, ClusterMissingError)
        return ExitCode.NOT_FOUND if missing else ExitCode.FAILURE
    done = f"The policy {'would be' if dry_run else 'is'} paused; --resume undoes it."
    click.echo(_result(done if changed else "The policy is paused already.", dry_run))
    return ExitCode.OK


def _open_gates(api: "ClusterApi", chosen: "list[RunKey] | None", *, dry_run: bool) -> bool:
    from kfp_placement.live.releasing import open_gates

    word = "would release" if dry_run else "released"
    try:
        done = open_gates(
            api, chosen, lambda pod: click.echo(f"{word} {visible(pod)}"), dry_run=dry_run
        )
    except ClusterForbiddenError as error:
        tell_error(f"no pod is released: {error}")
        return False
    number = counted(len(done.freed), "pod")
    if done.freed:
        text = f"{number} {'would be released' if dry_run else 'released'}."
    elif done.failures or done.unsatisfiable:
        text = f"{number} released."
    else:
        text = f"{number} released: none has our gate. Without gates no pod is held back."
    click.echo(_result(text, dry_run))
    for pod, why in done.failures.items():
        tell_error(f"{pod} is not released: {why}")
    for pod in done.unsatisfiable:
        tell_error(
            f"{pod} cannot be released: no node was within its latency limit when its gate came"
            " off, and what a pod requires cannot be changed later; delete it"
        )
    return not done.failures and not done.unsatisfiable


def _let_begin(api: "ClusterApi", chosen: "list[RunKey] | None", *, dry_run: bool) -> bool:
    """Let runs begin that wait in queues; print nothing if there are none."""
    from kfp_placement.live.releasing import release_held

    try:
        done = release_held(api, chosen, dry_run=dry_run)
    except ClusterUnreachableError:
        raise
    except ClusterError as error:
        tell_error(f"no run that waits in a queue is released: {error}")
        return False
    for run in done.freed:
        click.echo(f"{visible(run)} {'would begin' if dry_run else 'begins'}")
    if done.freed:
        number = counted(len(done.freed), "run")
        text = f"{number} that waited in a queue {'would begin' if dry_run else 'released'}."
        click.echo(_result(text, dry_run))
    for run, why in done.failures.items():
        tell_error(f"{run} still waits in its queue: {why}")
    return not done.failures


def _result(text: str, dry_run: bool) -> str:
    return f"{text} (dry run: nothing was changed)" if dry_run else text
