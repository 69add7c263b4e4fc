"""Run times of steps: those of ended runs in, forecasts of the next ones out."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kfp_placement_engine.history.by_factor import next_value
from kfp_placement_engine.history.ranges import Ranges
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.series import (
    KEPT,
    RECENT,
    Columns,
    Estimate,
    Factors,
    Series,
    columns_in,
    extended,
    factors_of,
    median,
    typical_of,
)
from kfp_placement_engine.model.forecast import Basis, Forecast, Level
from kfp_placement_engine.model.history import (
    PastStep,
    StepIdentity,
    are_usable_arguments,
    is_usable_size,
)
from kfp_placement_engine.model.promise import CONFIDENCE

SPREADS = {
    Level.ITERATION: 0.08,
    Level.STEP: 0.4,
    Level.COMPONENT: 0.6,
    Level.IMAGE: 0.8,
    Level.NAMESPACE: 1.2,
}
"""How far apart the run times of steps lie before any is seen, as standard deviations."""

_WIDER = {1: 1.4, 2: 1.1, RECENT: 1.0}
"""By how much further off than expected forecasts are that rest on at least this many values."""

LEAST_SECONDS, SHORT_SECONDS = 0.5, 2.0
"""What is shorter takes the first; what is shorter than the second tells nothing of misses, since
times are cut to whole seconds."""

_RESOLUTION_SECONDS = 1 / math.sqrt(12)
"""Standard deviation of what cutting to whole seconds takes away."""

MOST_STEPS = 10_000
"""Steps of a namespace; those that were not seen for longest go first."""

MOST_ITERATIONS = 1_000
"""Iterations of a step, likewise."""

_VALUES_OF_STEP, _LEAST_OF_ITERATION = 2_000, 5
"""Values of all iterations of a step that are kept, but of none fewer than the second."""

_MOST_ALIKE = 50
"""Steps with something in common, or iterations of a step, that are asked: those seen last."""

_NO_ARGUMENTS: Mapping[str, float] = MappingProxyType({})


class _Found(NamedTuple):
    """An estimate of a run time, the level of the past steps that it rests on, and their runs."""

    estimate: Estimate
    level: Level
    runs: int


class _Step:
    """What is known of a step.

    Attributes:
        component, image: the last that it ran.
        runs: in how many runs it was seen.
        last_run: number of the last of these among the runs of its pipeline.
        log_seconds: what it takes, whatever the iteration.
        iterations: the values of each iteration; that which was seen last is at the end.
    """

    __slots__ = ("component", "image", "iterations", "last_run", "log_seconds", "runs")

    def __init__(self) -> None:
        self.component = self.image = ""
        self.runs = self.last_run = 0
        self.log_seconds = 0.0
        self.iterations: dict[str, Series] = {}

    def observe(self, run: Sequence[PastStep]) -> None:
        """Learn from its iterations in one run."""
        self.runs += 1
        self.component, self.image = run[-1].identity.component, run[-1].identity.image
        for each in run:
            series = self.iterations.pop(_name(each), b"")
            kept = min(KEPT, _VALUES_OF_STEP // (1 + len(self.iterations)))
            self.iterations[_name(each)] = extended(
                series, _log_seconds(each), _factors(each), max(_LEAST_OF_ITERATION, kept)
            )
        # A new one: one that entries were taken out of stays twice as large.
        self.iterations = dict([*self.iterations.items()][-MOST_ITERATIONS:])
        self.log_seconds = median(self.typical()[0])

    def typical(self) -> Columns:
        """What its iterations take, those seen last."""
        return typical_of([*self.iterations.values()][-_MOST_ALIKE:])


class StepTimes:
    """What is known of the steps of one namespace, or of one pipeline in it.

    A forecast rests on the first of these that was seen: the same iteration of the step, the step,
    its component, its image, all steps. The same runs in the same order make the same forecasts.

    Attributes:
        ranges: how forecasts have missed.
    """

    def __init__(self, of_namespace: "StepTimes | None" = None) -> None:
        """Begin with nothing known.

        Args:
            of_namespace: what is known of the whole namespace, if this is of one pipeline: that is
                asked for steps that this has not seen, and how forecasts miss. None = this is it.
        """
        self._of_namespace = of_namespace
        self.ranges = Ranges(_WIDER)
        self._steps: Recent[tuple[str, str], _Step] = Recent(MOST_STEPS)
        self._ended_well: dict[str, int] = defaultdict(int)
        self._alike: dict[tuple[Level, str], list[_Step]] = {}

    @property
    def _of_all(self) -> "StepTimes":
        """What is known of the whole namespace; kept, it would be a cycle, and not let go soon."""
        return self._of_namespace or self

    def predict(
        self,
        identity: StepIdentity,
        input_bytes: float | None = None,
        arguments: Mapping[str, float] = _NO_ARGUMENTS,
        confidence: float = CONFIDENCE,
    ) -> Forecast | None:
        """How long a step takes on the reference node.

        Args:
            identity: the step.
            input_bytes: size of its inputs; None = unknown, and so is what cannot be true.
            arguments: its numeric arguments by name, in the order of their names; likewise.
            confidence: how often the range is to hold.

        Returns:
            The forecast; None = nothing has been seen that tells of it.
        """
        if self._of_all is not self and identity.key not in self._steps:
            return self._of_all.predict(identity, input_bytes, arguments, confidence)
        size = input_bytes if input_bytes is not None and is_usable_size(input_bytes) else None
        known = arguments if are_usable_arguments(arguments.values()) else _NO_ARGUMENTS
        found = self._nearest(identity, factors_of(size, known.values()))
        if found is None:
            return None
        times = self._of_all.ranges.around(found.level, found.estimate, confidence)
        factor = found.estimate.factor
        basis = Basis(found.level, found.runs, factor == 0, ("", *known)[factor] if factor else "")
        return Forecast(times, basis)

    def observe(self, steps: Iterable[PastStep], *, ended_well: str = "") -> None:
        """Learn from the steps of one run that has ended.

        All are compared first with what was forecast of them before the run, then they are kept.

        Args:
            steps: those that ended well; others, and what cannot be true, are left out.
            ended_well: the pipeline of the run, if that ended well as a whole.
        """
        usable = [each for each in steps if each.seconds is not None and each.is_usable]
        for each in usable if self._of_all is self else ():
            self._compare(each)
        by_step = defaultdict(list)
        for each in usable:
            by_step[each.identity.key].append(each)
        if ended_well:
            self._ended_well[ended_well] += 1
        for key, run in by_step.items():
            if self._of_all is self and key not in self._steps:
                self._compare_with_each_other(run[:_MOST_ALIKE])
            step = self._steps.used(key, _Step)
            step.observe(run)
            step.last_run = self._ended_well[key[0]]
        self._alike.clear()

    def runs_without(self, pipeline: str, step: str) -> int:
        """How many of the last runs in a row have ended well without a step that once ran."""
        known = self._steps.get((pipeline, step))
        return 0 if known is None else self._ended_well[pipeline] - known.last_run

    def steps_of(self, pipeline: str) -> Iterator[str]:
        """The steps of a pipeline that were seen, by their paths."""
        return (step for name, step in self._steps if name == pipeline)

    def _compare(self, each: PastStep) -> None:
        """Learn by how much a forecast has missed."""
        found = self._nearest(each.identity, _factors(each))
        if found is not None:
            self._learn_miss(found, each)

    def _compare_with_each_other(self, iterations: Sequence[PastStep]) -> None:
        """Learn by how much those of a new step are missed by the others of its first run."""
        values = [extended(b"", _log_seconds(each), _factors(each), 1) for each in iterations]
        for at, each in enumerate(iterations if len(iterations) > 1 else ()):
            others = typical_of([*values[:at], *values[at + 1 :]])
            self._learn_miss(_found(others, Level.STEP, _factors(each), 1), each)

    def _learn_miss(self, found: _Found, each: PastStep) -> None:
        log_seconds = _log_seconds(each)
        if max(found.estimate.log_value, log_seconds) >= math.log(SHORT_SECONDS):
            self.ranges.learn(found.level, found.estimate, log_seconds)

    def _nearest(self, identity: StepIdentity, factors: Factors) -> _Found | None:
        """By the first that was seen: iteration, step, component, image, all steps."""
        step = self._steps.get(identity.key)
        if step is not None:
            name = identity.iteration
            series = None if name is None else step.iterations.get(name)
            if series is None:
                return _found(step.typical(), Level.STEP, factors, step.runs)
            columns = columns_in(series)
            runs = min(step.runs, len(columns[0]))
            return _found(columns, Level.ITERATION, factors, runs)
        for common in _in_common(identity):
            steps = self._steps_with(common)
            if steps and common[1]:
                logs = [each.log_seconds for each in steps]
                if common[0] is Level.NAMESPACE:
                    logs = [each for each in logs if each >= math.log(SHORT_SECONDS)] or logs
                return _found([logs], common[0], (), max(each.runs for each in steps))
        return None

    def _steps_with(self, common: tuple[Level, str]) -> Sequence[_Step]:
        """The steps that have something in common, those seen last."""
        if not self._alike:
            for step in self._steps.values():
                for each in _in_common(step):
                    self._alike.setdefault(each, []).append(step)
        return self._alike.get(common, ())[-_MOST_ALIKE:]


def _in_common(step: StepIdentity | _Step) -> Iterable[tuple[Level, str]]:
    """What a step may have in common with others, the most similar first."""
    names = (step.component, step.image, "all")
    return zip((Level.COMPONENT, Level.IMAGE, Level.NAMESPACE), names, strict=True)


def _found(columns: Columns, level: Level, factors: Factors, runs: int) -> _Found:
    recent = RECENT if level is Level.ITERATION else len(columns[0])
    found = next_value(columns, SPREADS[level], factors, recent)
    spread = math.hypot(found.spread, _RESOLUTION_SECONDS / math.exp(found.log_value))
    # Of steps that only share an image the times say little of how far another lies off.
    misses = found.misses[:RECENT] if level in (Level.COMPONENT, Level.IMAGE) else found.misses
    return _Found(found._replace(spread=spread, misses=misses), level, runs)


def _log_seconds(each: PastStep) -> float:
    assert each.seconds is not None  # of usable steps
    return math.log(max(LEAST_SECONDS, each.seconds))


def _factors(each: PastStep) -> Factors:
    return factors_of(each.input_bytes, each.arguments)


def _name(each: PastStep) -> str:
    """What tells an iteration from the others of its step."""
    return each.identity.iteration or ""
