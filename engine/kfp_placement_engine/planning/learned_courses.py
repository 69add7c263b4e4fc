"""What past runs did where a run's file leaves it open: widths of loops, cache hits, branches."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from kfp_placement_engine.history import Past
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.promise import Course
from kfp_placement_engine.model.run_graph import Notice, RunGraph, StepKind

_LEAST_IN_A_ROW = 3
"""In a row, from which on a task that never ran is named."""


def learned_widths(graph: RunGraph, past: Past) -> Mapping[str, LearnedWidth]:
    """What past runs tell of a run's loops, by their paths; empty where none is assumed.

    Args:
        graph: as it was read without.
        past: of its namespace.
    """
    # A loop without a step in it needs no width.
    if not any(step.assumed for step in graph.steps):
        return {}
    return past.courses.widths(graph.name)


def too_wide(graph: RunGraph, widths: Mapping[str, LearnedWidth]) -> RunGraph:
    """The run as it was read, with the warning that past runs were larger than can be planned.

    Args:
        graph: as it was read without widths.
        widths: of loops in past runs, with which there would be too many steps.
    """
    loop, widest = max(widths.items(), key=lambda each: each[1].width)
    notice = Notice(
        "too-wide-loop",
        f"had {widest.width:,} iterations in past runs, too many to be planned; the run is planned"
        " and promised with fewer, and may end far later",
        loop,
    )
    return replace(graph, notices=(*graph.notices, notice))


def learned_courses(graph: RunGraph, past: Past) -> tuple[Course, ...]:
    """What each of the last runs of a pipeline left out, the oldest first.

    Args:
        graph: the next run; where a loop had no iteration, none of the tasks in it ran. Where it is
            known how many iterations it will have, that says nothing.
        past: of its namespace.
    """
    tasks = frozenset(step.task for step in graph.steps)
    open_loops = frozenset(each.name for each in graph.groups if each.width_assumed)
    return tuple(_with_tasks(each, tasks, open_loops) for each in past.courses.last(graph.name))


def _with_tasks(course: Course, tasks: Collection[str], open_loops: frozenset[str]) -> Course:
    prefixes = tuple(f"{loop}[*]" for loop in course.empty_loops & open_loops)
    in_loops = {each for each in tasks if each.startswith(prefixes)}
    return replace(course, skipped=course.skipped | in_loops)


def left_out_notices(graph: RunGraph, past: Past) -> Iterator[Notice]:
    """Tasks that did not run in the last runs; they are still planned, as they may run.

    Args:
        graph: the run.
        past: of its namespace.
    """
    tasks = {step.task: step for step in graph.steps if step.kind is StepKind.CONTAINER}
    for task, step in tasks.items():
        runs = past.courses.left_out(graph.name, task)
        if runs.cached >= _LEAST_IN_A_ROW and not step.assumed_cached:
            yield Notice(
                "usually-cached",
                f"came from the cache in the last {runs.cached} runs, and is planned as if it ran;"
                f" --assume-cached {task} plans without it (assume_cached in Python)",
                task,
            )
        elif runs.skipped >= _LEAST_IN_A_ROW:
            yield Notice(
                "usually-skipped",
                f"was skipped in the last {runs.skipped} runs, as its branch was not taken; it is"
                " planned as it may run",
                task,
            )
