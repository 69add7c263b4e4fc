"""Forecasts of every step before its run, beside what the step then took.

Steps shorter than 2 s are learned from and not counted: their times are cut to whole seconds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean, median

from benchmarks.learning_runs.traces import Trace
from kfp_placement_engine.history import History
from kfp_placement_engine.model.forecast import Forecast, Level
from kfp_placement_engine.model.history import Observation
from kfp_placement_engine.model.promise import Promise

SHORT_SECONDS = 2.0
CONFIDENCE = 0.9
ASSUMED_SECONDS = 60.0
RUNS_ELSEWHERE = 20
"""Runs of each other pipeline that are known when a pipeline is seen first."""

RUNS_BEFORE, EVERY = 2, 8
"""Iterations unknown: this many runs are learned, starting with every eighth."""

SEEN = ((0, "0"), (1, "1"), (2, "2"), (4, "3-4"), (9, "5-9"), (19, "10-19"))


@dataclass(frozen=True)
class Case:
    """One forecast and what came of it.

    Attributes:
        pipeline: of the step.
        group: what the row of a table is about.
        seconds: what the step took.
        forecasts: seconds by method; `ours` is one of them.
        low, high: the interval of 90%.
    """

    pipeline: str
    group: str
    seconds: float
    forecasts: dict[str, float]
    low: float
    high: float

    @property
    def is_covered(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.seconds <= self.high

    def error(self, method: str = "ours") -> float:
        """|forecast / true - 1|."""
        return abs(self.forecasts[method] / self.seconds - 1)


def past_ends(ends: Sequence[float]) -> dict[str, float]:
    """What the ends of the runs before tell of the next one, by method: all of them, or the last.

    Args:
        ends: seconds, the oldest first; at least one.
    """
    return {"past ends": median(ends), "last 5 ends": median(ends[-5:])}


def promised_case(
    pipeline: str, group: str, seconds: float, ends: Sequence[float], promise: Promise | None
) -> Case:
    """What was promised of a whole run, beside what the ends of the runs before tell.

    Args:
        pipeline: of the run.
        group: what the row of a table is about.
        seconds: what it took.
        ends: as for `past_ends`.
        promise: of the run, with an end.
    """
    assert promise is not None
    assert promise.ends is not None, promise.unknown
    return Case(
        pipeline=pipeline,
        group=group,
        seconds=seconds,
        forecasts={**past_ends(ends), "ours": promise.ends.typical_seconds},
        low=promise.ends.low_seconds,
        high=promise.ends.high_seconds,
    )


def seen_text(runs: int) -> str:
    """A group of numbers of runs that were seen."""
    return next((text for most, text in SEEN if runs <= most), "20+")


def same_inputs(trace: Trace) -> Iterator[Case]:
    """Each run from all runs before it; groups are how often the step's iteration was seen."""
    history, without_sizes = History(), History()
    seen: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    for run in trace.runs:
        for step in _long_steps(run):
            past = seen[step.identity.step, step.identity.iteration]
            others = _baselines(past) if past else {}
            plain = without_sizes.predict(step.identity, step.node)
            if plain is not None:
                others["without size"] = plain.distribution.median_seconds
            forecast = _forecast(history, step)
            if forecast is not None:
                yield _case(step, forecast, seen_text(len(past)), others)
        history.observe(run)
        without_sizes.observe([replace(step, input_bytes=None) for step in run])
        for step in run:
            seen[step.identity.step, step.identity.iteration].append(step.seconds)


def _baselines(past: Sequence[float]) -> dict[str, float]:
    return {
        "60 s": ASSUMED_SECONDS,
        "last": past[-1],
        "mean of 5": fmean(past[-5:]),
        "median of 5": median(past[-5:]),
    }


def first_sight(traces: Sequence[Trace], number: int) -> Iterator[Case]:
    """The first run of a pipeline, when only others are known; groups are levels."""
    history = History()
    for other, trace in enumerate(traces):
        if other != number:
            for run in trace.runs[:RUNS_ELSEWHERE]:
                history.observe(run)
    for step in _long_steps(traces[number].runs[0]):
        forecast = _forecast(history, step)
        if forecast is not None:
            yield _case(step, forecast, f"same {forecast.basis.level}")


def new_iterations(trace: Trace, seed: int) -> Iterator[Case]:
    """Iterations of known steps: half of all, drawn, were in three runs, the others come next."""
    names = sorted({(step.identity.step, str(step.identity.iteration))
                    for run in trace.runs for step in run})  # fmt: skip
    known = set(Random(seed).sample(names, len(names) // 2))
    history = History()
    for run in trace.runs[:3]:
        history.observe([step for step in run if _name(step) in known])
    for run in trace.runs[3:4]:
        for step in _long_steps(run):
            forecast = _forecast(history, step)
            if _name(step) not in known and forecast and forecast.basis.level is Level.STEP:
                yield _case(step, forecast, "new iteration")


def _name(step: Observation) -> tuple[str, str]:
    return step.identity.step, str(step.identity.iteration)


def after_two_runs(trace: Trace) -> Iterator[Case]:
    """Iterations not told apart, two runs known; groups say whether sizes are known."""
    for first in range(0, len(trace.runs) - RUNS_BEFORE, EVERY):
        for group in ("without size", "by size"):
            runs = [_unnamed(run, has_size=group == "by size")
                    for run in trace.runs[first : first + RUNS_BEFORE + 1]]  # fmt: skip
            history = History()
            for run in runs[:-1]:
                history.observe(run)
            for step in _long_steps(runs[-1]):
                forecast = _forecast(history, step)
                if forecast is not None and forecast.basis.level is Level.STEP:
                    yield _case(step, forecast, group)


def in_order(trace: Trace) -> Iterator[Case]:
    """Iterations not told apart, each run from all before; groups say what is known of a step."""
    for group, has_size, has_node in (
        ("neither", False, False),
        ("size", True, False),
        ("size and node", True, True),
    ):
        history = History()
        past: dict[str, list[float]] = defaultdict(list)
        for named in trace.runs:
            run = _unnamed(named, has_size=has_size, has_node=has_node)
            for step in _long_steps(run):
                values = past[step.identity.step]
                forecast = _forecast(history, step) if len(values) >= 3 else None
                if forecast is not None:
                    others = {"median of 5": median(values[-5:])}
                    yield _case(step, forecast, group, others)
            history.observe(run)
            for step in run:
                past[step.identity.step].append(step.seconds)


def _unnamed(
    run: Sequence[Observation], *, has_size: bool, has_node: bool = True
) -> list[Observation]:
    """The steps as if it was not known which iteration each is."""
    return [
        replace(
            step,
            identity=replace(step.identity, iteration=None),
            input_bytes=step.input_bytes if has_size else None,
            node=step.node if has_node else "",
        )
        for step in run
    ]


def _long_steps(run: Sequence[Observation]) -> Iterator[Observation]:
    return (step for step in run if step.seconds >= SHORT_SECONDS)


def _forecast(history: History, step: Observation) -> Forecast | None:
    return history.predict(step.identity, step.node, step.input_bytes)


def _case(
    step: Observation, forecast: Forecast, group: str, others: dict[str, float] | None = None
) -> Case:
    """What was forecast of a step, beside what it took."""
    distribution = forecast.distribution
    outside = (1 - CONFIDENCE) / 2
    return Case(
        pipeline=step.identity.pipeline,
        group=group,
        seconds=step.seconds,
        forecasts={**(others or {}), "ours": distribution.median_seconds},
        low=distribution.quantile(outside),
        high=distribution.quantile(1 - outside),
    )
