"""Command `cluster`: write a small Cluster file from a kubectl dump or a live cluster."""

from pathlib import Path
from typing import Any

import click

from kfp_placement.cli.group import command
from kfp_placement.cli.live_options import Target, connection_options
from kfp_placement.cli.option_types import INPUT_FILE, output_option
from kfp_placement.cli.terminal import warn

_EPILOG = """\b
A dump of pods holds their environment, often with secrets in it; a Cluster file holds nodes, the
room taken on them, latencies and claims, and nothing else. It is what an admin hands to authors.

\b
Examples:
  kfp-placement cluster live --output cluster.yaml
  kubectl get nodes,pods,pvc,pv,resourcequotas,limitranges -A -o json > dump.json
  kfp-placement cluster dump.json --output cluster.yaml
  kfp-placement cluster - < dump.json > cluster.yaml
"""


@command(epilog=_EPILOG)
@click.argument("dump", metavar="DUMP", type=INPUT_FILE)
@output_option
@connection_options
def cluster(dump: str, output: Path | None, **target: Any) -> None:
    """Make a short Cluster file from what kubectl prints.

    DUMP is a kubectl dump or Cluster file, its URL, - for stdin, `live` for the kubeconfig's
    cluster, or an example (example:equal).
    """
    from kfp_placement.cli.inputs import connect_live, read_cluster_source
    from kfp_placement.cli.output import check_target, emit
    from kfp_placement.cli.redrawing import ProgressLine

    check_target(output)
    live = connect_live(dump, Target(**target))
    with ProgressLine() as progress:
        described = read_cluster_source(dump, progress, live).cluster
    from kfp_placement_engine.readers.cluster_writer import write_cluster_file

    emit(write_cluster_file(described), output)
    for notice in described.notices:
        warn(notice.message)
