"""Run times of steps: those of ended runs in, forecasts of the next ones out."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kfp_placement_engine.history.by_factor import next_value
from kfp_placement_engine.history.ranges import Ranges
from kfp_placement_engine.history.recent import MOST_STEPS, Recent
from kfp_placement_engine.history.series import (
    KEPT,
    NO_VALUES,
    RECENT,
    SIZE,
    Estimate,
    Factors,
    Value,
    factors_of,
    median,
    packed_series,
    typical_of,
    unpacked_series,
)
from kfp_placement_engine.model.forecast import Basis, Forecast, Level
from kfp_placement_engine.model.history import (
    MOST_PIPELINES,
    PastContainer,
    PastStep,
    StepIdentity,
)
from kfp_placement_engine.model.promise import CONFIDENCE

SPREADS = {
    Level.ITERATION: 0.08,
    Level.STEP: 0.4,
    Level.COMPONENT: 0.6,
    Level.IMAGE: 0.8,
    Level.NAMESPACE: 1.2,
}
"""Standard deviations of run times of steps before any is seen, by level."""

_WIDER = {1: 1.4, 2: 1.1, RECENT: 1.0}
"""Factor by which first ranges are widened, by the least number of values an estimate rests on."""

LEAST_SECONDS = 0.5
"""Shortest run time in seconds; shorter ones count as this."""

SHORT_SECONDS = 2.0
"""Run time below which nothing is learned of how far forecasts miss: times are whole seconds."""

_RESOLUTION_SECONDS = 1 / math.sqrt(12)
"""Standard deviation of the error that whole seconds make."""

MOST_ITERATIONS = 1_000
"""Largest number of iterations kept for a step: those seen last."""

_VALUES_OF_STEP, _LEAST_OF_ITERATION = 2_000, 5
"""Largest number of values kept for a step, shared by its iterations.

Each iteration keeps at least the second number.
"""

_MOST_ALIKE = 50
"""Largest number of similar steps, or of iterations of a step, that an estimate uses.

