"""`place(task, ...)`: say about one step what placement should know, as with `kfp.kubernetes`."""

import difflib
import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Never

from kfp import dsl
from kfp.dsl import pipeline_task

from kfp_placement import _scheduler
from kfp_placement._marks import Marks
from kfp_placement._resources import wanted_resources, write_resources
from kfp_placement._task_metadata import (
    annotations_of,
    labels_of,
    remembered,
    set_annotation,
    set_label,
)
from kfp_placement.exceptions import ConflictError, MarkValueError, PlacementWarning, UsageError
from kfp_placement.workers import Workers
from kfp_placement_engine.contract.hints import (
    MAX_ANNOTATION_CHARACTERS,
    StepHints,
    decode_hints,
    encode_hints,
)
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION, LOCATION_LABEL, TYPE_LABEL
from kfp_placement_engine.exceptions import HintsError

_DRIVER_ONLY_IMAGES = ("argostub/createpvc", "argostub/deletepvc")
"""Tasks that KFP's driver carries out itself; there is no pod of their own."""


def place(
    task: dsl.PipelineTask,
    *,
    type: str | None = None,
    location: str | None = None,
    duration: str | float | timedelta | None = None,
    outputs: Mapping[str, str | int] | None = None,
    inputs: Mapping[str, str | int] | None = None,
    image_size: str | int | None = None,
    max_latency: str | float | timedelta | None = None,
    priority: int | None = None,
    workers: Workers | None = None,
    scheduler: str | None = None,
    cpu: str | float | None = None,
    memory: str | int | None = None,
    gpu: str | int | None = None,
    accelerator_type: str | None = None,
    **unknown: Never,
) -> dsl.PipelineTask:
    """Mark a step for placement, with what the planner should know about it.

    Every option may be left out. What `placed` or an earlier `place` said is kept, unless it is
    repeated here: the later value applies, sizes are merged by name. What you set by other means is
    never overwritten: another value here is an error, and what you set afterwards wins. (A pod
    label that you add with the very value that `place` has given it counts as given by `place`.)

    Args:
        task: the step, as a component returns it inside a pipeline.
        type: kind of work: `Fetch`, `Transform`, `Training`, `Predict`, `Evaluate`, or a
            word of your own; `Predict` follows the latency rule. At most 63 characters.
        location: the place whose users it serves, such as `HOME-EDGE`. At most 63 characters.
        duration: run time on a node of speed 1: `20m`, `1h30m`, `20 minutes`, a
            `timedelta`, or seconds.
        outputs: size of each output by name: `{"model": "50Mi"}`, or bytes.
        inputs: size of each input by name, where it is not another step's output.
        image_size: size of the step's image, for nodes that pull it: `3Gi`, or bytes; where a node
            holds the image, the size that it reports counts.
        max_latency: hard limit of the round trip to `location`: `20ms`, or milliseconds; no node
            within it means that the step is not scheduled.
        priority: importance of the run among runs that the cluster plans at the same time, 0 if not
            given; larger is more important. The largest of a run's steps counts; within one run,
            and in `preview`, it changes nothing.
        workers: the pods that the step makes itself, such as a PyTorchJob's: `Workers(3, gpu=1)`.
            Where runs wait in queues, the run begins when all of them have room.
        scheduler: scheduler to use, `kfp-placement` if nobody gave one; `default-scheduler` leaves
            the step unmarked, with Kubernetes' own, also where namespaces plan all pipelines.
        cpu: CPU request, as KFP's `set_cpu_request`: `500m`, 2, or a pipeline parameter.
        memory: memory request, as `set_memory_request`: `4Gi`, or a pipeline parameter.
        gpu: number of accelerators, as `set_accelerator_limit`.
        accelerator_type: resource name of the accelerators; `nvidia.com/gpu` if not given.
        **unknown: anything else is an `UnknownOptionError`.

    Returns:
        The same task, so that calls can be nested and chained.

    Raises:
        PlacementError: a value is wrong or contradicts what was set; nothing has been changed then.
    """
    _check_task(task)
    subject = f"step {task.name!r}"
    options: dict[str, Any] = {
        "type": type,
        "location": location,
        "duration": duration,
        "outputs": outputs,
        "inputs": inputs,
        "image_size": image_size,
        "max_latency": max_latency,
        "priority": priority,
        "workers": workers,
        "scheduler": scheduler,
        "cpu": cpu,
        "memory": memory,
        "gpu": gpu,
        "accelerator_type": accelerator_type,
        **unknown,
    }
    return apply_marks(task, Marks.checked(subject, options), subject)


