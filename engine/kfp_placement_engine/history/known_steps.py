"""The past values of each step, and which steps are alike; bounded, whatever comes."""

from collections import deque
from collections.abc import Callable, Iterator, KeysView
from dataclasses import dataclass, field
from itertools import count, islice
from statistics import median

from kfp_placement_engine.history.estimates import Value
from kfp_placement_engine.model.history import Level, Observation, StepIdentity

VALUES_OF_ITERATION = 20
VALUES_OF_STEP = 500
LEAST_OF_ITERATION = 5
"""Of wide loops fewer values of each iteration are kept, down to these."""

MOST_ITERATIONS = VALUES_OF_STEP // LEAST_OF_ITERATION
MOST_STEPS = 10_000
"""Of a namespace; those that were not seen for longest go first."""

MOST_ALIKE = 200
"""Steps that are looked at where many are alike: those seen last."""

RECENT = 5
"""This many last values decide where the next one lies."""

WIDER = (Level.COMPONENT, Level.IMAGE, Level.NAMESPACE)
"""What steps have in common with others, the most similar first."""

StepKey = tuple[str, str]
"""Pipeline and step."""


@dataclass(frozen=True)
class KeptValue:
    """A run time as it was.

    Attributes:
        log_seconds: its logarithm.
        node: where it was.
        input_bytes: size of the inputs; None = unknown.
    """

    log_seconds: float
    node: str
    input_bytes: float | None


LogFactor = Callable[[str], float]
"""Logarithm of a node's factor, by its name."""


@dataclass
class _Iteration:
    """Values of one iteration, the last run of its step that had it, and how many had it."""

    values: deque[KeptValue] = field(default_factory=lambda: deque(maxlen=VALUES_OF_ITERATION))
    last_run: int = 0
    runs: int = 0


@dataclass
class KnownStep:
    """One step of a pipeline, with its iterations.

    Attributes:
        component, image: the last it ran.
        runs: in how many runs it was seen.
        iterations: the one that was seen last is at the end. Values whose iteration is not known
            have a number each.
    """

    component: str = ""
    image: str = ""
    runs: int = 0
    iterations: dict[str | int, _Iteration] = field(default_factory=dict)
    _unnamed: Iterator[int] = field(default_factory=count)
    _typical: tuple[object, dict[str | int, Value]] | None = None

    def add(self, name: str | None, value: KeptValue) -> None:
        """Keep a value of an iteration; None = it is not known which one.

        Of loops with too many iterations some are kept through all runs, rather than each until the
        loop comes to it again: what goes first are iterations that the last two runs did not have.
        """
        iteration = self.iterations.pop(name, None) if name is not None else None
        if iteration is None:
            if len(self.iterations) >= MOST_ITERATIONS:
                oldest = next(iter(self.iterations))
                if name is not None and not self._may_go(oldest):
                    return
                del self.iterations[oldest]
            iteration = _Iteration()
        iteration.values.append(value)
        iteration.runs += iteration.last_run != self.runs
        iteration.last_run = self.runs
        self.iterations[next(self._unnamed) if name is None else name] = iteration
        share = max(LEAST_OF_ITERATION, VALUES_OF_STEP // len(self.iterations))
        while len(iteration.values) > share:
            iteration.values.popleft()

    def _may_go(self, name: str | int) -> bool:
        return isinstance(name, int) or self.iterations[name].last_run < self.runs - 1

    def runs_of(self, name: str | None) -> int:
        """How many runs had an iteration."""
        iteration = None if name is None else self.iterations.get(name)
        return 0 if iteration is None else iteration.runs

    def values(self, name: str | None, factor: LogFactor) -> list[Value]:
        """Those of one iteration, as on the reference node."""
        iteration = None if name is None else self.iterations.get(name)
        kept = () if iteration is None else iteration.values
        return [Value(each.log_seconds - factor(each.node), each.input_bytes) for each in kept]

    def typical(
        self, factor: LogFactor, version: object, without: str | None = None
    ) -> list[Value]:
        """One value for each iteration: the median of its last ones, and its last size.

        Iterations that none of the last runs had are left out: they are of older code.

        Args:
            factor: of nodes.
            version: of what is known; the same version has the same values.
            without: an iteration to leave out.
        """
        if self._typical is None or self._typical[0] != version:
            found = {
                name: _median(iteration.values, factor)
                for name, iteration in self.iterations.items()
                if iteration.last_run > self.runs - RECENT
            }
            self._typical = (version, found)
        return [value for key, value in self._typical[1].items() if key != without]

    def like(self, level: Level) -> str:
        """What tells steps that are alike."""
        return {Level.COMPONENT: self.component, Level.IMAGE: self.image}.get(level, "*")


def _median(values: deque[KeptValue], factor: LogFactor) -> Value:
    last = list(islice(reversed(values), RECENT))
    return Value(median(each.log_seconds - factor(each.node) for each in last), last[0].input_bytes)


class KnownSteps:
    """All steps of a namespace."""

    def __init__(self) -> None:
        """Begin with none."""
        self._steps: dict[StepKey, KnownStep] = {}
        self._alike: dict[tuple[Level, str], dict[StepKey, KnownStep]] = {}

    def keys(self) -> KeysView[StepKey]:
        """All steps."""
        return self._steps.keys()

    def get(self, identity: StepIdentity) -> KnownStep | None:
        """The step, whatever its iteration."""
        return self._steps.get(identity.key)

    def observe(self, observation: Observation, log_seconds: float, *, is_first: bool) -> None:
        """Keep what was observed.

        Args:
            observation: the step.
            log_seconds: its run time's logarithm.
            is_first: whether it is the first one of its step in a run.
        """
        identity = observation.identity
        key = identity.key
        step = self._steps.pop(key, None) or KnownStep()
        self._forget(key, step)
        step.component, step.image = identity.component, identity.image
        step.runs += is_first
        value = KeptValue(log_seconds, observation.node, observation.input_bytes)
        step.add(identity.iteration, value)
        self._steps[key] = step
        for level in WIDER:
            if step.like(level):
                self._alike.setdefault((level, step.like(level)), {})[key] = step
        if len(self._steps) > MOST_STEPS:
            oldest = next(iter(self._steps))
            self._forget(oldest, self._steps.pop(oldest))

    def alike(
        self, identity: StepIdentity, level: Level, *, elsewhere: bool = False
    ) -> dict[StepKey, KnownStep]:
        """Other steps with the same component, or image, or all other steps; those seen last.

        Args:
            identity: the step.
            level: what they have in common.
            elsewhere: only those of other pipelines.
        """
        like = KnownStep(identity.component, identity.image).like(level)
        steps = self._alike.get((level, like), {}) if like else {}
        others = (
            (key, step)
            for key, step in reversed(steps.items())
            if key != identity.key and not (elsewhere and key[0] == identity.pipeline)
        )
        return dict(islice(others, MOST_ALIKE))

    def _forget(self, key: StepKey, step: KnownStep) -> None:
        for level in WIDER:
            entries = self._alike.get((level, step.like(level)))
            if entries is not None:
                entries.pop(key, None)
                if not entries:
                    del self._alike[level, step.like(level)]
