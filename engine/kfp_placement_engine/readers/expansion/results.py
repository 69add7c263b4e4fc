"""Results of expanding tasks: the steps at their ends, and the sources of their outputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from kfp_placement_engine.readers.tree.tasks import Dag, Names, OutputKind
from kfp_placement_engine.readers.tree.values import UNKNOWN, Produced, Value


class TaskResult(Protocol):
    """An expanded task of the tree."""

    @property
    def sinks(self) -> Names:
        """Steps that must have ended before the task has, sorted."""

    def output(self, kind: OutputKind, key: str) -> Value:
        """Return an output parameter or artifact."""


@dataclass(frozen=True)
class LeafResult:
    """Result of a leaf: a single step."""

    name: str

    @property
    def sinks(self) -> Names:
        """The step itself."""
        return (self.name,)

    def output(self, _kind: OutputKind, key: str) -> Value:
        """Return an output that the step produces."""
        return Produced(((self.name, key),))


@dataclass(frozen=True)
class NoResult:
    """Result of a task without a pod: it ends when the tasks that it waits for have ended."""

    sinks: Names

    def output(self, _kind: OutputKind, _key: str) -> Value:
        """Return an unknown value."""
        return UNKNOWN


@dataclass(frozen=True)
class AfterFailureResult:
    """Result of a task that runs only after a failure: a run that goes well ends without it.

    Attributes:
        result: result of the task if it runs.
        sinks: steps that must have ended before the task is known not to run.
    """

    result: TaskResult
    sinks: Names

    def output(self, kind: OutputKind, key: str) -> Value:
        """Return an output of the task."""
        return self.result.output(kind, key)


@dataclass(frozen=True)
class DagResult:
    """Result of a DAG, whose outputs are those of some of its tasks."""

    dag: Dag
    results: Mapping[str, TaskResult]
    sinks: Names
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, repr=False, compare=False)

    def output(self, kind: OutputKind, key: str) -> Value:
        """Return an output that the tasks named by the DAG produce."""
        if (kind, key) not in self._values:
            sources = self.dag.outputs.get((kind, key), ())
            self._values[kind, key] = joined(
                [
                    self.results[task].output(kind, name)
                    for task, name in sources
                    if task in self.results
                ]
            )
        return self._values[kind, key]


@dataclass(frozen=True)
class LoopResult:
    """Result of a loop; an output is the collection of the outputs of its iterations.

    Attributes:
        iterations: results of the iterations that run, by index.
        upstream: steps that the loop waits for.
    """

    iterations: Mapping[int, TaskResult]
    upstream: Names
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def sinks(self) -> Names:
        """Last steps of all iterations; for a loop without any, the steps that it waits for."""
        names = {name for iteration in self.iterations.values() for name in iteration.sinks}
        return tuple(sorted(names)) if self.iterations else self.upstream

    def output(self, kind: OutputKind, key: str) -> Value:
        """Return an output collected from the iterations."""
        if (kind, key) not in self._values:
            self._values[kind, key] = joined(
                [iteration.output(kind, key) for iteration in self.iterations.values()]
            )
        return self._values[kind, key]


def joined(values: list[Value]) -> Value:
    """Join values into one, of which only the producers are known."""
    if len(values) == 1:
        return values[0]
    sources = dict.fromkeys(
        source for value in values if isinstance(value, Produced) for source in value.sources
    )
    return Produced(tuple(sources)) if sources else UNKNOWN
