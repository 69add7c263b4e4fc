"""`@placed` marks every step of a component, `@placed_pipeline` every step of a pipeline.

Order of precedence, strongest first: KFP's own setters and labels, `place`, `@placed`,
`@placed_pipeline`, a type guessed from the step's name.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Never

from kfp import dsl
from kfp.dsl import base_component, pipeline_context

from kfp_placement import _scheduler
from kfp_placement._marks import Marks
from kfp_placement._task_metadata import labels_of, set_annotation, set_label
from kfp_placement.exceptions import UsageError
from kfp_placement.steps import apply_marks, check_names, encoded_hints, has_pod, read_hints
from kfp_placement.workers import Workers
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION, LOCATION_LABEL, TYPE_LABEL
from kfp_placement_engine.contract.step_types import guess_type


def placed(
    component: Any = None,
    /,
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
) -> Any:
    """Mark every step that a component makes; write it above `@dsl.component`.

    Works for every component: Python functions, containers, components loaded from YAML
    (`train = placed(type="Training")(load_component_from_file("train.yaml"))`). The result is a KFP
    component that you use like the original; compiled alone, it gives the same package.

    Args:
        component: the component, where the decorator is used without options.
        type: type of all steps, as for `place`; `place` can change any option for a single step.
        location: location of all steps, as for `place`.
        duration: run time of all steps, as for `place`.
        outputs: sizes of outputs, as for `place`.
        inputs: sizes of inputs, as for `place`.
        image_size: size of the image, as for `place`.
        max_latency: hard limit of the round trip, as for `place`.
        priority: importance of the run, as for `place`.
        workers: pods that each step creates, as for `place`.
        scheduler: scheduler to use, as for `place`.
        cpu: CPU request, as for `place`, but not a pipeline parameter: a component does not know
            its pipeline.
        memory: memory request, as for `cpu`.
        gpu: number of accelerators, as for `cpu`.
        accelerator_type: resource name of the accelerators, as for `cpu`.
        **unknown: anything else is an `UnknownOptionError`.

    Returns:
        The marked component; without `component`, a decorator that marks one.

    Raises:
        PlacementError: a value is wrong, or the decorated object is not a component.
    """
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
    decorate = functools.partial(_placed_component, options=options)
    return decorate if component is None else decorate(component)


def placed_pipeline(
    function: Any = None,
    /,
    *,
    type: str | None = None,
    location: str | None = None,
    image_size: str | int | None = None,
    priority: int | None = None,
    queue: str | None = None,
    scheduler: str | None = None,
    guess_types: bool = True,
    **unknown: Never,
) -> Any:
    """Mark every step of a pipeline; write it below `@dsl.pipeline`.

    It marks steps in loops, conditions and exit handlers, but not the steps of nested pipelines,
    which have their own marks. It sets only what KFP's setters, `place` and `@placed` have not set.
    Steps without a pod of their own (importers, volume claims) are skipped.

    Args:
        function: the pipeline function, where the decorator is used without options.
        type: type of all steps; otherwise it is guessed from each step's name (`load-data` ->
            `Fetch`, `train-2` -> `Training`) and shown as a guess by `check` and `preview`.
        location: location of all steps.
        image_size: size of the image of every step that does not state it, for pipelines whose
            steps share one image.
        priority: importance of the run, as for `place`.
        queue: name of the RunQueue in which the run waits, where runs wait in queues; `default`
            if not given. Steps of nested pipelines name it themselves.
        scheduler: scheduler to use, as for `place`; with `default-scheduler`, steps that do not
            ask for another scheduler stay unmarked.
        guess_types: whether to guess the types of steps; False leaves them without a type.
        **unknown: anything else is an `UnknownOptionError`.

    Returns:
        The marked pipeline function; without `function`, a decorator that marks one.

    Raises:
        PlacementError: a value is wrong, or the decorator is above `@dsl.pipeline`.
    """
    options: dict[str, Any] = {
        "type": type,
        "location": location,
        "image_size": image_size,
        "priority": priority,
        "queue": queue,
        "scheduler": scheduler,
        **unknown,
    }
    decorate = functools.partial(_placed_function, options=options, guess_types=guess_types)
    return decorate if function is None else decorate(function)


class _PlacedComponent:
    """Mixin for a component's own class, which marks every task that a call creates."""

    placement_marks: Marks
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> dsl.PipelineTask:
        task = super().__call__(*args, **kwargs)  # type: ignore[misc]
        return apply_marks(task, self.placement_marks, f"step {task.name!r}")


