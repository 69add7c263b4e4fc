"""PipelineHistories of a cluster: read them, look at steps by them, tell them what not to count."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from kfp_placement.live.exceptions import (
    ClusterAmbiguousError,
    ClusterError,
    ClusterMissingError,
    allowed_by,
)
from kfp_placement.live.kinds import HISTORIES, WORKFLOWS, Api, JsonObject, our_objects
from kfp_placement_engine.contract.pipeline_history import (
    HISTORIES_PER_PAGE,
    PipelineHistory,
    history_name,
)
from kfp_placement_engine.contract.resources import read_resource
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

MAX_HISTORIES = 20_000
"""Objects that are listed; of more, the others do not count."""


def list_histories(api: Api, namespace: str) -> tuple[list[PipelineHistory], list[str]]:
    """The histories of a namespace ("" = all), and in words what does not count.

    Raises:
        ClusterMissingError: histories are not installed.
        ClusterError: refused, or no answer.
    """
    found, problems = list[PipelineHistory](), list[str]()
    listing = our_objects(api, HISTORIES, namespace=namespace, limit=HISTORIES_PER_PAGE)
    for raw in islice(listing, MAX_HISTORIES):
        try:
            history = read_resource(PipelineHistory, raw)
        except InputError as error:
            problems.append(f"{error}; it does not count")
        else:
            # Of one pipeline the planner knows one object, whatever others somebody has made.
            if history.metadata.name == history_name(history.spec.pipeline):
                found.append(history)
    return found, problems


def histories_named(
    histories: Sequence[PipelineHistory], pipeline: str | None, where: str
) -> Sequence[PipelineHistory]:
    """The history of the pipeline of that name, or all of them; at least one.

    Args:
        histories: one for each pipeline of a namespace.
        pipeline: its name; None = all.
        where: where was looked, for messages.

    Raises:
        ClusterMissingError: there is none; the message names what comes close.
        ClusterAmbiguousError: several namespaces have one.
    """
    found = [each for each in histories if pipeline in (None, each.spec.pipeline)]
    if not found:
        names = StepNames(((each.spec.pipeline,) * 2 + ("",) for each in histories), "pipeline")
        problem = names.problem(pipeline) if histories else "no pipeline has a history"
        raise ClusterMissingError(f"{problem} ({where})")
    if pipeline is not None and len(found) > 1:
        namespaces = listed([each.metadata.namespace or "" for each in found])
        raise ClusterAmbiguousError(
            f"{len(found)} namespaces have a history of pipeline {shown(pipeline, 120)!r}; name one"
            f" with -n: {namespaces}"
        )
    return found


def forget(api: Api, history: PipelineHistory, steps: Sequence[str], now: datetime) -> None:
    """Say in a history that what ended before now does not count.

    Args:
        api: the cluster.
        history: of a pipeline.
        steps: paths of the only steps that are meant; none = all, and whole runs.
        now: the time.

    Raises:
        ClusterConflictError: somebody has written it since it was read.
        ClusterError: it is gone, has too many steps, or is refused; or no answer.
    """
    # Moments are written in whole seconds; what has ended by now must be before this one.
    before, spec = now + timedelta(seconds=1), history.spec
    times = {each.step: each.before for each in spec.forget_steps}
    forgotten: JsonObject = {}
    if steps:
        times |= {step: max(before, times.get(step, before)) for step in steps}
    else:
        border = max(before, spec.forget_before or before)
        times = {step: at for step, at in times.items() if at > border}
        forgotten["forgetBefore"] = time_text(border)
    left = [{"step": step, "before": time_text(at)} for step, at in times.items()]
    forgotten["forgetSteps"] = left or None
    metadata = history.metadata
    # Lists are replaced as a whole, so nobody may have written another one in between.
    patch = {"metadata": {"resourceVersion": metadata.resource_version}, "spec": forgotten}
    with allowed_by("kfp-placement-edit-history"):
        api.patch(HISTORIES, metadata.name or "", metadata.namespace or "", patch)


def with_memory_advice(api: Api, run: RunView, steps: Sequence[StepView]) -> tuple[StepView, ...]:
    """These steps, with what they should ask for; as they are where that is not known.

    Nobody asks for advice alone: what may not be read, or cannot be, gives none, and no error.
    """
    memory = MemoryHistory()
    try:
        raw = api.get(WORKFLOWS, run.name, run.namespace) or {}
        graph = read_workflow(raw, f"Workflow {run.name}", ReadOptions())
        stored = api.get(HISTORIES, history_name(graph.name), run.namespace)
        for each in read_resource(PipelineHistory, stored).past_runs():
            memory.observe(each)
    except (ClusterError, EngineError):
        return tuple(steps)
    # A request is one for all iterations of a task, however many the loop has.
    by_task = {step.task: step_advice(graph.name, step, memory) for step in reversed(graph.steps)}
    advice = {task: found.text for task, found in by_task.items() if found is not None}
    return tuple(replace(step, memory_advice=advice.get(task_of(step.name), "")) for step in steps)
