"""What the runs of a namespace tell of the next: ended steps in, distributions of times out."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType

from kfp_placement_engine.history.calibration import (
    MISSES_OF_RUN,
    Calibration,
    KnownEstimate,
    Miss,
)
from kfp_placement_engine.history.common_factor import CommonFactors, score_of
from kfp_placement_engine.history.known_steps import WIDER, KnownSteps, StepKey
from kfp_placement_engine.history.levels import SHORT_SECONDS, Levels
from kfp_placement_engine.history.node_factors import NodeFactors
from kfp_placement_engine.history.sizes import LEAST_SECONDS
from kfp_placement_engine.model.forecast import CommonFactor, Forecast, Level
from kfp_placement_engine.model.history import (
    Observation,
    StepIdentity,
    are_usable_arguments,
    is_usable_size,
)

_NO_ARGUMENTS: Mapping[str, float] = MappingProxyType({})


class History:
    """What is known of the steps of one namespace.

    A forecast rests on the first of these that knows anything: the same step and iteration, the
    same step, the same component, the same image, all steps. Sizes and numeric arguments count
    where they have helped before (`estimates`), nodes by their factors (`NodeFactors`), and how
    forecasts missed before says how wide the distribution is (`Calibration`).

    The same observations in the same order make the same forecasts. No clock is asked.

    Of a pipeline more may be known than of all others: its own history asks that of the namespace
    for steps that it has not seen, and how forecasts missed as long as it has too few misses. It
    teaches nothing of nodes and of steps that are alike: that of the namespace does.

    Attributes:
        levels: what its steps tell of each other, and of steps that are like them.
        calibration: how forecasts missed.
    """

    def __init__(
        self,
        namespace: str = "",
        factors: NodeFactors | None = None,
        of_namespace: "History | None" = None,
    ) -> None:
        """Begin with nothing known.

        Args:
            namespace: of the runs; only the factors of nodes are shared with all others.
            factors: of nodes.
            of_namespace: that of the namespace, if this is of one pipeline; None = this is it.
        """
        self._of_namespace = of_namespace
        self._namespace = namespace
        self._factors = factors or NodeFactors()
        self._steps = KnownSteps()
        self.levels = Levels(namespace, self._steps, self._factors)
        self.calibration = Calibration()
        self._common = CommonFactors()

    def predict(
        self,
        identity: StepIdentity,
        node: str = "",
        input_bytes: float | None = None,
        arguments: Mapping[str, float] = _NO_ARGUMENTS,
    ) -> Forecast | None:
        """How long a step will take.

        Args:
            identity: the step.
            node: where it will be; "" = a node of factor 1.
            input_bytes: size of its inputs; None = unknown, and so is what cannot be true.
            arguments: its numeric arguments by name, in the order of their names; likewise.

        Returns:
            The forecast; None = nothing has been seen that tells of it.
        """
        if self._of_namespace is not None and self._steps.get(identity.key) is None:
            return self._of_namespace.predict(identity, node, input_bytes, arguments)
        if input_bytes is not None and not is_usable_size(input_bytes):
            input_bytes = None
        values = tuple(arguments.values()) if are_usable_arguments(arguments.values()) else ()
        known = self.levels.nearest(identity, input_bytes, values)
        if known is None:
            return None
        if known.estimate.by_argument is not None:
            name = tuple(arguments)[known.estimate.by_argument]
            known = known._replace(basis=replace(known.basis, by_argument=name))
        calibration = self.calibration
        if self._of_namespace is not None:
            calibration = calibration.or_of_all(self._of_namespace.calibration, known.kind)
        return calibration.forecast(identity.pipeline, known, self.levels.log_factor(node))

    def share(self, others: "Iterable[History]") -> None:
        """Ask these too, of other namespaces, of components and images that are not known here.

        What is learned of how forecasts miss stays with each.
        """
        self.levels.share(each.levels for each in others)

    def rest_on(self, of_namespace: "History") -> None:
        """Ask this one of the namespace from now on, if these are the runs of one pipeline."""
        self._of_namespace = of_namespace

    def use_factors(self, factors: NodeFactors) -> None:
        """Of nodes these count from now on."""
        self._factors = factors
        self.levels.use_factors(factors)

    def learned_factor(self, node: str) -> float:
        """Logarithm of how many times longer steps take on a node than its speed says."""
        return self._factors.learned(node, self._namespace)

    def runs(self, pipeline: str, step: str) -> int:
        """In how many runs a step was seen."""
        known = self._steps.get((pipeline, step))
        return 0 if known is None else known.runs

    def common_factor(self, pipeline: str) -> CommonFactor:
        """What the steps of the next run of a pipeline will have in common."""
        return self._common.of(pipeline)

    def observe(self, run: Sequence[Observation]) -> None:
        """Learn from the steps of one run that has ended.

        All are compared first with what was forecast of them before the run, then they are kept.
        What cannot be true is left out (`Observation.is_usable`).
        """
        usable = [each for each in run if each.is_usable]
        compared = [(each, self._miss(each)) for each in usable]
        foreseen = [(each, miss) for each, miss in compared if miss is not None]
        without_forecast = [each for each, miss in compared if miss is None]
        new = [(each, miss) for each, miss in foreseen if not miss.is_repeated]
        self._learn_common(new)
        if self._of_namespace is None:
            self._learn_nodes(foreseen)
        keys = {each.identity.key for each in usable}
        new_steps = {key for key in keys if self._steps.get(key) is None}
        counted: set[StepKey] = set()
        for each in usable:
            key = each.identity.key
            self._steps.observe(each, _log_seconds(each), is_first=key not in counted)
            counted.add(key)
        of_others = self._misses_of_others(without_forecast, new_steps)
        self.calibration.add_misses([*(miss for _, miss in new if _tells(miss)), *of_others])
        self.levels.forget_outdated()

    def _miss(self, each: Observation) -> Miss | None:
        """By how much the forecast of a step missed; None = there was none of this very step."""
        step, iteration = self._steps.get(each.identity.key), each.identity.iteration
        if step is None or (iteration is not None and step.iteration(iteration) is None):
            return None
        known = self.levels.nearest(each.identity, each.input_bytes, each.arguments)
        if known is None or not _is_foreseen(each.identity, known.basis.level):
            return None
        return self._miss_of(each, known)

    def _miss_of(self, each: Observation, known: KnownEstimate) -> Miss:
        expected = known.estimate.log_seconds + self.levels.log_factor(each.node)
        return Miss(each.identity.pipeline, known, _log_seconds(each) - expected)

    def _learn_common(self, foreseen: Sequence[tuple[Observation, Miss]]) -> None:
        """Learn what the steps of each pipeline in the run had in common."""
        scores: dict[str, list[float]] = defaultdict(list)
        for each, miss in foreseen:
            if each.seconds >= SHORT_SECONDS:
                log_factor = self.levels.log_factor(each.node)
                found = self.calibration.distribution(miss.pipeline, miss.known, log_factor)
                scores[miss.pipeline].append(score_of(found.probability(each.seconds)))
        for pipeline, of_steps in scores.items():
            self._common.observe(pipeline, of_steps)

    def _learn_nodes(self, foreseen: Sequence[tuple[Observation, Miss]]) -> None:
        """Learn how much longer steps took on each node than elsewhere in the run."""
        by_node: dict[str, list[float]] = defaultdict(list)
        for each, miss in foreseen:
            if miss.known.values > 1 and each.seconds >= SHORT_SECONDS:
                learned = self._factors.learned(each.node, self._namespace)
                by_node[each.node].append(miss.log_ratio + learned)
        self._factors.learn(self._namespace, by_node)

    def _misses_of_others(
        self, without_forecast: Sequence[Observation], new_steps: set[StepKey]
    ) -> Iterator[Miss]:
        """How steps and iterations without a forecast are missed by what is known of others.

        A new iteration is compared with the others of its step, those of the same run included; a
        new step, once, with other steps: those of other pipelines where there are any.
        """
        compared: set[StepKey] = set()
        for each in _some_of_each_step(without_forecast):
            identity, step = each.identity, self._steps.get(each.identity.key)
            known: list[KnownEstimate | None] = []
            if step is not None and identity.iteration is not None:
                others_of_step = self.levels.of_step(
                    step, each.input_bytes, each.arguments, identity.iteration
                )
                known.append(others_of_step)
            is_new = identity.key in new_steps and self._of_namespace is None
            if is_new and identity.key not in compared:
                compared.add(identity.key)
                for level in WIDER:
                    elsewhere = self.levels.of_others(identity, level, identity.pipeline)
                    others = elsewhere or self.levels.of_others(identity, level, identity.key)
                    known.append(others)
            for estimated in known:
                if estimated is not None and _tells(miss := self._miss_of(each, estimated)):
                    yield miss


def _some_of_each_step(observations: Sequence[Observation]) -> Iterator[Observation]:
    """As many as misses of one run count; a loop may have thousands, each compared with many."""
    steps: dict[StepKey, list[Observation]] = defaultdict(list)
    for each in observations:
        steps[each.identity.key].append(each)
    for found in steps.values():
        # Not the first ones: these may be the large items, or those of a slow hour.
        is_few = len(found) <= MISSES_OF_RUN
        yield from found if is_few else Random(len(found)).sample(found, MISSES_OF_RUN)


def _log_seconds(observation: Observation) -> float:
    return math.log(max(LEAST_SECONDS, observation.seconds))


def _tells(miss: Miss) -> bool:
    """Whether it is of a step that is long enough: times are cut to whole seconds."""
    expected = miss.known.estimate.log_seconds
    return max(expected, expected + miss.log_ratio) >= math.log(SHORT_SECONDS)


def _is_foreseen(identity: StepIdentity, level: Level) -> bool:
    """Whether the forecast was of what was wanted, not only of something like it."""
    return level is (Level.STEP if identity.iteration is None else Level.ITERATION)
