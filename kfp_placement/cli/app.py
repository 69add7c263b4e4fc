"""Entry point of both programs, and the group of all commands."""

import gc
import sys
from typing import Any

import click

from kfp_placement.cli.group import PlacementGroup, debug_option, program_name

_EPILOG = """\b
Examples:
  kfp-placement demo
  kfp-placement plan pipeline.yaml --cluster cluster.yaml
  kfp-placement plan pipelines:taxi --cluster cluster.yaml -o html --output plan.html
  kfp-placement list -A
  kfp-placement explain taxi-x7k2p predict

\b
Exit codes: 0 ok, 1 unreadable input or failure, 2 usage, 3 file, module, data, run or step not
found, 4 a step is unschedulable (the output is still printed), 5 timed out.
"""


COMMANDS = {
    "plan": "plan:plan",
    "check": "check:check",
    "cluster": "cluster:cluster",
    "list": "list:list_runs",
    "explain": "explain:explain",
    "watch": "watch:watch",
    "queue": "queue:queue",
    "admit": "queue:admit",
    "preempt": "queue:preempt",
    "history": "history:history",
    "release": "release:release",
    "demo": "demo:demo",
    "completion": "completion:completion",
}
"""Name of each command -> module and function in it, which is imported when the command is used."""


@click.group(
    cls=PlacementGroup,
    members={name: f"{__package__}.commands.{place}" for name, place in COMMANDS.items()},
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="kfp-placement", message="kfp-placement %(version)s")
@debug_option
def cli() -> None:
    """Plan where the steps of a Kubeflow Pipelines run go, before it starts.

    And see in a cluster where they went, and what they wait for.
    """


_COLLECT_AFTER = 100_000
"""New objects after which Python collects reference cycles; 700 by default."""


def main(args: list[str] | None = None) -> Any:
    """Run the command line and exit."""
    # Most commands end before anything is worth collecting: what they allocate are modules.
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
    return cli.main(args, prog_name=program_name(sys.argv[0]))
