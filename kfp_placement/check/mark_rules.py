"""Rules of `check` about marks: steps without any, guessed types, marks that change nothing."""

from collections.abc import Iterator, Mapping

from kfp_placement.check.findings import Finding, Rule, Severity
from kfp_placement.check.tasks import container_tasks
from kfp_placement.prepared_run import PreparedRun
from kfp_placement_engine.contract.keys import ALL_PIPELINES, PIPELINES_LABEL
from kfp_placement_engine.contract.step_types import near_marks
from kfp_placement_engine.model.node_rules.latency import is_ruled, unused_locations
from kfp_placement_engine.model.run_graph import Group, GroupKind, Step
from kfp_placement_engine.model.step_names import CONTROL_FLOW, listed, task_of
from kfp_placement_engine.planning.author_languages import language_of
from kfp_placement_engine.units.durations import marked_round_trip_text

_LABEL = f"{PIPELINES_LABEL}={ALL_PIPELINES}"
"""Label of a namespace whose runs need no marks."""

_MAX_NAMES = 3
"""Steps that one finding names."""


def unmarked_steps(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps and nested pipelines without a mark; one finding if nothing is marked.

    Steps that their author leaves to the default scheduler are left out. The finding about a
    pipeline comes once for each of its steps; equal findings count as one.
    """
    graph = prepared.run
    tasks = [step for step in container_tasks(graph) if not step.unplanned]
    unmarked = [step for step in tasks if not step.scheduler]
    if tasks and unmarked == tasks:
        yield Finding(
            Severity.WARNING,
            "unmarked",
            "no step is marked, so all stay with the cluster's default scheduler;"
            f" {language_of(graph).marks}, or have all runs of the namespace planned: label it"
            f" {_LABEL}",
        )
        return
    groups = {group.name: group for group in graph.groups}
    marked = {name for step in tasks if step.scheduler for name in _around(step, groups)}
    for step in unmarked:
        pipeline = _unmarked_pipeline(step, groups, marked)
        if not pipeline:
            yield Finding(
                Severity.WARNING,
                "unmarked",
                "is not marked and stays with the cluster's default scheduler;"
                f" {language_of(graph).mark}, or label the namespace {_LABEL}",
                step.task,
            )
        else:
            yield Finding(
                Severity.WARNING,
                "unmarked-pipeline",
                "none of its steps is marked: a nested pipeline carries its own marks; put"
                " @placed_pipeline() below its @dsl.pipeline",
                pipeline,
            )


def _unmarked_pipeline(step: Step, groups: Mapping[str, Group], marked: set[str]) -> str:
    """Return the outermost nested pipeline that contains the step but no marked step, or ""."""
    unmarked = ""
    for name in _around(step, groups):
        nested = groups[name].kind is GroupKind.DAG
        if nested and name not in marked and not CONTROL_FLOW.fullmatch(name.split(".")[-1]):
            unmarked = name
    return task_of(unmarked)


def _around(step: Step, groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield the groups around a step, innermost first, without the root."""
    name = step.group
    while name and name in groups:
        yield name
        name = groups[name].parent


def guessed_types(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield types that were guessed from the names of steps.

    There is a warning for each step that its type moves, and a note for each other type.
    """
    ruled_types = prepared.options.latency_ruled_types
    alike: dict[str, list[str]] = {}
    for step in container_tasks(prepared.run):
        if not step.type_guessed:
            continue
        if step.location and is_ruled(step.type, ruled_types):
            effect = f"its name, so it goes near {step.location}"
            yield _guess(Severity.WARNING, step.type, effect, step.task)
        else:
            alike.setdefault(step.type, []).append(step.task)
    for step_type, tasks in alike.items():
        if len(tasks) == 1:
            yield _guess(Severity.NOTE, step_type, "its name", tasks[0])
        else:
            yield _guess(Severity.NOTE, step_type, f"the names of {listed(tasks, _MAX_NAMES)}")


def _guess(level: Severity, step_type: str, source: str, task: str = "") -> Finding:
    words = f"type {step_type!r} was guessed from {source}; say type=... to be sure"
    return Finding(level, "guessed-type", words, task)


def ineffective_marks(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield types and schedulers that are misspelled, locations and limits that change nothing."""
    steps, ruled_types = prepared.run.steps, prepared.options.latency_ruled_types
    for notice in (*near_marks(steps, ruled_types), *unused_locations(steps, ruled_types)):
        yield Finding(Severity.WARNING, notice.code, notice.message, notice.step)
    for step in container_tasks(prepared.run):
        if step.max_latency_ms is not None and not step.location:
            yield Finding(
                Severity.WARNING,
                "max-latency-unused",
                f"max_latency = {marked_round_trip_text(step.max_latency_ms)}"
                " changes nothing without location",
                step.task,
            )


MARK_RULES: tuple[Rule, ...] = (unmarked_steps, guessed_types, ineffective_marks)
