"""Rows of a PipelinePlacement: one step in a short list, since named records would be too large.

::

    spec.steps:    [name, node, start, finish, [reason, argument ...], [[node, loss, trip] ...]]
    status.steps:  [state, node, start, end, [waiting for, since, until, detail]]

A node is an index into `spec.nodes`, -1 = none; times are seconds since the submission, -1 = none;
a loss is the seconds the run would end later, a trip the round trip in milliseconds where a rule or
limit asks for it. Seconds are kept to a tenth, from 1,000 on as whole ones. Entries may be missing
at the end, and a newer revision may add some there.
`resources_rows_reading` reads them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_ROWS = 20_000
"""Steps of one run; far more than 1 MB holds."""

MAX_ALTERNATIVES = 3
"""Other nodes named for a step."""

MAX_TEXT_CHARACTERS = 1024
"""Longest text in a row."""


Argument = str | int | float | tuple["Argument", ...]
"""An argument of a reason: nodes by index, seconds, milliseconds, text, or a list of such."""


class StepState(StrEnum):
    """What became of a step so far."""

    PENDING = "pending"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CACHED = "cached"
    SKIPPED = "skipped"


ENDED_STATES = frozenset(
    {StepState.SUCCEEDED, StepState.FAILED, StepState.CACHED, StepState.SKIPPED}
)


class WaitingFor(StrEnum):
    """What keeps a step's pod from running."""

    PLAN = "plan"
    QUOTA = "quota"
    NODE = "node"
    LIMIT = "limit"
    VOLUME = "volume"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a step goes where it goes; `reason_texts` makes a sentence of it."""

    code: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another node.

    Attributes:
        node: its index.
        loss_seconds: how much later the run would end with the step there.
        latency_ms: round trip there; None = unknown, or no rule asks for it.
    """

    node: int
    loss_seconds: float
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """What is planned for a step.

    Attributes:
        name: the step's name.
        node: index of its node; None = none (unschedulable, or from the cache).
        start_seconds, finish_seconds: since the submission; None = not planned.
        reason: why there.
        alternatives: the next best nodes.
    """

    name: str
    node: int | None = None
    start_seconds: float | None = None
    finish_seconds: float | None = None
    reason: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a step waits for.

    Attributes:
        what: one of `WaitingFor`, or a word of a newer revision.
        since_seconds: since when, since the submission.
        until_seconds: until when at most; None = nobody ends it.
        detail: what Kubernetes says of it.
    """

    what: str
    since_seconds: float
    until_seconds: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StateRow:
    """What became of a step.

    Attributes:
        state: one of `StepState`, or a word of a newer revision.
        node: index of the node its pod is or was bound to.
        start_seconds, end_seconds: since the submission.
        waiting: what it waits for, if it does.
    """

    state: str = StepState.PENDING
    node: int | None = None
    start_seconds: float | None = None
    end_seconds: float | None = None
    waiting: Waiting | None = None


def planned_row(row: PlannedRow) -> list[Any]:
    """Write a planned row."""
    written = [
        row.name,
        _index(row.node),
        _seconds(row.start_seconds),
        _seconds(row.finish_seconds),
        [] if row.reason is None else [row.reason.code, *map(_argument, row.reason.arguments)],
        [_alternative(each) for each in row.alternatives[:MAX_ALTERNATIVES]],
    ]
    return _without_empty_tail(written)


def state_row(row: StateRow) -> list[Any]:
    """Write what became of a step."""
    waiting = row.waiting
    written = [str(row.state), _index(row.node), _seconds(row.start_seconds)]
    written.append(_seconds(row.end_seconds))
    if waiting is not None:
        since, until = _seconds(waiting.since_seconds), _seconds(waiting.until_seconds)
        detail = _printable(waiting.detail[:MAX_TEXT_CHARACTERS])
        written.append(_without_empty_tail([str(waiting.what), since, until, detail]))
    return _without_empty_tail(written)


def _alternative(alternative: Alternative) -> list[Any]:
    written: list[Any] = [alternative.node, _seconds(alternative.loss_seconds)]
    if alternative.latency_ms is not None:
        written.append(_argument(round(alternative.latency_ms, 3)))
    return written


def _index(node: int | None) -> int:
    return -1 if node is None else node


def _seconds(seconds: float | None) -> float | int:
    """To a tenth, from 1,000 on to whole seconds; whole numbers without a point."""
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


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).rstrip()


def _without_empty_tail(entries: list[Any]) -> list[Any]:
    """Drop what says nothing at the end."""
    while entries and (entries[-1] in ("", []) or entries[-1] == -1):
        entries.pop()
    return entries


def state_counts(rows: Iterable[StateRow | None]) -> Mapping[StepState, int]:
    """Steps by state; rows that cannot be read or speak of newer states are left out."""
    counts = dict.fromkeys(StepState, 0)
    for row in rows:
        if row is not None and row.state in counts:
            counts[StepState(row.state)] += 1
    return counts
