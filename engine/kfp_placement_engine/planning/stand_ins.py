"""Stand-ins for requests and images of an outline, whose file says neither.

Planner, queue, command line and SDK use this module, so that a preview assumes what the cluster
assumes.
"""

from collections.abc import Mapping
from dataclasses import replace

from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import PastContainer
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.units.resources import SCORED_DEFAULTS, Resources

NO_CONTAINERS: Mapping[str, PastContainer] = {}
"""Containers of a run without past runs."""


def past_containers(graph: RunGraph, past: Past) -> Mapping[str, PastContainer]:
    """Return requests and images that an outline's steps had last, by task.

    Args:
        graph: run; only that of an outline lacks them.
        past: past runs of its pipeline.
    """
    if not graph.is_outline:
        return NO_CONTAINERS
    tasks = dict.fromkeys(step.task for step in graph.steps)
    last = ((task, past.steps.container(graph.name, task)) for task in tasks)
    return {task: container for task, container in last if container is not None}


def with_stand_ins(
    graph: RunGraph,
    policy: PlanningPolicy,
    containers: Mapping[str, PastContainer] = NO_CONTAINERS,
) -> RunGraph:
    """Return an outline with stand-ins for the requests and images that its file does not say.

    The order of precedence: the last run of the same step, the policy's requests for its type, the
    policy's requests for all steps, and what kube-scheduler's scores count for a container without
    requests (100m CPU and 200Mi). All iterations of a loop have the same. The image is that of the
    last run, else unknown.

    Args:
        graph: run; any other than an outline is returned as it is.
        policy: policy in force.
        containers: requests and images of the steps in their last runs, by task.
    """
    if not graph.is_outline:
        return graph
    by_type = policy.assumed_by_type()
    of_policy = None if policy.defaults is None else policy.defaults.requests
    usual = SCORED_DEFAULTS if of_policy is None else of_policy

    def completed(step: Step) -> Step:
        if step.kind is not StepKind.CONTAINER or step.requests:
            return step
        of_type = by_type.get(step.type.lower())
        assumed = usual if of_type is None or of_type.requests is None else of_type.requests
        return _like(containers.get(step.task), step, assumed)

    return replace(graph, steps=tuple(map(completed, graph.steps)))


def _like(last: PastContainer | None, step: Step, assumed: Resources) -> Step:
    """Return a step with requests and image of its last run, if there was one."""
    if last is None:
        return replace(step, requests=assumed)
    requests = last.requests if last.is_complete else {**assumed, **last.requests}
    return replace(step, requests=requests, image=step.image or last.image)
