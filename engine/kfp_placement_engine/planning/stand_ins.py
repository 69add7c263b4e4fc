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
from kfp_placement_engine.units.resources import SCORED_DEFAULTS

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

    The order of precedence, for each resource: what the Workflow says, the last run of the same
    step, the policy's requests for its type, the policy's requests for all steps, and what
    kube-scheduler's scores count for a container without requests (100m CPU and 200Mi). A last run
    of which all requests are known has no others. All iterations of a loop have the same. The image
    is that of the last run, else unknown.

    Args:
        graph: run; any other than an outline is returned as it is.
        policy: policy in force.
        containers: requests and images of the steps in their last runs, by task.
    """
    if not graph.is_outline:
        return graph
    by_type = policy.assumed_by_type()
    of_policy = None if policy.defaults is None else policy.defaults.requests

    def completed(step: Step) -> Step:
        if step.kind is not StepKind.CONTAINER:
            return step
        of_type, last = by_type.get(step.type.lower()), containers.get(step.task)
        requests = {**SCORED_DEFAULTS, **(of_policy or {})}
        requests |= (of_type and of_type.requests) or {}
        if last is not None:
            requests = {**({} if last.is_complete else requests), **last.requests}
            step = replace(step, image=step.image or last.image)
        return replace(step, requests={**requests, **step.requests})

    return replace(graph, steps=tuple(map(completed, graph.steps)))
