"""PipelineHistories of a cluster: list them, advise on memory by them, forget past runs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import (
    ClusterAmbiguousError,
    ClusterError,
    ClusterMissingError,
    allowed_by,
)
from kfp_placement.live.kinds import HISTORIES, WORKFLOWS, our_objects
from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import (
    HISTORIES_PER_PAGE,
    PipelineHistory,
    history_name,
)
from kfp_placement_engine.exceptions import EngineError, InputError
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.model.step_names import StepNames, listed, task_of
from kfp_placement_engine.planning.past_runs.memory_advice import step_advice
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.formatting import shown
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView

if TYPE_CHECKING:
    from kfp_placement_kube.kinds import JsonObject

MAX_HISTORIES = 20_000
"""Largest number of objects that are listed; further ones do not count."""


def list_histories(api: ClusterApi, namespace: str) -> tuple[list[PipelineHistory], list[str]]:
    """Return the histories of a namespace ("" = all), and texts about those that cannot be read.

    Raises:
        ClusterMissingError: histories are not installed.
        ClusterError: the cluster refuses, or gives no answer.
    """
    histories, problems = list[PipelineHistory](), list[str]()
    listing = our_objects(api, HISTORIES, namespace=namespace, limit=HISTORIES_PER_PAGE)
    for raw in islice(listing, MAX_HISTORIES):
        try:
            history = read_resource(PipelineHistory, raw)
        except InputError as error:
            problems.append(f"{error}; it does not count")
        else:
            # The planner uses one object of a pipeline; others, made by hand, do not count.
            if history.metadata.name == history_name(history.spec.pipeline):
                histories.append(history)
    return histories, problems


def histories_named(
    histories: Sequence[PipelineHistory], pipeline: str | None, where: str
) -> Sequence[PipelineHistory]:
    """Return the history of a pipeline, or all histories; at least one.

    Args:
        histories: histories to choose from, one for each pipeline of a namespace.
        pipeline: name of the pipeline; None = all pipelines.
        where: description of the source of the histories, for messages.

    Raises:
        ClusterMissingError: there is no such history; the message names what comes close.
        ClusterAmbiguousError: several namespaces have a history of the pipeline.
    """
    matches = [each for each in histories if pipeline is None or pipeline == each.spec.pipeline]
    if not matches:
        items = ((each.spec.pipeline, each.spec.pipeline, "") for each in histories)
        names = StepNames(items, "pipeline")
        problem = names.why_unresolved(pipeline) if histories else "no pipeline has a history"
        raise ClusterMissingError(f"{problem} ({where})")
    if pipeline is not None and len(matches) > 1:
        namespaces = listed([each.metadata.namespace or "" for each in matches])
        raise ClusterAmbiguousError(
            f"{len(matches)} namespaces have a history of pipeline {shown(pipeline, 120)!r}; name"
            f" one with -n: {namespaces}"
        )
    return matches


def forget(api: ClusterApi, history: PipelineHistory, steps: Sequence[str], now: datetime) -> None:
    """Write into a history that what ended before now does not count.

    Args:
        api: cluster to write to.
        history: history of the pipeline, as read.
        steps: paths of steps; if there are none, whole runs and all steps are forgotten.
        now: present time.

    Raises:
        ClusterConflictError: somebody has changed the history since it was read.
        ClusterError: the history is gone or would be too large, or the cluster refuses or gives no
            answer.
    """
    # Times are written in whole seconds; what has ended by now must lie before this one.
    before, spec = now + timedelta(seconds=1), history.spec
    times = {each.step: each.before for each in spec.forget_steps}
    forgotten: JsonObject = {}
    if steps:
        times |= {step: max(before, times.get(step, before)) for step in steps}
    else:
        border = max(before, spec.forget_before or before)
        times = {step: at for step, at in times.items() if at > border}
        forgotten["forgetBefore"] = time_text(border)
    entries = [{"step": step, "before": time_text(at)} for step, at in times.items()]
    forgotten["forgetSteps"] = entries or None
    metadata = history.metadata
    # A list is replaced as a whole, so the patch must fail if somebody wrote another one.
    patch = {"metadata": {"resourceVersion": metadata.resource_version}, "spec": forgotten}
    with allowed_by("kfp-placement-edit-history"):
        api.patch(HISTORIES, metadata.name or "", metadata.namespace or "", patch)


def with_memory_advice(
    api: ClusterApi, run: RunView, steps: Sequence[StepView]
) -> tuple[StepView, ...]:
    """Return the steps with advice on the memory that they should request, if it is known.

    Advice is an extra: if the history or the Workflow cannot be read, the steps are returned as
    they are, and no error is raised.
    """
    memory = MemoryHistory()
    try:
        raw = api.get(WORKFLOWS, run.name, run.namespace) or {}
        graph = read_workflow(raw, f"Workflow {run.name}", ReadOptions())
        stored = api.get(HISTORIES, history_name(graph.name), run.namespace)
        for past_run in read_resource(PipelineHistory, stored).past_runs():
            memory.observe(past_run)
    except (ClusterError, EngineError):
        return tuple(steps)
    # All iterations of a task have the same request.
    by_task = {step.task: step_advice(graph, step, memory) for step in reversed(graph.steps)}
    texts = {task: advice.text for task, advice in by_task.items() if advice is not None}
    return tuple(replace(step, memory_advice=texts.get(task_of(step.name), "")) for step in steps)
