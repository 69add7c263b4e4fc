"""What limits a run, for people: its critical path in few rows, by kind, and what is scarcest."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kfp_placement.report.labels import told_names
from kfp_placement.report.values import counted, duration
from kfp_placement.report.visible import shown
from kfp_placement_engine.model.limits import CriticalPiece, PieceKind
from kfp_placement_engine.model.plan import Plan

MOST_ROWS = 12
"""Rows of the critical path that are shown; the shortest are summed up in the last."""

_NAME_CHARACTERS = 60
_LEAST = 0.005
"""Smaller shares of the run print as 0%."""
_FEW = 2
"""Pieces from which on a row that sums them up is shorter."""
_NARROWEST = 20

_KINDS = {
    PieceKind.RUNNING: "running",
    PieceKind.DATA: "moving data",
    PieceKind.IMAGE: "pulling images",
    PieceKind.DRIVER: "driver pods",
    PieceKind.NODE_FULL: "waiting for room",
    PieceKind.VOLUME: "waiting for volumes",
    PieceKind.LOOP_LIMIT: "waiting at loop limits",
    PieceKind.HELD_BACK: "held back by the plan",
    PieceKind.PAST: "before planning",
}


@dataclass(frozen=True)
class LimitRow:
    """Time on the critical path that one sentence explains; what is visible is safe to print.

    Attributes:
        text: what happens, or is waited for: `train waits for room on n3 until fetch ends`.
        kind: why the time passes; None where a row sums up several kinds.
        step: the step, as the plan calls it; "" for a row of several.
        start_seconds: when that begins, on the plan's clock.
        seconds: how long it lasts, all of its pieces together.
        share: of the whole run, 0 to 1.
    """

    text: str
    kind: PieceKind | None
    step: str
    start_seconds: float
    seconds: float
    share: float


def limit_rows(plan: Plan, most: int = MOST_ROWS) -> tuple[LimitRow, ...]:
    """The critical path in order of time; a step's pieces of one kind and cause are one row.

    Args:
        plan: the plan; without a critical path there are no rows.
        most: rows at most, 2 or more; the shortest, and all that would print as 0%, are summed up
            in the last.
    """
    total = sum(piece.seconds for piece in plan.critical_path)
    told = told_names(plan.steps)
    rows = [_row(pieces, total, told) for pieces in _by_sentence(plan.critical_path)]
    ranked = sorted(rows, key=lambda row: -row.seconds)
    long = [row for row in ranked[: most - 1] if row.share >= _LEAST]
    rest = [row for row in rows if row not in long]
    if len(rest) < _FEW:
        return tuple(rows)
    seconds = sum(row.seconds for row in rest)
    text = counted(len(rest), "shorter piece")
    last = LimitRow(text, None, "", rest[0].start_seconds, seconds, seconds / total)
    return (*(row for row in rows if row in long), last)


def shares_by_kind(plan: Plan) -> tuple[tuple[str, float], ...]:
    """How much of the run each kind of piece takes, the largest first: `("running", 0.93)`."""
    total = sum(piece.seconds for piece in plan.critical_path)
    seconds: dict[PieceKind, float] = {}
    for piece in plan.critical_path:
        seconds[piece.kind] = seconds.get(piece.kind, 0.0) + piece.seconds
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return tuple((_KINDS[kind], each / total) for kind, each in ranked)


def scarcest(plan: Plan) -> str:
    """The resource that is scarcest for the longest: `cpu: 56% of the free room on average`."""
    lasting: dict[str, float] = {}
    for use in plan.binding_resources:
        if use.resource:
            seconds = use.finish_seconds - use.start_seconds
            lasting[use.resource] = lasting.get(use.resource, 0.0) + seconds
    if not lasting:
        return ""
    name = max(lasting, key=lambda each: lasting[each])
    spans = [use for use in plan.binding_resources if use.resource == name]
    used = sum(use.share * (use.finish_seconds - use.start_seconds) for use in spans)
    return (
        f"{shown(name, _NAME_CHARACTERS)}: {used / lasting[name]:.0%} of the free room on average,"
        f" {max(use.share for use in spans):.0%} at most"
    )


def limits_lines(plan: Plan, columns: int | None = None) -> list[str]:
    """A heading, the rows with times and shares, and what sums them up; none without a path.

    Args:
        plan: the plan.
        columns: width of the terminal; None = any.
    """
    rows = limit_rows(plan)
    if not rows:
        return []
    times = [duration(row.seconds) for row in rows]
    wide = max(map(len, times))
    lines = ["What the end of the run waits for, in order of time:"]
    for time, row in zip(times, rows, strict=True):
        lines += _wrapped(f"  {time:>{wide}}  {row.share:>4.0%}  ", row.text, columns)
    kinds = [f"{words} {share:.0%}" for words, share in shares_by_kind(plan) if share >= _LEAST]
    lines += _wrapped("in all: ", ", ".join(kinds), columns)
    resource = scarcest(plan)
    return [*lines, *_wrapped("scarcest resource: ", resource, columns)] if resource else lines


def _wrapped(start: str, text: str, columns: int | None) -> list[str]:
    """The text behind its start, within this many columns; further lines are indented alike."""
    room = max(_NARROWEST, (columns or len(text) + len(start)) - len(start))
    first, *others = textwrap.wrap(text, room, break_on_hyphens=False)
    return [start + first, *(" " * len(start) + line for line in others)]


def _by_sentence(pieces: Iterable[CriticalPiece]) -> list[list[CriticalPiece]]:
    """Pieces that one sentence tells, in order of the first of each; all drivers are one."""
    groups: dict[object, list[CriticalPiece]] = {}
    for piece in pieces:
        own = (piece.step, piece.node, piece.cause)
        key = piece.kind if piece.kind is PieceKind.DRIVER else (piece.kind, *own)
        groups.setdefault(key, []).append(piece)
    return list(groups.values())


def _row(pieces: list[CriticalPiece], total: float, told: Mapping[str, str]) -> LimitRow:
    first, seconds = pieces[0], sum(piece.seconds for piece in pieces)
    is_one = first.kind is not PieceKind.DRIVER
    text = _sentence(first, told) if is_one else f"{counted(len(pieces), 'driver pod')} of KFP"
    step = first.step if is_one else ""
    return LimitRow(text, first.kind, step, first.start_seconds, seconds, seconds / total)


def _sentence(piece: CriticalPiece, told: Mapping[str, str]) -> str:
    """What a piece is, in a few words; steps have their names for sentences."""
    is_caused_by_step = piece.kind in (PieceKind.NODE_FULL, PieceKind.HELD_BACK)
    behind = told.get(piece.cause, piece.cause) if is_caused_by_step else piece.cause
    step = shown(told.get(piece.step, piece.step), _NAME_CHARACTERS)
    cause = shown(behind, _NAME_CHARACTERS)
    on = f" on {shown(piece.node, _NAME_CHARACTERS)}" if piece.node else ""
    until = f" until {cause} ends" if cause else ""
    words = {
        PieceKind.RUNNING: f"{step} runs{on}",
        PieceKind.DATA: f"{step} reads or writes data{on}",
        PieceKind.IMAGE: f"{step} waits for image {cause}{on}",
        PieceKind.DRIVER: f"driver pod of {step}{on}",
        PieceKind.NODE_FULL: f"{step} waits for room{on}{until}",
        PieceKind.VOLUME: f"{step} waits for volume {cause}{on}",
        PieceKind.LOOP_LIMIT: f"{step} waits: loop {cause} is at its limit",
        PieceKind.HELD_BACK: f"{step} waits{on}: the plan keeps the room"
        + f" for {cause}" * bool(cause),
        PieceKind.PAST: "before the moment of planning",
    }
    return words[piece.kind]
