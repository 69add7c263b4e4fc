"""Expected run graph of a generated pipeline, worked out from its truth alone.

Written without a look at how readers do it: dependencies come from the rule that a task starts when
those it waits for have ended *with all that is in them*, one pair of steps at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tests.support.generated_pipelines import TrueTask, Truth

ASSUMED_WIDTH = 3


@dataclass(frozen=True)
class TrueStep:
    """One iteration of a task: its path, with an index for every loop on the way."""

    task: TrueTask
    levels: tuple[tuple[str, int | None], ...]
    assumed: bool

    @property
    def name(self) -> str:
        """The step's name."""
        return ".".join(
            name if index is None else f"{name}[{index}]" for name, index in self.levels
        )


def true_steps(truth: Truth) -> list[TrueStep]:
    """Return all steps, loops written out."""
    return [step for task in truth.tasks for step in _iterations(task, truth)]


def _iterations(task: TrueTask, truth: Truth) -> Iterator[TrueStep]:
    prefixes = [task.path[: length + 1] for length in range(len(task.path))]
    widths = [truth.loops.get(prefix) for prefix in prefixes]
    assumed = any(loop is not None and loop[0] is None for loop in widths)
    ranges = [
        [None] if loop is None else list(range(ASSUMED_WIDTH if loop[0] is None else loop[0]))
        for loop in widths
    ]
    for indexes in product(*ranges):
        yield TrueStep(task, tuple(zip(task.path, indexes, strict=True)), assumed)


def must_precede(truth: Truth, steps: list[TrueStep]) -> set[tuple[str, str]]:
    """Pairs (a, b) of step names: b starts only after a has ended."""
    waits: dict[tuple[tuple[str, ...], str], set[str]] = {}
    for dag, user, other in truth.waits:
        waits.setdefault((dag, user), set()).add(other)
    closed = {key: _closure(key, waits) for key in waits}
    return {
        (first.name, second.name)
        for first, second in product(steps, steps)
        if first is not second and _waits(second, first, closed)
    }


def _closure(
    key: tuple[tuple[str, ...], str], waits: dict[tuple[tuple[str, ...], str], set[str]]
) -> set[str]:
    dag, _ = key
    closure: set[str] = set()
    open_names = list(waits[key])
    while open_names:
        name = open_names.pop()
        if name not in closure:
            closure.add(name)
            open_names.extend(waits.get((dag, name), ()))
    return closure


def _waits(
    user: TrueStep, other: TrueStep, closed: dict[tuple[tuple[str, ...], str], set[str]]
) -> bool:
    """Return whether one task waits for the other in the innermost place that holds both."""
    if other.task.exit_task:
        return False
    shared = 0
    while user.levels[shared] == other.levels[shared]:
        shared += 1
    dag = tuple(name for name, _ in user.levels[:shared])
    return other.levels[shared][0] in closed.get((dag, user.levels[shared][0]), set())
