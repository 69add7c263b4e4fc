"""Notices about pods and runs that are killed at a limit of their time before they are done."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import EndLimit, RunGraph, Step
from kfp_placement_engine.plans.planned_step import PlannedStep
from kfp_placement_engine.units.durations import format_duration


def late_ends(graph: RunGraph, rows: Sequence[PlannedStep]) -> Iterator[Notice]:
    """Yield the steps that take longer on their nodes than they may, and a run that does.

    Where run times are assumed, the texts say so.

    Args:
        graph: run that was planned.
        rows: planned steps of the run.
    """
    texts: dict[str, tuple[float, str]] = {}
    for row in rows:
        limit, seconds = row.spec.end_limit, sum(_phases(row))
        if limit is None or row.progress is not ProgressState.WAITING:
            continue
        if row.node is not None and seconds > max(limit.seconds, texts.get(row.spec.task, (0,))[0]):
            takes = _takes(seconds, row)
            texts[row.spec.task] = seconds, f"{takes} and {_is_killed(limit)}"
    yield from (Notice("end-limit", text, task) for task, (_, text) in texts.items())
    if graph.end_limit is not None:
        ends = (row.finish_seconds or 0.0 for row in rows if not row.spec.exit_task)
        is_assumed = any(row.run_time.is_guess for row in rows)
        yield from _late_run(graph.end_limit, max(ends, default=0.0), is_assumed=is_assumed)


def late_by_hints(graph: RunGraph) -> Iterator[Notice]:
    """Yield the same without a plan: run times are those on the reference node, without pulls."""
    texts: dict[str, str] = {}
    for step in graph.steps:
        limit, seconds = step.end_limit, _known_seconds(step)
        if limit is not None and seconds > limit.seconds:
            texts.setdefault(step.task, f"takes {format_duration(seconds)} and {_is_killed(limit)}")
    yield from (Notice("end-limit", text, task) for task, text in texts.items())
    if graph.end_limit is not None:
        yield from _late_run(graph.end_limit, _longest_chain(graph.steps))


def _phases(row: PlannedStep) -> tuple[float, float, float]:
    phases = row.phases
    return phases.image_pull_seconds, phases.transfer_seconds, phases.duration_seconds


def _takes(seconds: float, row: PlannedStep) -> str:
    """Return how long a step takes on its node, and with what, if that is more than its run."""
    parts = {
        "pulls": row.phases.image_pull_seconds,
        "transfers": row.phases.transfer_seconds,
        "runs": row.phases.duration_seconds,
    }
    named = [f"{verb} for {format_duration(each)}" for verb, each in parts.items() if each >= 1.0]
    text = f"takes {format_duration(seconds)} on {row.node}"
    text = f"{text} ({', '.join(named)})" if len(named) > 1 else text
    return f"{text}, by an assumed run time," if row.run_time.is_guess else text


def _is_killed(limit: EndLimit) -> str:
    return (
        f"is killed after {format_duration(limit.seconds)} ({limit.setting}): allow more time,"
        " or correct the run time"
    )


def _late_run(limit: EndLimit, seconds: float, *, is_assumed: bool = False) -> Iterator[Notice]:
    if seconds > limit.seconds:
        basis = ", by assumed run times," if is_assumed else ""
        yield Notice(
            "end-limit",
            f"the run takes {format_duration(seconds)}{basis} and is stopped after"
            f" {format_duration(limit.seconds)} ({limit.setting} of the run), so its last steps do"
            " not end: allow more time",
        )


def _known_seconds(step: Step) -> float:
    return 0.0 if step.is_guessed else step.duration_seconds or 0.0


def _longest_chain(steps: Iterable[Step]) -> float:
    """Return the run time of the steps that wait for each other for the longest time."""
    ends: dict[str, float] = {}
    for step in steps:
        if not step.exit_task:
            begin = _latest(ends, step.depends_on)
            ends[step.name] = begin + _known_seconds(step)
    return max(ends.values(), default=0.0)


def _latest(ends: Mapping[str, float], names: Iterable[str]) -> float:
    return max((ends.get(name, 0.0) for name in names), default=0.0)
