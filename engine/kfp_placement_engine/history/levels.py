"""Whose past counts for a step: that of the first level that knows anything of it."""

import math
from collections.abc import Iterable, Sequence
from statistics import median, mode
from typing import NamedTuple

from kfp_placement_engine.history.calibration import KnownEstimate
from kfp_placement_engine.history.computed import Computed
from kfp_placement_engine.history.estimates import PastValues, Prior
from kfp_placement_engine.history.iterations import Iteration
from kfp_placement_engine.history.known_steps import (
    MOST_STEPS,
    WIDER,
    KnownStep,
    KnownSteps,
    StepKey,
)
from kfp_placement_engine.history.node_factors import NodeFactors
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.history import StepIdentity

PRIORS = {
    Level.ITERATION: Prior(0.08, by_size=0.08),
    Level.STEP: Prior(0.4, by_size=0.2),
    Level.COMPONENT: Prior(0.6),
    Level.IMAGE: Prior(0.8),
    Level.NAMESPACE: Prior(1.2),
}
"""How far apart the values of a level are: repetitions, iterations, steps of one component, ..."""

RECENT = 5
"""This many last values decide where the next one lies."""

SHORT_SECONDS = 2.0
"""Steps shorter than this tell nothing of others, nor of how forecasts miss: their times are cut to
whole seconds."""

_LOG_SHORT_SECONDS = math.log(SHORT_SECONDS)

MOST_TOLD = 20
"""About as many iterations, evenly spaced, tell what another one takes with its arguments."""

MOST_COMPUTED = 2_000
"""Of this many nodes, iterations, steps and groups of steps what was computed is kept."""


SHARED = frozenset({Level.COMPONENT, Level.IMAGE})
"""What namespaces tell each other of, if they share."""


class _Typical(NamedTuple):
    """An iteration, the median of its last values, its last inputs and arguments."""

    iteration: Iteration
    log_seconds: float
    input_bytes: float
    arguments: tuple[float, ...]


class _Alike(NamedTuple):
    """Steps that have something in common: at which level, its name, and which are left out."""

    level: Level
    name: str
    without: str | StepKey | None