def apply_marks(task: dsl.PipelineTask, marks: Marks, subject: str) -> dsl.PipelineTask:
    """Write marks on a task; they replace our earlier ones.

    Args:
        task: the step.
        marks: marks to write.
        subject: subject of the marks, for messages.

    Raises:
        PlacementError: nothing has been changed then.
    """
    if task.state == pipeline_task.TaskState.FINAL:
        # Run by kfp.local outside a pipeline: there is no pod.
        return task
    if not has_pod(task):
        warnings.warn(
            f"{subject} runs in no pod of its own, as importers and volume claims; it cannot be"
            " placed and its marks are left out",
            PlacementWarning,
            stacklevel=3,
        )
        return task
    labels = _labels(marks)
    _check_labels(task, subject, {**labels, **_scheduler.labels_for(marks.scheduler)})
    check_names(subject, task.component_spec, marks.hints)
    annotation = _annotation(task, subject, marks)
    write_resources(task, subject, wanted_resources(task, subject, marks))
    # From here on nothing can fail: a refused mark leaves the task as it was.
    for key, value in labels.items():
        set_label(task, key, value)
    _scheduler.mark(task, marks.scheduler)
    if annotation:
        set_annotation(task, HINTS_ANNOTATION, annotation)
    return task


def has_pod(task: dsl.PipelineTask) -> bool:
    """Return whether a task runs in its own pod, which labels can reach."""
    container = task.container_spec
    return container is not None and container.image not in _DRIVER_ONLY_IMAGES


def read_hints(task: dsl.PipelineTask, subject: str) -> StepHints:
    """Return the hints of a task; empty ones if there are none.

    Raises:
        MarkValueError: its annotation was written by other means and cannot be read.
    """
    text = annotations_of(task).get(HINTS_ANNOTATION)
    if text is None:
        return StepHints()
    try:
        return decode_hints(text)[0]
    except HintsError as error:
        raise MarkValueError(
            f"{subject}: the annotation {HINTS_ANNOTATION} it has already cannot be read: {error};"
            " leave it to place()"
        ) from None


def _check_task(task: object) -> None:
    if not isinstance(task, dsl.PipelineTask):
        shown = f"{task.__class__.__name__} {getattr(task, 'name', '')}".strip()
        raise UsageError(
            f"place() takes a step, as calling a component returns it, not {shown:.80};"
            " write place(train(...), ...) inside the pipeline"
        )
    if task.pipeline_spec is not None:
        raise UsageError(
            f"step {task.name!r} is a pipeline itself, and KFP can mark only the steps inside;"
            " put @placed_pipeline(...) below its own @dsl.pipeline, or place() its steps there"
        )


def _labels(marks: Marks) -> dict[str, str]:
    labels = {TYPE_LABEL: marks.type, LOCATION_LABEL: marks.location}
    return {key: value for key, value in labels.items() if value is not None}


def _check_labels(task: dsl.PipelineTask, subject: str, labels: Mapping[str, str]) -> None:
    present = labels_of(task)
    for key, value in labels.items():
        current = present.get(key, value)
        if current not in (value, remembered(task, key)):
            raise ConflictError(
                f"{subject}: {value!r} contradicts the pod label {key}: {current}, which was set by"
                " other means, such as kfp.kubernetes.add_pod_label; keep one of them"
            )


def check_names(subject: str, spec: Any, hints: StepHints) -> None:
    """Refuse sizes of inputs and outputs that the component does not have.

    Raises:
        MarkValueError: there is one.
    """
    for option, sizes, declared in (
        ("outputs", hints.output_bytes, spec.outputs),
        ("inputs", hints.input_bytes, spec.inputs),
    ):
        names = list(declared or {})
        for name in sizes:
            if name not in names:
                close = difflib.get_close_matches(name, names, n=1)
                has = f"it has {', '.join(names)}" if names else f"it has no {option}"
                advice = f"did you mean {close[0]!r}?" if close else has
                raise MarkValueError(
                    f"{subject}: {option}[{name!r:.60}]: component {spec.name!r} has no such"
                    f" {option.removesuffix('s')}; {advice}"
                )


def _annotation(task: dsl.PipelineTask, subject: str, marks: Marks) -> str:
    """Return the hints to write, or "" if the task keeps those that it has."""
    before = read_hints(task, subject)
    hints = marks.refine_hints(before)
    if hints == before:
        return ""
    current = annotations_of(task).get(HINTS_ANNOTATION)
    if current != remembered(task, HINTS_ANNOTATION):
        raise ConflictError(
            f"{subject}: its hints contradict the pod annotation {HINTS_ANNOTATION}: {current:.80},"
            " which was set by other means, such as kfp.kubernetes.add_pod_annotation; keep one of"
            " them"
        )
    return encoded_hints(hints, subject)


def encoded_hints(hints: StepHints, subject: str) -> str:
    """Return the text of the annotation, or "" if there are no hints.

    Raises:
        MarkValueError: it would be longer than readers take.
    """
    text = encode_hints(hints)
    if text == encode_hints(StepHints()):
        return ""
    if len(text) > MAX_ANNOTATION_CHARACTERS:
        raise MarkValueError(
            f"{subject}: its hints have {len(text)} characters; at most"
            f" {MAX_ANNOTATION_CHARACTERS} are read: name fewer outputs and inputs"
        )
    return text
