"""Instances for tests of the peers, with times that are exact in floats."""

from dataclasses import replace

from benchmarks.cases import Instance, hash_of
from kfp_placement_engine import Cluster, RunGraph
from kfp_placement_engine.lowering import Lowered
from tests.support.builders import lowered


def an_instance(run: RunGraph, cluster: Cluster) -> Instance:
    """A run under ordered dispatch; `ROUND_NUMBERS` hold for what is unknown."""
    return instance_of(run, cluster, lowered(run, cluster, dispatch="ordered"))


def instance_of(run: RunGraph, cluster: Cluster, low: Lowered) -> Instance:
    """The same of what is lowered already; kube-default takes the first of several best nodes."""
    return Instance(
        run=run,
        problem=replace(low.problem, ties="first"),
        activities=low.step_activities[0],
        nodes=low.problem.node_names,
        input_hash=hash_of(run, cluster),
    )


def placed(instance: Instance, schedule) -> dict[str, tuple[float, str]]:
    """Start and node of each step."""
    return {
        name: (float(schedule.start[at]), instance.nodes[schedule.node[at]])
        for name, at in instance.activities.items()
    }
