"""Reads rows of a PipelinePlacement, which anybody with the right to write one may have written.

A row that cannot be used is refused with the reason; reading never fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kfp_placement_engine.contract.rows import (
    MAX_ALTERNATIVES,
    MAX_NAME_CHARACTERS,
    MAX_ROWS,
    MAX_TEXT_CHARACTERS,
    PlannedRow,
    StateRow,
    padded,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import StepPromise, TimeRange
from kfp_placement_engine.model.reasons import Argument, Reason
from kfp_placement_engine.model.step_state import Waiting
from kfp_placement_engine.plans.planned_step import Alternative

MAX_ARGUMENTS = 16
"""Arguments of a reason that are read, and entries of a list among them."""

MAX_ARGUMENT = 2.0**63
"""Largest number among the arguments."""

MAX_SECONDS = 1e9
"""Latest time in a row."""

MAX_PROBLEMS = 10
"""Rows that cannot be read and are described; the others are counted."""

RowT = TypeVar("RowT")


@dataclass(frozen=True)
class ReadRows(Generic[RowT]):
    """Rows that were read.

    Attributes:
        rows: rows in the order given; None in place of each that cannot be used.
        problems: problems with unusable rows, for people.
    """

    rows: tuple[RowT | None, ...] = ()
    problems: tuple[str, ...] = ()


def read_planned_row(row: object, nodes: int) -> PlannedRow:
    """Read a planned row of a plan with this many nodes.

    Raises:
        InputError: it cannot be used; the message says what is wrong.
    """
    name, node, start, finish, reason, others, source = padded(_list(row, "a row"), 7)
    duration_source, duration_basis = _source(source)
    return PlannedRow(
        name=_text(name, "a step's name"),
        node=_node(node, nodes),
        start_seconds=_amount(start, "a time"),
        finish_seconds=_amount(finish, "a time"),
        reason=_reason(reason),
        alternatives=tuple(
            _alternative(each, nodes)
            for each in _list(others, "the alternatives")[:MAX_ALTERNATIVES]
        ),
        duration_source=duration_source,
        duration_basis=duration_basis,
    )


def read_state_row(row: object, nodes: int) -> StateRow:
    """Read what happened to a step.

    Raises:
        InputError: it cannot be used; the message says what is wrong.
    """
    state, node, start, end, waiting, promise = padded(_list(row, "a row"), 6)
    return StateRow(
        state=_text(state, "a state"),
        node=_node(node, nodes),
        start_seconds=_amount(start, "a time"),
        end_seconds=_amount(end, "a time"),
        waiting=_waiting(waiting),
        promise=_promise(promise),
    )


def read_planned_rows(rows: Sequence[object], nodes: int) -> ReadRows[PlannedRow]:
    """Read all rows of a plan; of two of the same name only the first counts.

    Args:
        rows: stored rows.
        nodes: nodes of the plan.
    """
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


def _list(value: object, what: str) -> Sequence[object]:
    """Return a list; an empty one where it is missing."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InputError(f"{what} must be a list, not {type(value).__name__}")
    return value


def _text(value: object, what: str, least: int = 1) -> str:
    if not isinstance(value, str):
        raise InputError(f"{what} must be a string, not {type(value).__name__}")
    if not least <= len(value) <= MAX_TEXT_CHARACTERS or not value.isprintable():
        characters = f"{least} to {MAX_TEXT_CHARACTERS} printable characters"
        raise InputError(f"{what} must have {characters}: {value!r:.60}")
    return value


def _number(value: object, what: str, limit: float = MAX_SECONDS) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what} must be a number, not {type(value).__name__}")
    if not abs(value) <= limit:  # also refuses NaN
        raise InputError(f"{what} must be a number up to {limit:g}")
    return value


def _node(value: object, nodes: int) -> int | None:
    if value is None:
        return None
    index = _number(value, "a node")
    if index == -1:
        return None
    if index != int(index) or not 0 <= index < nodes:
        raise InputError(f"node {index} is not one of the {nodes} nodes of the plan")
    return int(index)


def _amount(value: object, what: str) -> float | None:
    """Return a time or a round trip, or None where a negative number stands for none."""
    amount = -1.0 if value is None else float(_number(value, what))
    return None if amount < 0 else amount


def _reason(value: object) -> Reason | None:
    entries = _list(value, "a reason")
    if not entries:
        return None
    return Reason(_text(entries[0], "a reason's code"), _arguments(entries[1:], depth=0))


def _arguments(values: Sequence[object], depth: int) -> tuple[Argument, ...]:
    if depth > 2:
        raise InputError("a reason's arguments are nested too deeply")
    read: list[Argument] = []
    for value in values[:MAX_ARGUMENTS]:
        if isinstance(value, list | tuple):
            read.append(_arguments(value, depth + 1))
        elif isinstance(value, str):
            read.append(_text(value, "an argument", least=0))
        else:
            read.append(_number(value, "an argument", MAX_ARGUMENT))
    return tuple(read)


def _alternative(value: object, nodes: int) -> Alternative:
    node, loss, trip = padded(_list(value, "an alternative"), 3)
    index, loss_seconds = _node(node, nodes), float(_number(loss, "a loss"))
    if index is None:
        raise InputError("an alternative names no node")
    return Alternative(index, loss_seconds, _amount(trip, "a round trip"))


def _source(value: object) -> tuple[str, Basis | None]:
    """Return the source of a run time and its basis; a level of a newer revision counts as none."""
    if not isinstance(value, list | tuple) or not value:
        return "", None
    first, level, number, by_size, argument = padded(value, 5)
    source = _text(first, "the source of a run time")
    if level not in list(Level):
        return source, None
    runs = int(_number(number, "a number of runs"))
    return source, Basis(Level(str(level)), max(0, runs), by_size == 1, _argument_name(argument))


def _argument_name(value: object) -> str:
    """Return the name, or "" if there is none that can be shown."""
    is_name = isinstance(value, str) and value.isprintable() and len(value) <= MAX_NAME_CHARACTERS
    return str(value) if is_name else ""


def _promise(value: object) -> StepPromise | None:
    if not isinstance(value, list | tuple) or len(value) < 6:
        return None
    moments = [float(_number(each, "a time")) for each in value[:6]]
    return StepPromise(TimeRange(*moments[:3]), TimeRange(*moments[3:]))


def _waiting(value: object) -> Waiting | None:
    entries = _list(value, "what a step waits for")
    if not entries:
        return None
    what, since, until, detail = padded(entries, 4)
    return Waiting(
        what=_text(what, "what a step waits for"),
        since_seconds=_amount(since, "a time") or 0.0,
        until_seconds=_amount(until, "a time"),
        detail="" if detail is None else _text(detail, "a detail", least=0),
    )
