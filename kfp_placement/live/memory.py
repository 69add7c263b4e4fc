"""Advice on the memory that the steps of a run ask for, by what past runs of its pipeline used."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kfp_placement.live.exceptions import ClusterError
from kfp_placement.live.kinds import HISTORIES, WORKFLOWS, Api, JsonObject
from kfp_placement_engine.contract.pipeline_history import PipelineHistory, history_name
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.planning.memory_advice import advice_on
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView


def with_memory_advice(api: Api, run: RunView, steps: Sequence[StepView]) -> tuple[StepView, ...]:
    """These steps, with what they should ask for; as they are where that is not known.

    Nobody asks for advice alone: what may not be read, or cannot be, gives none, and no error.
    """
    try:
        raw = api.get(WORKFLOWS, run.name, run.namespace)
        graph = None if raw is None else _read(raw, run.name)
        memory = None if graph is None else _memory_of(api, graph.name, run.namespace)
    except (ClusterError, EngineError):
        return tuple(steps)
    if graph is None or memory is None:
        return tuple(steps)
    by_task = {each.task: each for each in reversed(graph.steps)}
    return tuple(_advised(each, by_task, graph.name, memory) for each in steps)


def _read(raw: JsonObject, name: str) -> RunGraph:
    return read_workflow(raw, f"Workflow {name}", ReadOptions())


def _memory_of(api: Api, pipeline: str, namespace: str) -> MemoryHistory | None:
    raw = api.get(HISTORIES, history_name(pipeline), namespace)
    history = None if raw is None else read_resource(PipelineHistory, raw)
    if history is None or history.spec.pipeline != pipeline:
        return None
    memory = MemoryHistory()
    for each in history.past_runs():
        memory.observe(each)
    return memory


def _advised(
    view: StepView, by_task: Mapping[str, Step], pipeline: str, memory: MemoryHistory
) -> StepView:
    """A request is one for all iterations of a task, however many the loop has."""
    step = by_task.get(task_of(view.name))
    advice = None if step is None else advice_on(pipeline, step, memory)
    return view if advice is None else replace(view, memory_advice=advice.text)
