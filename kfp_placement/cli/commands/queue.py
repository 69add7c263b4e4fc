"""Commands `queue`, `admit` and `preempt`: list queued runs, start or stop one out of turn."""

from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    format_option,
    namespace_options,
    run_argument,
    searched,
    warn_of_namespace,
)
from kfp_placement.cli.option_types import now
from kfp_placement.cli.terminal import warn
from kfp_placement.live.exceptions import ClusterMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kfp_placement_engine.views.queues import QueueView

_QUEUE_EPILOG = """\b
Examples:
  kfp-placement queue
  kfp-placement queue -A -o wide
  kfp-placement queue -n team-a -o json

\b
Exit codes: 0 listed, or there are none; 1 no answer, or it is refused; 3 queues are not installed.
"""

_ADMIT_EPILOG = """\b
The queue lets the run begin within seconds, whatever it lacks of quota or room. You need the right
to patch RunRequests (ClusterRole kfp-placement-operate-queues).

\b
Examples:
  kfp-placement admit taxi-x7k2p
  kfp-placement admit -n team-a taxi-x7k2p

\b
Exit codes: 0 asked; 1 the run does not wait, or it is refused; 2 several runs may be meant;
3 no such run, or in no queue.
"""

_PREEMPT_EPILOG = """\b
No pod is killed: the run stops after its running steps and goes behind all others. If its queue
still has room for it, it goes on at once, where it was. To keep a run from going on, lower the
queue's quota first. You need the right to patch RunRequests (ClusterRole
kfp-placement-operate-queues).

\b
Examples:
  kfp-placement preempt taxi-x7k2p
  kfp-placement preempt -n team-a taxi-x7k2p

\b
Exit codes: 0 asked; 1 the run does not run, or it is refused; 2 several runs may be meant;
3 no such run, or in no queue.
"""


@command("queue", epilog=_QUEUE_EPILOG)
@namespace_options
@connection_options
@format_option
def queue(output_format: str, **target: Any) -> None:
    """List runs by queue: who waits for what, in which position, who was admitted."""
    api, namespace = connect(Target(**target))
    # Imported here, so that help and errors of the connection come fast.
    from kfp_placement.cli.output import emit, emit_view
    from kfp_placement.live.documents import queue_document, serialized
    from kfp_placement.live.queues import default_queues, list_queued
    from kfp_placement_engine.contract.run_request import RequestPhase
    from kfp_placement_engine.views.queues import not_ready_text, queue_table

    views = [view for view in list_queued(api, namespace) if view.phase != RequestPhase.FINISHED]
    queues = default_queues(api, namespace)
    for each in queues or ():
        warn(not_ready_text(each, namespaces=not namespace))
    if output_format in ("json", "yaml"):
        emit(serialized(queue_document(views), output_format), None)
        return
    if views:
        is_wide = output_format == "wide"
        emit_view(queue_table(views, now(), wide=is_wide, namespaces=not namespace))
    else:
        warn_of_namespace(api, namespace)
    if namespace and queues == ():
        lacks = f"Namespace {namespace} has no RunQueue default: its runs do not wait."
        click.echo(lacks, err=True)
    elif not views:
        click.echo(f"No run waits or runs in a queue in {searched(namespace)}.", err=True)


@command("admit", epilog=_ADMIT_EPILOG)
@run_argument
@namespace_options
@connection_options
def admit(run: str, **target: Any) -> None:
    """Let a run begin that waits in a queue, out of turn."""
    from kfp_placement.live.queues import ask_to_admit

    view = _ask(run, Target(**target), ask_to_admit)
    click.echo(f"{view.key.namespace}/{view.key.name} begins out of turn.")


@command("preempt", epilog=_PREEMPT_EPILOG)
@run_argument
@namespace_options
@connection_options
def preempt(run: str, **target: Any) -> None:
    """Let a run stop after its running steps, and wait behind all others."""
    from kfp_placement.live.queues import ask_to_preempt

    view = _ask(run, Target(**target), ask_to_preempt)
    click.echo(
        f"{view.key.namespace}/{view.key.name} is asked to stop after its running steps; it goes on"
        " when its queue has room for it."
    )


def _ask(run: str, target: Target, ask: "Callable[..., None]") -> "QueueView":
    """Find a run, ask its queue for something, and return how the run waited before that.

    Args:
        run: name of the run.
        target: cluster and namespace.
        ask: request to the queue, given the cluster, the run's view and the time.

    Raises:
        ClusterMissingError: there is no such run, or it is in no queue.
        ClusterError: the cluster refuses, or gives no answer.
    """
    api, namespace = connect(target)
    from kfp_placement.live.finding import the_run
    from kfp_placement.live.queues import queue_of

    key = the_run(api, namespace, run).key
    view = queue_of(api, key)
    if view is None:
        raise ClusterMissingError(
            f"run {key.namespace}/{key.name} is in no queue: its namespace has no RunQueue default,"
            " or you may not read RunRequests there"
        )
    ask(api, view, now())
    return view