@functools.cache
def _placed_class(kind: Any) -> Any:
    """Return a subclass of the component class `kind` that marks every task."""
    return type(f"Placed{kind.__name__}", (_PlacedComponent, kind), {"__doc__": kind.__doc__})


def _placed_component(component: Any, options: Mapping[str, Any]) -> Any:
    _check_component(component)
    marks = Marks.checked(f"component {component.name!r}", options, constants_only=True)
    check_names(f"component {component.name!r}", component.component_spec, marks.hints)
    if isinstance(component, _PlacedComponent):
        kind, marks = component.__class__, component.placement_marks.refined_by(marks)
    else:
        kind = _placed_class(component.__class__)
    # Mark a copy, so that the original stays unmarked where it is used elsewhere.
    marked = kind.__new__(kind)
    vars(marked).update(vars(component), placement_marks=marks)
    return marked


def _check_component(component: object) -> None:
    if not isinstance(component, base_component.BaseComponent):
        name = getattr(component, "__name__", repr(component))
        raise UsageError(
            f"@placed marks components, and {name:.80} is not one; put @placed(...) above"
            " @dsl.component, and use place() for a single step"
        )
    if component.component_spec.implementation.graph is not None:
        raise UsageError(
            f"@placed marks components, and {component.name!r} is a pipeline; put"
            " @placed_pipeline(...) below its @dsl.pipeline instead"
        )


def _placed_function(
    function: Any, options: Mapping[str, Any], guess_types: bool
) -> Callable[..., Any]:
    _check_function(function)
    allowed = ("type", "location", "image_size", "priority", "queue", "scheduler")
    subject = f"pipeline {function.__name__!r}"
    marks = Marks.checked(subject, options, allowed=allowed, constants_only=True)

    @functools.wraps(function)
    def marked(*args: Any, **kwargs: Any) -> Any:
        pipeline = pipeline_context.Pipeline.get_default_pipeline()
        before = frozenset(pipeline.tasks) if pipeline else frozenset()
        result = function(*args, **kwargs)
        for name, task in pipeline.tasks.items() if pipeline else ():
            if name not in before:
                _fill(task, marks, guess_types)
        return result

    return marked


def _check_function(function: object) -> None:
    if isinstance(function, base_component.BaseComponent):
        if function.component_spec.implementation.graph is None:
            raise UsageError(
                f"@placed_pipeline marks pipelines, and {function.name!r} is a component; use"
                " @placed(...) above @dsl.component"
            )
        raise UsageError(
            f"@placed_pipeline must be below @dsl.pipeline of {function.name!r}: its steps can"
            " no longer be marked; swap the two lines, so that @dsl.pipeline comes first"
        )
    if not callable(function):
        raise UsageError(
            f"@placed_pipeline marks a pipeline function, not {function!r:.80}; put it between"
            " @dsl.pipeline and the function"
        )


def _fill(task: dsl.PipelineTask, marks: Marks, guess_types: bool) -> None:
    """Set the marks that are not set on the task yet."""
    if not has_pod(task):
        return
    subject = f"step {task.name!r}"
    present = labels_of(task)
    hints = before = read_hints(task, subject)
    if TYPE_LABEL not in present:
        guessed = guess_type(task.name) if guess_types and marks.type is None else ""
        if marks.type or guessed:
            set_label(task, TYPE_LABEL, marks.type or guessed)
        hints = replace(hints, type_guessed=bool(guessed))
    if LOCATION_LABEL not in present and marks.location is not None:
        set_label(task, LOCATION_LABEL, marks.location)
    for name in ("image_bytes", "priority", "queue"):
        if getattr(hints, name) is None:
            hints = replace(hints, **{name: getattr(marks.hints, name)})
    if hints != before:
        set_annotation(task, HINTS_ANNOTATION, encoded_hints(hints, subject))
    if not _scheduler.decided(task):
        _scheduler.mark(task, marks.scheduler)