class Levels:
    """What the steps of one namespace tell of each other, by level.

    What was computed is kept until a step is observed, or more is known of nodes; where the values
    of a step lie, until it is this step. Of a new step's image there may be hundreds.
    """

    def __init__(self, namespace: str, steps: KnownSteps, factors: NodeFactors) -> None:
        """Look at what is known.

        Args:
            namespace: of the steps.
            steps: those that were seen.
            factors: of nodes.
        """
        self._namespace, self._steps, self._factors = namespace, steps, factors
        self._shared: tuple[Levels, ...] = ()
        self._version = (0, 0)
        self._log_factors = Computed(self._log_factor_of, MOST_COMPUTED)
        self._values = Computed(self._values_of, MOST_COMPUTED)
        self._typical = Computed(self._typical_of, MOST_COMPUTED)
        self._typical_values = Computed(self._typical_values_of, MOST_COMPUTED)
        self._noise = Computed(self._noise_of, MOST_COMPUTED)
        self._centres = Computed(self._centre_of, MOST_STEPS)
        self._alike = Computed(self._known_of_alike, MOST_COMPUTED)

    def share(self, others: "Iterable[Levels]") -> None:
        """Ask these too, of other namespaces, of components and images that are not known here."""
        self._shared = tuple(others)

    def use_factors(self, factors: NodeFactors) -> None:
        """Of nodes these count from now on."""
        self._factors = factors
        self._version = (-1, -1)

    def forget_outdated(self) -> None:
        """Free what was computed from less than is known now; each answer begins with it."""
        version = (self._steps.version, self._factors.version)
        if version != self._version:
            if version[1] != self._version[1]:
                self._centres.clear()
            for step in self._steps.changed:
                self._centres.pop(step, None)
            self._steps.changed.clear()
            self._version = version
            self._log_factors.clear()
            self._values.clear()
            self._typical.clear()
            self._typical_values.clear()
            self._noise.clear()
            self._alike.clear()

    def log_factor(self, node: str) -> float:
        """Logarithm of the time on a node over that on the reference node."""
        self.forget_outdated()
        return self._log_factors[node]

    def nearest(
        self,
        identity: StepIdentity,
        input_bytes: float | None,
        arguments: tuple[float, ...] = (),
    ) -> KnownEstimate | None:
        """By the first level that knows anything.

        Args:
            identity: the step.
            input_bytes: size of its inputs; None = unknown.
            arguments: its numeric arguments; () = unknown.
        """
        self.forget_outdated()
        step = self._steps.get(identity.key)
        if step is None:
            others = (
                self.of_others(identity, level) or self._of_shared(identity, level)
                for level in WIDER
            )
            return next((known for known in others if known is not None), None)
        if not step.has_arguments_of(identity):
            arguments = ()
        iteration = step.iteration(identity.iteration)
        if iteration is None:
            return self.of_step(step, input_bytes, arguments)
        values = self._values[iteration]
        return _known(Level.ITERATION, iteration.runs, values, input_bytes, arguments)

    def of_step(
        self,
        step: KnownStep,
        input_bytes: float | None,
        arguments: tuple[float, ...] = (),
        without: str | None = None,
    ) -> KnownEstimate | None:
        """By the iterations of a step that its last runs had: others are of older code.

        Args:
            step: the step.
            input_bytes: size of the inputs; None = unknown.
            arguments: the numeric ones; () = unknown.
            without: an iteration that is left out; None = none.
        """
        self.forget_outdated()
        typical = self._typical[step]
        if without is not None:
            typical = [each for each in typical if each.iteration.name != without]
        known = self._with_arguments(step, typical, arguments) if arguments else None
        if known is None:
            values = self._typical_values[step] if without is None else _row_of(typical)
            known = _known(Level.STEP, step.runs, values, input_bytes, arguments)
        return None if known is None else _with_noise(known, self._noise[step])

    def _with_arguments(
        self, step: KnownStep, typical: Sequence[_Typical], arguments: tuple[float, ...]
    ) -> KnownEstimate | None:
        """By what iterations would take with these arguments; None = most do not follow any.

        In one run all iterations may have the same ones, so that only their past ones tell.
        """
        some = typical[:: max(1, len(typical) // MOST_TOLD)]
        told = [self._values[each.iteration].next(None, arguments) for each in some]
        places = [each.by_argument for each in told if each.by_argument is not None]
        if 2 * len(places) <= len(told):
            return None
        values = PastValues([each.log_seconds for each in told], PRIORS[Level.STEP])
        found = values.next()._replace(by_argument=mode(places))
        return KnownEstimate(Basis(Level.STEP, step.runs), len(values), found)

    def of_others(
        self, identity: StepIdentity, level: Level, without: str | StepKey | None = None
    ) -> KnownEstimate | None:
        """By steps that have something in common with one.

        Args:
            identity: the step.
            level: what they have in common.
            without: a pipeline or a step that is left out; None = none.
        """
        self.forget_outdated()
        names = {Level.COMPONENT: identity.component, Level.IMAGE: identity.image}
        return self._alike[_Alike(level, names.get(level, ""), without)]

    def _of_shared(self, identity: StepIdentity, level: Level) -> KnownEstimate | None:
        """By what another namespace tells, the one that has seen most."""
        if level not in SHARED:
            return None
        found = [each.of_others(identity, level) for each in self._shared]
        known = [each for each in found if each is not None]
        return max(known, key=lambda each: (each.basis.runs, each.values), default=None)

    def _log_factor_of(self, node: str) -> float:
        return self._factors.log_factor(node, self._namespace)

    def _values_of(self, iteration: Iteration) -> PastValues:
        return PastValues(
            iteration.log_seconds(self._log_factors),
            PRIORS[Level.ITERATION],
            input_bytes=iteration.input_bytes,
            arguments=iteration.arguments,
            recent=RECENT,
            is_one_a_run=iteration.name is not None,
        )

    def _typical_of(self, step: KnownStep) -> list[_Typical]:
        return [
            _Typical(
                each,
                median(each.log_seconds(self._log_factors, RECENT)),
                each.last_input_bytes,
                each.last_arguments,
            )
            for each in step.iterations
            if each.last_run > step.runs - RECENT
        ]

    def _noise_of(self, step: KnownStep) -> float:
        """Variance of one value of an iteration around what is expected of it."""
        seen_again = [each for each in self._typical[step] if len(each.iteration) > 1]
        some = seen_again[:: max(1, len(seen_again) // MOST_TOLD)]
        spreads = [
            self._values[each.iteration].next(_known_size(each), each.arguments).spread
            for each in some
        ]
        return median(spreads) ** 2 if spreads else 0.0

    def _typical_values_of(self, step: KnownStep) -> PastValues:
        return _row_of(self._typical[step])

    def _centre_of(self, step: KnownStep) -> float:
        # Not kept: these steps are many, and seldom those that are asked for themselves.
        return median([each.log_seconds for each in self._typical_of(step)])

    def _known_of_alike(self, alike: _Alike) -> KnownEstimate | None:
        steps = self._steps.alike(*alike)
        centres = [self._centres[step] for step in steps]
        if alike.level is Level.NAMESPACE:
            # Where most steps are that short, others would be taken to be nearly so.
            centres = [each for each in centres if each >= _LOG_SHORT_SECONDS] or centres
        values = PastValues(centres, PRIORS[alike.level])
        runs = max((step.runs for step in steps), default=0)
        return _known(alike.level, runs, values)


def _known_size(typical: _Typical) -> float | None:
    return None if math.isnan(typical.input_bytes) else typical.input_bytes


def _with_noise(known: KnownEstimate, noise: float) -> KnownEstimate:
    """A new iteration lies as far from others as their medians do, and varies as they do."""
    spread = math.sqrt(known.estimate.spread**2 + noise)
    return known._replace(estimate=known.estimate._replace(spread=spread))


def _row_of(typical: Sequence[_Typical]) -> PastValues:
    arguments = [each.arguments for each in typical]
    return PastValues(
        [each.log_seconds for each in typical],
        PRIORS[Level.STEP],
        input_bytes=[each.input_bytes for each in typical],
        arguments=arguments if any(arguments) else (),
    )


def _known(
    level: Level,
    runs: int,
    values: PastValues,
    input_bytes: float | None = None,
    arguments: tuple[float, ...] = (),
) -> KnownEstimate | None:
    """None = there are no values."""
    if not len(values):
        return None
    found = values.next(input_bytes, arguments)
    return KnownEstimate(Basis(level, runs, found.by_size), len(values), found)
