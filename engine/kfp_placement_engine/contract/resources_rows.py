"""Rows of a PipelinePlacement: one step in a short list, since named records would be too large.

::

    spec.steps:    [name, node, start, finish, [reason code, argument ...], [[node, loss] ...]]
    status.steps:  [state, node, start, end, [waiting for, since, until, detail]]

A node is an index into `spec.nodes`, -1 = none; times are seconds since the submission to a tenth,
-1 = none; a loss is the seconds the run would end later. Entries may be missing at the end, and a
newer revision may add some there. Rows come from outside: reading refuses a row it cannot use and
says why, and never fails.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from kfp_placement_engine.exceptions import InputError

MAX_ROWS = 20_000
"""Steps of one run; far more than 1 MB holds."""

MAX_ALTERNATIVES = 3
MAX_TEXT_CHARACTERS = 1024
MAX_ARGUMENTS = 16
MAX_SECONDS = 1e9
MAX_PROBLEMS = 10
"""Rows that cannot be read and are described; the others are counted."""

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
    VOLUME = "volume"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a step goes where it goes; `reason_texts` makes a sentence of it."""

    code: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another node, and how much later the run would end there."""

    node: int
    loss_seconds: float


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


RowT = TypeVar("RowT")


@dataclass(frozen=True)
class ReadRows(Generic[RowT]):
    """Rows that were read.

    Attributes:
        rows: in the order given; None where a row cannot be used.
        problems: what is wrong with those, for people.
    """

    rows: tuple[RowT | None, ...] = ()
    problems: tuple[str, ...] = ()


def planned_row(row: PlannedRow) -> list[Any]:
    """Write a planned row."""
    written = [
        row.name,
        _index(row.node),
        _seconds(row.start_seconds),
        _seconds(row.finish_seconds),
        [] if row.reason is None else [row.reason.code, *map(_argument, row.reason.arguments)],
        [[each.node, _seconds(each.loss_seconds)] for each in row.alternatives[:MAX_ALTERNATIVES]],
    ]
    return _without_empty_tail(written)


def state_row(row: StateRow) -> list[Any]:
    """Write what became of a step."""
    waiting = row.waiting
    written = [str(row.state), _index(row.node), _seconds(row.start_seconds)]
    written.append(_seconds(row.end_seconds))
    if waiting is not None:
        since, until = _seconds(waiting.since_seconds), _seconds(waiting.until_seconds)
        detail = waiting.detail[:MAX_TEXT_CHARACTERS]
        written.append(_without_empty_tail([str(waiting.what), since, until, detail]))
    return written


def read_planned_row(row: object, nodes: int) -> PlannedRow:
    """Read a planned row of a plan with so many nodes.

    Raises:
        InputError: it cannot be used; the message says what is wrong.
    """
    entries = _list(row, "a row")
    return PlannedRow(
        name=_text(_entry(entries, 0), "a step's name"),
        node=_node(_entry(entries, 1), nodes),
        start_seconds=_time(_entry(entries, 2)),
        finish_seconds=_time(_entry(entries, 3)),
        reason=_reason(_entry(entries, 4)),
        alternatives=_alternatives(_entry(entries, 5), nodes),
    )


def read_state_row(row: object, nodes: int) -> StateRow:
    """Read what became of a step.

    Raises:
        InputError: it cannot be used; the message says what is wrong.
    """
    entries = _list(row, "a row")
    return StateRow(
        state=_text(_entry(entries, 0), "a state"),
        node=_node(_entry(entries, 1), nodes),
        start_seconds=_time(_entry(entries, 2)),
        end_seconds=_time(_entry(entries, 3)),
        waiting=_waiting(_entry(entries, 4)),
    )


def read_planned_rows(rows: Sequence[object], nodes: int) -> ReadRows[PlannedRow]:
    """Read all rows of a plan; of two of the same name only the first counts."""
    names: set[str] = set()

    def read(row: object) -> PlannedRow:
        planned = read_planned_row(row, nodes)
        if planned.name in names:
            raise InputError(f"step {planned.name!r:.120} has a row already")
        names.add(planned.name)
        return planned

    return _read_all(rows, read)


def read_state_rows(rows: Sequence[object], nodes: int) -> ReadRows[StateRow]:
    """Read all rows of a status."""
    return _read_all(rows, lambda row: read_state_row(row, nodes))


def _read_all(rows: Sequence[object], read: Callable[[object], RowT]) -> ReadRows[RowT]:
    result: list[RowT | None] = []
    problems: list[str] = []
    for number, row in enumerate(rows[:MAX_ROWS]):
        try:
            result.append(read(row))
        except InputError as error:
            result.append(None)
            problems.append(f"steps[{number}]: {error}")
    if len(rows) > MAX_ROWS:
        problems.insert(0, f"{len(rows)} rows; only {MAX_ROWS} are read")
    if len(problems) > MAX_PROBLEMS:
        more = len(problems) - MAX_PROBLEMS
        problems[MAX_PROBLEMS:] = [f"{more} more rows cannot be read"]
    return ReadRows(tuple(result), tuple(problems))


def _index(node: int | None) -> int:
    return -1 if node is None else node


def _seconds(seconds: float | None) -> float | int:
    """To a tenth; whole numbers without a point."""
    if seconds is None:
        return -1
    rounded = round(max(0.0, seconds), 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _argument(argument: Argument) -> Any:
    if isinstance(argument, tuple):
        return [_argument(each) for each in argument]
    if isinstance(argument, float):
        return int(argument) if argument == int(argument) else argument
    return argument


def _without_empty_tail(entries: list[Any]) -> list[Any]:
    """Drop what says nothing at the end."""
    while entries and (entries[-1] in ("", []) or entries[-1] == -1):
        entries.pop()
    return entries


def _entry(entries: Sequence[object], position: int) -> object:
    return entries[position] if position < len(entries) else None


def _list(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{what} must be a list, not {_kind(value)}")
    return value


def _text(value: object, what: str, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise InputError(f"{what} must be a text, not {_kind(value)}")
    if len(value) > MAX_TEXT_CHARACTERS or not value.isprintable():
        raise InputError(
            f"{what} must be at most {MAX_TEXT_CHARACTERS} printable characters: {value!r:.60}"
        )
    return value


def _number(value: object, what: str) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what} must be a number, not {_kind(value)}")
    if not abs(value) <= MAX_SECONDS:  # also refuses NaN
        raise InputError(f"{what} must lie within {MAX_SECONDS:g}, not {value!r:.30}")
    return value


def _node(value: object, nodes: int) -> int | None:
    if value is None:
        return None
    index = _number(value, "a node")
    if index == -1:
        return None
    if index != int(index) or not 0 <= index < nodes:
        raise InputError(f"node {index} is none of the {nodes} nodes of the plan")
    return int(index)


def _time(value: object) -> float | None:
    if value is None:
        return None
    seconds = float(_number(value, "a time"))
    return None if seconds < 0 else seconds


def _reason(value: object) -> Reason | None:
    if value is None:
        return None
    entries = _list(value, "a reason")
    if not entries:
        return None
    return Reason(_text(entries[0], "a reason's code"), _arguments(entries[1:], depth=0))


def _arguments(values: Sequence[object], depth: int) -> tuple[Argument, ...]:
    if len(values) > MAX_ARGUMENTS or depth > 2:
        raise InputError(f"a reason has more than {MAX_ARGUMENTS} arguments, or lists too deep")
    read: list[Argument] = []
    for value in values:
        if isinstance(value, list | tuple):
            read.append(_arguments(value, depth + 1))
        elif isinstance(value, str):
            read.append(_text(value, "an argument", empty=True))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"an argument must be a text or a number, not {_kind(value)}")
        elif not (isinstance(value, int) and abs(value) < 2**63) and not math.isfinite(value):
            raise InputError("an argument is no finite number")
        else:
            read.append(value)
    return tuple(read)


def _alternatives(value: object, nodes: int) -> tuple[Alternative, ...]:
    if value is None:
        return ()
    result = []
    for entry in _list(value, "the alternatives")[:MAX_ALTERNATIVES]:
        pair = _list(entry, "an alternative")
        node, loss = _node(_entry(pair, 0), nodes), _number(_entry(pair, 1), "a loss")
        if node is None:
            raise InputError("an alternative names no node")
        result.append(Alternative(node, float(loss)))
    return tuple(result)


def _waiting(value: object) -> Waiting | None:
    if value is None:
        return None
    entries = _list(value, "what a step waits for")
    if not entries:
        return None
    detail = _entry(entries, 3)
    return Waiting(
        what=_text(entries[0], "what a step waits for"),
        since_seconds=_time(_entry(entries, 1)) or 0.0,
        until_seconds=_time(_entry(entries, 2)),
        detail="" if detail is None else _text(detail, "a detail", empty=True),
    )


def _kind(value: object) -> str:
    names: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a bool"}
    return "nothing" if value is None else names.get(type(value), type(value).__name__)


def state_counts(rows: Iterable[StateRow | None]) -> Mapping[StepState, int]:
    """Steps by state; rows that cannot be read or speak of newer states are left out."""
    counts = dict.fromkeys(StepState, 0)
    for row in rows:
        if row is not None and row.state in counts:
            counts[StepState(row.state)] += 1
    return counts
