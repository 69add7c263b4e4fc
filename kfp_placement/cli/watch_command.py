"""`watch`: follows a run until it ends."""

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import click

from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.group import debug_option
from kfp_placement.cli.live_options import (
    Target,
    connect,
    connection_options,
    namespace_options,
    now,
    the_run,
)
from kfp_placement.cli.parameters import DurationType
from kfp_placement.cli.terminal import warn, warning
from kfp_placement.report.visible import visible

if TYPE_CHECKING:
    from kfp_placement.cli.live_block import LiveBlock
    from kfp_placement.live.fetching import NamedRun
    from kfp_placement.live.kinds import Api, JsonObject
    from kfp_placement.live.runs import RunView

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

_REDRAW_SECONDS = 1.0


@click.command(epilog=_EPILOG)
@click.argument("run", metavar="RUN")
@click.option(
    "--timeout",
    type=DurationType(),
    metavar="TIME",
    help="Give up after this time.  [default: never]",
)
@namespace_options
@connection_options
@debug_option
def watch(run: str, timeout: float | None, **target: Any) -> int:
    """Follow a run until it ends.

    Survives restarts of the API server.
    """
    cluster, namespace = connect(Target(**target))
    # Only now: without a cluster the answer needs none of it.
    from kfp_placement.cli.live_block import LiveBlock
    from kfp_placement.live.policy import why_off
    from kfp_placement.live.workflows import why_no_plan

    named_run = the_run(cluster, namespace, run)
    warn(why_off(cluster))
    if named_run.raw is None:
        why = why_no_plan(cluster, named_run.namespace, named_run.name)
        warn(f"if the run gets no plan within seconds, {why}")
    deadline = None if timeout is None else time.monotonic() + timeout
    with LiveBlock() as block:
        return _Watch(cluster, named_run, block, deadline).until_the_end(_Looks(cluster, named_run))


class _Looks(threading.Thread):
    """Follows the run beside the terminal; what it sees goes into a queue."""

    def __init__(self, api: "Api", named_run: "NamedRun") -> None:
        super().__init__(name="watch", daemon=True)
        self.seen: queue.Queue[JsonObject | str | Exception | None] = queue.Queue()
        self._api = api
        self._named_run = named_run

    # `typing.override` is there from Python 3.12 on.
    def run(self) -> None:  # type: ignore[explicit-override]
        """Until the program ends, or an error ends it."""
        from kfp_placement.live.following import follow

        name, namespace = self._named_run.name, self._named_run.namespace
        try:
            for placement in follow(
                self._api, namespace, name, pause=time.sleep, tell=self.seen.put
            ):
                self.seen.put(placement)
        except Exception as error:
            # Raised again where people see it; nobody would see this thread's end.
            self.seen.put(error)


class _Watch:
    """What has been seen so far."""

    def __init__(
        self, api: "Api", named_run: "NamedRun", block: "LiveBlock", deadline: float | None
    ) -> None:
        self._api = api
        self._named_run = named_run
        self._block = block
        self._deadline = deadline
        self._run: RunView | None = None
        self._announced: RunView | None = None

    def until_the_end(self, looks: _Looks) -> ExitCode:
        """Show what comes; returns how it ended.

        Raises:
            ClusterError: the server refuses to go on.
        """
        looks.start()
        while True:
            wait = _REDRAW_SECONDS
            if self._deadline is not None:
                wait = min(wait, self._deadline - time.monotonic())
                if wait <= 0:
                    self._block.clear()
                    click.echo("Timed out; the run has not ended.", err=True)
                    return ExitCode.TIMED_OUT
            try:
                seen = looks.seen.get(timeout=wait)
            except queue.Empty:
                self._redraw()
                continue
            if isinstance(seen, Exception):
                raise seen
            if isinstance(seen, str):
                self._block.print(visible(seen), err=True)
                continue
            code = self._seen(seen)
            if code is not None:
                return code

    def _seen(self, placement: "JsonObject | None") -> ExitCode | None:
        from kfp_placement.live.changes import changes, is_replanned, with_states_seen
        from kfp_placement.live.exceptions import ClusterError
        from kfp_placement.live.formatting import clock_text
        from kfp_placement.live.runs import run_view
        from kfp_placement.live.workflows import with_failure
        from kfp_placement_engine.contract.placement import Phase

        if placement is None:
            return self._absent()
        run = with_states_seen(self._run, run_view(placement, run_name=self._named_run.run_name))
        try:
            run = with_failure(self._api, run)
        except ClusterError as error:
            self._block.print(warning(f"why it failed is not known: {error}"), err=True)
        moment = now()
        for line in changes(self._run, run, moment, self._announced):
            self._block.print(f"{clock_text(moment)} {line}")
        if self._announced is None or is_replanned(self._announced, run):
            self._announced = run if run.placement is not None else None
        self._run = run
        if run.ended:
            return ExitCode.OK if run.phase == Phase.SUCCEEDED else ExitCode.FAILURE
        self._redraw()
        return None

    def _absent(self) -> ExitCode | None:
        if self._run is None:
            self._block.print("The run has no plan yet; waiting for one.", err=True)
            return None
        self._block.print("The run has been deleted.", err=True)
        return ExitCode.FAILURE

    def _redraw(self) -> None:
        from kfp_placement.live.explanation import active_lines

        run = self._run
        if run is not None:
            self._block.draw(lambda style: active_lines(run, now(), style))
