"""Advice on the memory that the steps of a run ask for, by what past runs of its pipeline used."""

from collections.abc import Sequence
from dataclasses import replace

from kfp_placement.live.exceptions import ClusterError
from kfp_placement.live.kinds import HISTORIES, WORKFLOWS, Api
from kfp_placement_engine.contract.pipeline_history import PipelineHistory, history_name
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_engine.history import MemoryHistory
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.planning.past_runs.memory_advice import step_advice
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.views.runs import RunView
from kfp_placement_engine.views.steps import StepView


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
