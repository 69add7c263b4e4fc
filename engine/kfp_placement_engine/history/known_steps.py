"""The past values of each step, and which steps are alike; bounded, whatever comes."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from kfp_placement_engine.history.iterations import VALUES_OF_ITERATION, Iteration
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.history import Observation, StepIdentity

VALUES_OF_STEP = 500
LEAST_OF_ITERATION = 5
"""Of wide loops fewer values of each iteration are kept, down to these."""

MOST_ITERATIONS = VALUES_OF_STEP // LEAST_OF_ITERATION
MOST_STEPS = 10_000
"""Of a namespace; those that were not seen for longest go first."""

MOST_ALIKE = 200
"""Steps that are looked at where many are alike: those seen last."""

WIDER = (Level.COMPONENT, Level.IMAGE, Level.NAMESPACE)
"""What steps have in common with others, the most similar first."""

StepKey = tuple[str, str]
"""Pipeline and step."""


@dataclass(slots=True, eq=False)
class KnownStep:
    """One step of a pipeline, with its iterations.

    Attributes:
        key: its pipeline and name.
        component, image: the last it ran.
        runs: in how many runs it was seen.
        iterations: the one that was seen last is at the end. A value whose iteration is not known
            is one of its own.
    """

    key: StepKey
    component: str = ""
    image: str = ""
    runs: int = 0
    # Most steps have one, for which a dictionary would be as large as its values.
    iterations: tuple[Iteration, ...] = ()

    def iteration(self, name: str | None) -> Iteration | None:
        """The iteration of a name; None = it has not been seen, or it is not known which one."""
        if name is not None:
            for each in self.iterations:
                if each.name == name:
                    return each
        return None

    def add(self, observation: Observation, log_seconds: float) -> None:
        """Keep a value of an iteration.

        Of loops with too many iterations some are kept through all runs, rather than each until the
        loop comes to it again: what goes first are iterations that the last two runs did not have.
        """
        name = observation.identity.iteration
        iteration = self.iteration(name)
        if iteration is None:
            if len(self.iterations) >= MOST_ITERATIONS:
                if name is not None and not self._may_go(self.iterations[0]):
                    return
                self.iterations = self.iterations[1:]
            iteration = Iteration(name)
        iteration.runs += iteration.last_run != self.runs
        iteration.last_run = self.runs
        if self.iterations[-1:] != (iteration,):
            others = [each for each in self.iterations if each is not iteration]
            self.iterations = (*others, iteration)
        share = max(LEAST_OF_ITERATION, VALUES_OF_STEP // len(self.iterations))
        most = min(share, VALUES_OF_ITERATION)
        iteration.add(
            log_seconds, observation.node, observation.input_bytes, most, observation.arguments
        )

    def has_arguments_of(self, identity: StepIdentity) -> bool:
        """Whether an argument means what it did: not in other code of the same image.

        Values are kept without names, and by another function the first may be the second. Where
        the image is another one too, as with every build, the function need not be.
        """
        is_other_code = identity.component != self.component and identity.image == self.image
        return not (is_other_code and identity.component and self.component)

    def _may_go(self, iteration: Iteration) -> bool:
        return iteration.name is None or iteration.last_run < self.runs - 1


class _AlikeSteps:
    """Steps by what they have in common, those seen last at the end."""

    def __init__(self) -> None:
        # What one step alone has, as most components, is not worth a dictionary.
        self._groups: dict[str, KnownStep | dict[StepKey, KnownStep]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, name: str, step: KnownStep) -> None:
        """Add a step, or move it to the end."""
        group = self._groups.get(name, step)
        if group is step:
            self._groups[name] = step
        elif isinstance(group, KnownStep):
            self._groups[name] = {group.key: group, step.key: step}
        else:
            group.pop(step.key, None)
            group[step.key] = step

    def remove(self, name: str, step: KnownStep) -> None:
        """Remove a step, if it is there."""
        group = self._groups.get(name)
        if isinstance(group, dict):
            group.pop(step.key, None)
        if not group or group is step:
            self._groups.pop(name, None)

    def last_first(self, name: str) -> Iterator[KnownStep]:
        """Those of a name."""
        group = self._groups.get(name, {})
        return reversed(group.values()) if isinstance(group, dict) else iter((group,))


class KnownSteps:
    """All steps of a namespace.

    Attributes:
        version: counts what was observed.
        changed: steps that were observed since somebody has emptied this.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._steps: dict[StepKey, KnownStep] = {}
        self._by_component = _AlikeSteps()
        self._by_image = _AlikeSteps()
        self.version = 0
        self.changed: set[KnownStep] = set()

    def get(self, key: StepKey) -> KnownStep | None:
        """The step, whatever its iteration."""
        return self._steps.get(key)

    def observe(self, observation: Observation, log_seconds: float, *, is_first: bool) -> None:
        """Keep what was observed.

        Args:
            observation: the step.
            log_seconds: its run time's logarithm.
            is_first: whether it is the first one of its step in a run.
        """
        identity = observation.identity
        step = self._steps.pop(identity.key, None) or KnownStep(identity.key)
        self._steps[step.key] = step
        if not step.has_arguments_of(identity):
            for each in step.iterations:
                each.forget_arguments()
        self._sort_in(step, identity)
        step.runs += is_first
        step.add(observation, log_seconds)
        self.version += 1
        self.changed.add(step)
        if len(self._steps) > MOST_STEPS:
            oldest = self._steps.pop(next(iter(self._steps)))
            self._by_component.remove(oldest.component, oldest)
            self._by_image.remove(oldest.image, oldest)

    def _sort_in(self, step: KnownStep, identity: StepIdentity) -> None:
        """Among the steps that are alike, by what it ran this time."""
        if step.component != identity.component:
            self._by_component.remove(step.component, step)
            step.component = identity.component
        if step.image != identity.image:
            self._by_image.remove(step.image, step)
            # Each pod brings its own copy of the name.
            step.image = sys.intern(identity.image)
        if step.component:
            self._by_component.add(step.component, step)
        if step.image:
            self._by_image.add(step.image, step)

    def alike(self, level: Level, name: str, without: str | StepKey | None) -> list[KnownStep]:
        """Steps with the same component, or image, or all steps; those seen last.

        Args:
            level: what they have in common.
            name: of the component or image.
            without: a pipeline or a step that is left out; None = none.
        """
        steps: Iterator[KnownStep]
        if level is Level.COMPONENT:
            steps = self._by_component.last_first(name)
        elif level is Level.IMAGE:
            steps = self._by_image.last_first(name)
        else:
            steps = reversed(self._steps.values())
        others = (step for step in steps if without not in (step.key, step.key[0]))
        return list(islice(others, MOST_ALIKE))
