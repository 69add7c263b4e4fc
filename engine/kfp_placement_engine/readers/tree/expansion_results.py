"""What a task of the tree became: the steps at its end, and where its outputs come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kfp_placement_engine.readers.tree.tasks import Dag, OutputSources
from kfp_placement_engine.readers.tree.values import UNKNOWN, Produced, Value


class Result(Protocol):
    """An expanded task."""

    @property
    def sinks(self) -> tuple[str, ...]:
        """Steps that must have ended before the task has, sorted."""

    def parameter(self, key: str) -> Value:
        """An output parameter."""

    def artifact(self, key: str) -> Value:
        """An output artifact."""


@dataclass(frozen=True)
class LeafResult:
    """A single step."""

    name: str

    @property
    def sinks(self) -> tuple[str, ...]:
        """The step itself."""
        return (self.name,)

    def parameter(self, key: str) -> Value:
        """Made by the step."""
        return Produced(((self.name, key),))

    def artifact(self, key: str) -> Value:
        """Made by the step."""
        return Produced(((self.name, key),))


@dataclass(frozen=True)
class NoResult:
    """A task without a pod: its end is the end of what it waits for."""

    sinks: tuple[str, ...]

    def parameter(self, _key: str) -> Value:
        """Not known."""
        return UNKNOWN

    def artifact(self, _key: str) -> Value:
        """Not known."""
        return UNKNOWN


@dataclass(frozen=True)
class DagResult:
    """A DAG; its outputs are those of some of its tasks."""

    dag: Dag
    results: Mapping[str, Result]
    sinks: tuple[str, ...]
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, repr=False, compare=False)

    def parameter(self, key: str) -> Value:
        """Made by the tasks that the DAG names for it."""
        value = self._values.get(("parameter", key))
        if value is None:
            sources = self.dag.parameter_outputs.get(key, ())
            value = joined([self.results[t].parameter(k) for t, k in self._present(sources)])
            self._values["parameter", key] = value
        return value

    def artifact(self, key: str) -> Value:
        """Made by the tasks that the DAG names for it."""
        value = self._values.get(("artifact", key))
        if value is None:
            sources = self.dag.artifact_outputs.get(key, ())
            value = joined([self.results[t].artifact(k) for t, k in self._present(sources)])
            self._values["artifact", key] = value
        return value

    def _present(self, sources: OutputSources) -> list[tuple[str, str]]:
        return [source for source in sources if source[0] in self.results]


@dataclass(frozen=True)
class LoopResult:
    """All iterations of a loop; an output is the collection of theirs."""

    runs: tuple[Result, ...]
    upstream: tuple[str, ...]
    _values: dict[tuple[str, str], Value] = field(default_factory=dict, repr=False, compare=False)
    _sinks: list[tuple[str, ...]] = field(default_factory=list, repr=False, compare=False)

    @property
    def sinks(self) -> tuple[str, ...]:
        """The ends of all iterations; of a loop without any, what it waited for."""
        if not self._sinks:
            names = {name for run in self.runs for name in run.sinks}
            self._sinks.append(tuple(sorted(names)) if self.runs else self.upstream)
        return self._sinks[0]

    def parameter(self, key: str) -> Value:
        """Collected from the iterations."""
        if ("parameter", key) not in self._values:
            self._values["parameter", key] = joined([run.parameter(key) for run in self.runs])
        return self._values["parameter", key]

    def artifact(self, key: str) -> Value:
        """Collected from the iterations."""
        if ("artifact", key) not in self._values:
            self._values["artifact", key] = joined([run.artifact(key) for run in self.runs])
        return self._values["artifact", key]


def joined(values: list[Value]) -> Value:
    """One value for several: what all their producers make; nothing else is known of it."""
    if len(values) == 1:
        return values[0]
    sources: dict[tuple[str, str], None] = {}
    for value in values:
        if isinstance(value, Produced):
            sources.update(dict.fromkeys(value.sources))
    return Produced(tuple(sources)) if sources else UNKNOWN