Those seen last are used.
"""

_NO_ARGUMENTS: Mapping[str, float] = MappingProxyType({})


@dataclass(slots=True)
class _Step:
    """Past run times of one step.

    Attributes:
        component, image: component and image of the last run in which they are known.
        container: requests and image of the last run in which they are known; None = of no run.
        runs: number of runs in which it was seen.
        last_run: number of the last of these among the runs of its pipeline.
        log_seconds: median run time of the iterations seen last, as a logarithm.
        iterations: the last values of each iteration, packed; that which was seen last is at the
            end.
    """

    component: str = ""
    image: str = ""
    container: PastContainer | None = None
    runs: int = 0
    last_run: int = 0
    log_seconds: float = 0.0
    iterations: dict[str, bytes] = field(default_factory=dict)

    def observe(self, run: Sequence[tuple[PastStep, Value]]) -> None:
        """Learn from its iterations in one run."""
        self.runs += 1
        for each, value in run:
            identity = each.identity
            self.component = identity.component or self.component
            self.image = identity.image or self.image
            self.container = each.container or self.container
            iteration = identity.iteration or ""
            values = [*unpacked_series(self.iterations.pop(iteration, NO_VALUES)), value]
            room = max(_LEAST_OF_ITERATION, _VALUES_OF_STEP // (1 + len(self.iterations)))
            self.iterations[iteration] = packed_series(values[-min(KEPT, room) :])
        # A new dict: after removals a dict keeps its old size.
        self.iterations = dict([*self.iterations.items()][-MOST_ITERATIONS:])
        self.log_seconds = median([log_value for log_value, _ in self.typical()])

    def typical(self) -> list[Value]:
        """Return the run times of its iterations, those seen last."""
        return typical_of(map(unpacked_series, [*self.iterations.values()][-_MOST_ALIKE:]))


class StepTimes:
    """Past run times of the steps of one namespace, or of one pipeline in it.

    A forecast rests on the first of these that was seen: the same iteration of the step, the step,
    its component, its image, all steps. The same runs in the same order make the same forecasts.

    Attributes:
        of_namespace: run times of the namespace, which answer for steps that this pipeline has not
            run; None = this object is the namespace's.
        ranges: misses of forecasts in the namespace.
    """

    def __init__(self, of_namespace: "StepTimes | None" = None) -> None:
        """Begin with nothing known."""
        self.of_namespace = of_namespace
        self.ranges: Ranges = Ranges(_WIDER) if of_namespace is None else of_namespace.ranges
        self._steps: Recent[tuple[str, str], _Step] = Recent(MOST_STEPS)
        self._whole_runs: Recent[str, int] = Recent(MOST_PIPELINES)
        self._alike: dict[tuple[Level, str], list[_Step]] = {}

    def predict(
        self,
        identity: StepIdentity,
        input_bytes: float | None = None,
        arguments: Mapping[str, float] = _NO_ARGUMENTS,
        confidence: float = CONFIDENCE,
    ) -> Forecast | None:
        """Return the range of a step's run time on the reference node.

        Args:
            identity: the step.
            input_bytes: size of its inputs; None = unknown.
            arguments: numeric arguments of the step by name, in the order of their names.
            confidence: share of cases in which the range is to hold.

        Returns:
            The forecast; None = no similar step has been seen.
        """
        if self.of_namespace is not None and identity.key not in self._steps:
            return self.of_namespace.predict(identity, input_bytes, arguments, confidence)
        estimate = self._nearest(identity, factors_of(input_bytes, arguments.values()))
        if estimate is None or estimate.level is None:
            return None
        # The factors are the size of the inputs, then the arguments.
        argument = [*arguments][estimate.factor - 1] if estimate.factor else ""
        basis = Basis(estimate.level, estimate.runs, estimate.factor == SIZE, argument)
        return Forecast(self.ranges.around(estimate, confidence), basis)

    def observe(self, steps: Iterable[PastStep], *, whole_pipeline: str = "") -> None:
        """Learn from the steps of one run that has ended.

        Every step is compared with its forecast before any of them is added.

        Args:
            steps: steps that ended well; others are left out.
            whole_pipeline: pipeline of the run if the whole run ended well; "" = it did not.
        """
        by_step = defaultdict(list)
        for each in steps:
            if each.seconds is not None:
                identity, value = each.identity, _value(each)
                by_step[identity.key].append((each, value))
                if self.of_namespace is None:
                    self._learn_miss(self._nearest(identity, value[1]), value[0])
        if whole_pipeline:
            self._whole_runs.use(whole_pipeline, 1 + self._whole_runs.get(whole_pipeline, 0))
        for key, run in by_step.items():
            step = self._steps.get(key)
            if step is None:
                step = _Step()
                # The namespace has learned these misses itself, from the same run.
                if self.of_namespace is None:
                    self._compare_with_each_other([value for _, value in run[:_MOST_ALIKE]])
            step.observe(run)
            step.last_run = self._whole_runs.get(key[0], 0)
            self._steps.use(key, step)
        self._alike.clear()

    def container(self, pipeline: str, step: str) -> PastContainer | None:
        """Return requests and image of a step in its last run that says them, or None."""
        statistics = self._steps.get((pipeline, step))
        return None if statistics is None else statistics.container

    def runs_without(self, pipeline: str, step: str) -> int:
        """Return the number of last runs in a row that ended well without a step that once ran."""
        statistics = self._steps.get((pipeline, step))
        if statistics is None:
            return 0
        return max(0, self._whole_runs.get(pipeline, 0) - statistics.last_run)

    def _learn_miss(self, estimate: Estimate | None, log_value: float) -> None:
        """Learn by how much a forecast has missed a run time."""
        if estimate and max(estimate.log_value, log_value) >= math.log(SHORT_SECONDS):
            self.ranges.learn(estimate, log_value)

    def _compare_with_each_other(self, iterations: Sequence[Value]) -> None:
        """Learn how far iterations of a new step differ: forecast each from the others."""
        for at, (log_value, factors) in enumerate(iterations if len(iterations) > 1 else ()):
            others = [*iterations[:at], *iterations[at + 1 :]]
            self._learn_miss(_estimate(others, Level.STEP, factors, 1), log_value)

    def _nearest(self, identity: StepIdentity, factors: Factors) -> Estimate | None:
        """Return the estimate by the most similar steps: iteration, step, component, image, all."""
        step = self._steps.get(identity.key)
        if step is not None:
            name = identity.iteration
            series = None if name is None else step.iterations.get(name)
            if series is None:
                return _estimate(step.typical(), Level.STEP, factors, step.runs)
            values = unpacked_series(series)
            return _estimate(values, Level.ITERATION, factors, min(step.runs, len(values)))
        for common in _in_common(identity):
            steps = self._steps_with(common)
            if steps and common[1]:
                logs = [each.log_seconds for each in steps]
                if common[0] is Level.NAMESPACE:
                    logs = [each for each in logs if each >= math.log(SHORT_SECONDS)] or logs
                runs = max(each.runs for each in steps)
                return _estimate([(each, ()) for each in logs], common[0], (), runs)
        return None

    def _steps_with(self, common: tuple[Level, str]) -> Sequence[_Step]:
        """Return the series of steps that have something in common, those seen last."""
        if not self._alike:
            for step in self._steps.values():
                for each in _in_common(step):
                    self._alike.setdefault(each, []).append(step)
        return self._alike.get(common, ())[-_MOST_ALIKE:]


def _in_common(step: StepIdentity | _Step) -> Iterable[tuple[Level, str]]:
    """Return the marks that a step may share with others, the most similar first."""
    names = (step.component, step.image, "all")
    return zip((Level.COMPONENT, Level.IMAGE, Level.NAMESPACE), names, strict=True)


def _estimate(values: Sequence[Value], level: Level, factors: Factors, runs: int) -> Estimate:
    recent = RECENT if level is Level.ITERATION else len(values)
    estimate = next_value(values, SPREADS[level], factors, recent)
    spread = math.hypot(estimate.spread, _RESOLUTION_SECONDS / math.exp(estimate.log_value))
    # Steps that share only a component or an image tell little about each other, so few of their
    # misses count.
    misses = (
        estimate.misses[:RECENT] if level in (Level.COMPONENT, Level.IMAGE) else estimate.misses
    )
    return estimate._replace(spread=spread, misses=misses, level=level, runs=runs)


def _value(each: PastStep) -> Value:
    log_seconds = math.log(max(LEAST_SECONDS, each.seconds or 0.0))
    return log_seconds, factors_of(each.input_bytes, each.arguments)
