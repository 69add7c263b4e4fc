"""Declared speeds of nodes beside what past steps took there."""

from collections.abc import Iterable, Iterator

from kfp_placement.check.findings import Finding, Level
from kfp_placement_engine.contract.keys import SPEED_LABEL
from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history.node_speeds import undeclared_speeds
from kfp_placement_engine.model.cluster import Cluster


def wrong_speeds(histories: Iterable[PipelineHistory], cluster: Cluster) -> Iterator[Finding]:
    """Yield the nodes on which steps took longer, or less, than the declared speeds say.

    Args:
        histories: past runs of one namespace.
        cluster: its nodes say what is declared now; of others past runs alone tell.
    """
    runs = [run for each in histories for run in each.past_runs()]
    declared = {node.name: node.speed for node in cluster.nodes}
    for name, factor in sorted(undeclared_speeds(runs).items()):
        if cluster.nodes and name not in declared:
            continue
        speed = declared.get(name, 1.0) / factor
        yield Finding(
            Level.WARNING,
            "node-speed",
            f"steps take {factor:.2g} times as long on {name} as on other nodes: declare its speed,"
            f" for example with the node label {SPEED_LABEL}: {speed:.2g}",
        )
