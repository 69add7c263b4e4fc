"""The group of all commands and the entry point of both programs."""

import sys
from typing import Any

import click

from kfp_placement.cli.check_command import check
from kfp_placement.cli.cluster_command import cluster
from kfp_placement.cli.completion_command import completion
from kfp_placement.cli.demo_command import demo
from kfp_placement.cli.explain_command import explain
from kfp_placement.cli.group import PlacementGroup, debug_option, program_name
from kfp_placement.cli.list_command import list_runs
from kfp_placement.cli.plan_command import plan
from kfp_placement.cli.release_command import release
from kfp_placement.cli.watch_command import watch

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


@click.group(
    cls=PlacementGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="kfp-placement", message="kfp-placement %(version)s")
@debug_option
def cli() -> None:
    """Plan where the steps of a Kubeflow Pipelines run go, before it starts.

    And see in a cluster where they went, and what they wait for.
    """


for _command in (
    plan,
    check,
    cluster,
    list_runs,
    explain,
    watch,
    release,
    demo,
    completion,
):
    cli.add_command(_command)


def main(args: list[str] | None = None) -> Any:
    """Run the command line; exits."""
    return cli.main(args, prog_name=program_name(sys.argv[0]))
