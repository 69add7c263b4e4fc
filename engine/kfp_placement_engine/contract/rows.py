"""Rows of a PipelinePlacement: one step in a short list, since named records would be too large.

::

    spec.steps:    [name, node, start, finish, [reason, argument ...], [[node, loss, trip] ...],
                    [source, level, runs, by size, by argument]]
    status.steps:  [state, node, start, end, [waiting for, since, until, detail],
                    [start low, typical, high, end low, typical, high]]

A node is an index into `spec.nodes`, -1 = none; times are seconds since the submission, -1 = none;
a loss is the seconds the run would end later, a trip the round trip in milliseconds where a rule or
limit asks for it. The source says where the run time comes from, the level which past runs it rests
on, and whether it follows the size of the inputs or an argument, of which there is the name; the
six times are what is promised of the step. Seconds are kept to a tenth, from 1,000 on as whole
ones. Entries may be missing at the end, and a newer revision may add some there.
`model.reasons` knows what the arguments mean, and `rows_reading` reads the rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.promise import StepPromise, TimeRange
from kfp_placement_engine.model.reasons import Argument, Reason
from kfp_placement_engine.model.step_state import Waiting
from kfp_placement_engine.plans.planned_step import Alternative

MAX_ROWS = 20_000
"""Steps of one run; far more than 1 MB holds."""

MAX_ALTERNATIVES = 3
"""Limit of the alternatives that are named for a step."""

MAX_TEXT_CHARACTERS = 1024
"""Longest text in a row."""

MAX_NAME_CHARACTERS = 80
"""Longest name of an argument."""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """Plan of one step.

    Attributes:
        name: the step's name.
        node: index of its node; None = none (unschedulable, or from the cache).
        start_seconds, finish_seconds: seconds since the submission; None = not planned.
        reason: reason for the choice of the node.
        alternatives: the next best nodes.
        duration_source: source of the run time, as in `DurationSource`; "" = not stated.
        duration_basis: past runs that the run time rests on; None = none.
    """

    name: str
    node: int | None = None
    start_seconds: float | None = None
    finish_seconds: float | None = None
    reason: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()
    duration_source: str = ""
    duration_basis: Basis | None = None

    def with_nodes(self, translate: Callable[[int], int]) -> "PlannedRow":
        """Return the row for a plan with another list of nodes.

        Args:
            translate: old position to new.
        """
        return replace(
            self,
            node=None if self.node is None else translate(self.node),
            reason=None if self.reason is None else self.reason.with_nodes(translate),
            alternatives=tuple(
                replace(other, node=translate(other.node)) for other in self.alternatives
            ),
        )


@dataclass(frozen=True, slots=True)
class StateRow:
    """State of one step.

    Attributes:
        state: one of `StepState`, or a word of a newer revision.
        node: index of the node its pod is or was bound to.
        start_seconds, end_seconds: seconds since the submission.
        waiting: cause of its waiting, if it waits.
        promise: promised start and end, since the submission; None = not known, or it has ended.
    """

    state: str
    node: int | None = None
    start_seconds: float | None = None
    end_seconds: float | None = None
    waiting: Waiting | None = None
    promise: StepPromise | None = None


def planned_row(row: PlannedRow) -> list[Any]:
    """Write a planned row."""
    reason = row.reason
    written = [
        row.name,
        _index(row.node),
        _seconds(row.start_seconds),
        _seconds(row.finish_seconds),
        [] if reason is None else [reason.code, *map(_argument, reason.arguments)],
        [_alternative(each) for each in row.alternatives[:MAX_ALTERNATIVES]],
        _source(row.duration_source, row.duration_basis),
    ]
    return _without_empty_tail(written)


def state_row(row: StateRow) -> list[Any]:
    """Write what happened to a step."""
    promise = row.promise
    written = [
        str(row.state),
        _index(row.node),
        _seconds(row.start_seconds),
        _seconds(row.end_seconds),
        [] if row.waiting is None else _waiting(row.waiting),
        [] if promise is None else [*_range(promise.starts), *_range(promise.ends)],
    ]
    return _without_empty_tail(written)


def _alternative(alternative: Alternative) -> list[Any]:
    trip_ms = -1 if alternative.latency_ms is None else round(alternative.latency_ms, 3)
    written = [alternative.node, _seconds(alternative.loss_seconds), _argument(trip_ms)]
    return _without_empty_tail(written)


def _waiting(waiting: Waiting) -> list[Any]:
    since, until = _seconds(waiting.since_seconds), _seconds(waiting.until_seconds)
    detail = _printable(waiting.detail[:MAX_TEXT_CHARACTERS])
    return _without_empty_tail([str(waiting.what), since, until, detail])


def _index(node: int | None) -> int:
    return -1 if node is None else node


def _seconds(seconds: float | None) -> float | int:
    """Return seconds to a tenth, from 1,000 on as whole seconds; whole numbers without a point."""
    if seconds is None:
        return -1
    rounded = round(max(0.0, seconds), 1)
    return round(rounded) if rounded >= 1000 or rounded == int(rounded) else rounded


def _argument(argument: Argument) -> Any:
    if isinstance(argument, tuple):
        return [_argument(each) for each in argument]
    if isinstance(argument, float) and argument.is_integer() and abs(argument) < 2**53:
        return int(argument)
    return argument


def _source(source: str, basis: Basis | None) -> list[Any]:
    if basis is None:
        return [source] if source else []
    by_size = int(basis.by_size) or -1
    argument = _printable(basis.by_argument[:MAX_NAME_CHARACTERS])
    return _without_empty_tail([source, str(basis.level), basis.runs, by_size, argument])


def _range(times: TimeRange) -> list[float]:
    """Return a range; a step that began before the submission by our clock is written as 0."""
    return [_seconds(max(0.0, each)) for each in times.moments]


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).rstrip()


def _without_empty_tail(entries: list[Any]) -> list[Any]:
    """Drop what says nothing at the end."""
    while entries and (entries[-1] in ("", []) or entries[-1] == -1):
        entries.pop()
    return entries


def padded(row: Sequence[Any], count: int) -> list[Any]:
    """Return a number of entries of a row; None in place of those that are missing at the end."""
    return [*row[:count], *[None] * (count - len(row))]
