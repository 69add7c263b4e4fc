"""What a task of the tree became: the steps at its end, and where its outputs come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from kfp_placement_engine.readers.tree.tasks import Dag, OutputKind
from kfp_placement_engine.readers.tree.values import UNKNOWN, Produced, Value


class Result(Protocol):
    """An expanded task."""

    @property
    def sinks(self) -> tuple[str, ...]:
        """Steps that must have ended before the task has, sorted."""

    def output(self, kind: OutputKind, key: str) -> Value:
        """An output parameter or artifact."""


@dataclass(frozen=True)
class LeafResult:
    """A single step."""

    name: str

    @property
    def sinks(self) -> tuple[str, ...]:
        """The step itself."""
        return (self.name,)

    def output(self, _kind: OutputKind, key: str) -> Value:
        """Made by the step."""
        return Produced(((self.name, key),))


@dataclass(frozen=True)
class NoResult:
    """A task without a pod: its end is the end of what it waits for."""

    sinks: tuple[str, ...]

    def output(self, _kind: OutputKind, _key: str) -> Value:
        """Not known."""
        return UNKNOWN


@dataclass(frozen=True)
class DagResult:
    """A DAG; its outputs are those of some of its tasks."""

    dag: Dag
    results: Mapping[str, Result]
    sinks: tuple[str, ...]
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, repr=False, compare=False)

    def output(self, kind: OutputKind, key: str) -> Value:
        """Made by the tasks that the DAG names for it."""
        if (kind, key) not in self._values:
            sources = self.dag.outputs.get((kind, key), ())
            present = [source for source in sources if source[0] in self.results]
            self._values[kind, key] = joined(
                [self.results[task].output(kind, name) for task, name in present]
            )
        return self._values[kind, key]


@dataclass(frozen=True)
class LoopResult:
    """All iterations of a loop; an output is the collection of theirs."""

    runs: tuple[Result, ...]
    upstream: tuple[str, ...]
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """The ends of all iterations; of a loop without any, what it waited for."""
        names = {name for run in self.runs for name in run.sinks}
        return tuple(sorted(names)) if self.runs else self.upstream

    def output(self, kind: OutputKind, key: str) -> Value:
        """Collected from the iterations."""
        if (kind, key) not in self._values:
            self._values[kind, key] = joined([run.output(kind, key) for run in self.runs])
        return self._values[kind, key]


def joined(values: list[Value]) -> Value:
    """One value for several: what all their producers make; nothing else is known of it."""
    if len(values) == 1:
        return values[0]
    made = (value.sources for value in values if isinstance(value, Produced))
    sources = dict.fromkeys(source for each in made for source in each)
    return Produced(tuple(sources)) if sources else UNKNOWN
