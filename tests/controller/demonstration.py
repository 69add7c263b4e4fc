"""What demos on a test control plane share: options, start, lines with seconds, and the end."""

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import housekeeping
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.support.installation import Installation, InstallationOptions

SHORTER = 60
POLICY = {"engine": {"budget": "500ms"}, "defaults": {"driver": "200ms"}}
"""Runs are short here, so planning must be too."""

Say = Callable[[str], None]


def say(line: str) -> None:
    """Print a line, at once also into a pipe."""
    print(line, flush=True)


class Clock:
    """Prints lines that begin with the seconds since this was made.

    Args:
        say: prints a line.

    Attributes:
        started: when it was made, in seconds of `time.monotonic`.
    """

    def __init__(self, say: Say = say) -> None:
        self._say = say
        self.started = time.monotonic()
        self._started_at = datetime.now(UTC)

    @property
    def seconds(self) -> float:
        """How long it is now."""
        return time.monotonic() - self.started

    def seconds_to(self, moment: datetime) -> float:
        """How long after the start a moment is."""
        return (moment - self._started_at).total_seconds()

    def line(self, text: str, seconds: float | None = None) -> None:
        """Print a line about a moment; None = now."""
        self._say(f"{self.seconds if seconds is None else seconds:8.1f} s  {text}")


def exit_code(show: Callable[[], int]) -> int:
    """Show something; returns the exit code, also of errors and of Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return show()
    except ControlPlaneError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that all demos have."""
    parser.add_argument(
        "--keep", action="store_true", help="keep it after the run, to try commands, until Ctrl-C"
    )
    parser.add_argument(
        "--shorter",
        type=_divisor,
        default=SHORTER,
        metavar="N",
        help="steps take an Nth of their time (default: %(default)s)",
    )


def _divisor(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no whole number from 1 to 999999999")
    return int(text)


@contextlib.contextmanager
def at_work(
    processes: str,
    nodes: list[JsonObject],
    options: InstallationOptions,
    plane_options: PlaneOptions,
) -> Iterator[Installation]:
    """A control plane with an installation at work, and saying so.

    Args:
        processes: what is started, in words.
        nodes: of the cluster.
        options: of the installation.
        plane_options: of the control plane.
    """
    # Python tries the folder out first, with a file that an interrupt would leave behind.
    tempfile.gettempdir()
    say(f"Starting etcd, the API server, {processes} ...")
    clock = Clock()
    with ControlPlane(plane_options, say) as plane:
        housekeeping.add_nodes(plane.api, *nodes)
        with Installation(plane, options) as installation:
            say(f"They run, after {clock.seconds:.0f} s.")
            yield installation


def stay() -> None:
    """Wait for Ctrl-C."""
    say("\nThe cluster stays until Ctrl-C.")
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        say("\nStopping it.")
