"""Limits of a run for people: its critical path in few rows, shares by kind, scarce resources."""

from collections import defaultdict
from collections.abc import Mapping

from kfp_placement_engine.plans.limits import CriticalPiece, PieceKind
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.views.document import Column, NumberColumn, Row, Table
from kfp_placement_engine.views.formatting import counted, duration, shown
from kfp_placement_engine.views.plans.step_texts import names_in_sentences

_MOST_ROWS = 12
"""Rows of the critical path that are shown; the shortest are summed up in the last."""

_NAME_CHARACTERS = 60
_LEAST = 0.005
"""Smaller shares of the run print as 0%."""

_LEAST_COLUMNS = 20

_KINDS = {
    PieceKind.RUNNING: "running",
    PieceKind.DATA: "moving data",
    PieceKind.IMAGE: "pulling images",
    PieceKind.DRIVER: "driver pods",
    PieceKind.NODE_FULL: "waiting for room",
    PieceKind.VOLUME: "waiting for volumes",
    PieceKind.LOOP_LIMIT: "waiting at loop limits",
    PieceKind.LIMIT: "waiting at limits",
    PieceKind.HELD_BACK: "held back by the plan",
    PieceKind.PAST: "before planning",
}


def limits_table(plan: Plan) -> Table | None:
    """Return the critical path in order of time; a step's pieces of one kind and cause are one row.

    The shortest, and all that would print as 0%, are summed up in the last. Without a critical path
    there is no table.
    """
    total = sum(piece.seconds for piece in plan.limits.critical_path)
    names = names_in_sentences(plan.steps)
    rows: list[tuple[float, str]] = []
    for pieces in _by_sentence(plan):
        seconds = sum(piece.seconds for piece in pieces)
        is_driver = pieces[0].kind is PieceKind.DRIVER
        drivers = f"{counted(len(pieces), 'driver pod')} of KFP"
        rows.append((seconds, drivers if is_driver else _sentence(pieces[0], names)))
    ranked = sorted(rows, key=lambda row: -row[0])
    long = [row for row in ranked[: _MOST_ROWS - 1] if row[0] >= _LEAST * total]
    short = [row for row in rows if row not in long]
    if len(short) > 1:
        summed = sum(seconds for seconds, _ in short)
        rows = [*(row for row in rows if row in long), (summed, f"{len(short)} shorter pieces")]
    if not rows:
        return None
    return Table(
        title="What limits this run",
        lead="What the end of the run waits for, in order of time:",
        columns=[
            NumberColumn("TIME"),
            NumberColumn("SHARE"),
            Column("WHAT", wrap_from=_LEAST_COLUMNS),
        ],
        rows=[Row([duration(seconds), f"{seconds / total:.0%}", text]) for seconds, text in rows],
        notes=_notes(plan, total),
    )


def _notes(plan: Plan, total: float) -> list[str]:
    """Return the share of each kind of piece, the largest first, and the scarcest resource."""
    seconds: dict[PieceKind, float] = defaultdict(float)
    for piece in plan.limits.critical_path:
        seconds[piece.kind] += piece.seconds
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    kinds = [
        f"{_KINDS[kind]} {each / total:.0%}" for kind, each in ranked if each >= _LEAST * total
    ]
    resource = _scarcest(plan)
    return [
        f"in all: {', '.join(kinds)}",
        *([f"scarcest resource: {resource}"] if resource else []),
    ]


def _scarcest(plan: Plan) -> str:
    """Describe the scarcest resource: `cpu: 56% of the free room on average`."""
    lasting: dict[str, float] = defaultdict(float)
    for use in plan.limits.binding_resources:
        if use.resource:
            lasting[use.resource] += use.finish_seconds - use.start_seconds
    if not lasting:
        return ""
    name = max(lasting, key=lasting.__getitem__)
    spans = [use for use in plan.limits.binding_resources if use.resource == name]
    used = sum(use.share * (use.finish_seconds - use.start_seconds) for use in spans)
    return (
        f"{shown(name, _NAME_CHARACTERS)}: {used / lasting[name]:.0%} of the free room on average,"
        f" {max(use.share for use in spans):.0%} at most"
    )


def _by_sentence(plan: Plan) -> list[list[CriticalPiece]]:
    """Group pieces for one sentence each, in order of time; all drivers are one."""
    groups: dict[object, list[CriticalPiece]] = defaultdict(list)
    for piece in plan.limits.critical_path:
        own = (piece.kind, piece.step, piece.node, piece.cause)
        groups[piece.kind if piece.kind is PieceKind.DRIVER else own].append(piece)
    return list(groups.values())


def _sentence(piece: CriticalPiece, names: Mapping[str, str]) -> str:
    """Describe a piece in a few words; steps have their names for sentences."""
    is_caused_by_step = piece.kind in (PieceKind.NODE_FULL, PieceKind.HELD_BACK)
    behind = names.get(piece.cause, piece.cause) if is_caused_by_step else piece.cause
    step = shown(names.get(piece.step, piece.step), _NAME_CHARACTERS)
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
        PieceKind.LIMIT: f"{step} waits: {cause} is at its limit",
        PieceKind.HELD_BACK: f"{step} waits{on}: the plan keeps the room"
        + f" for {cause}" * bool(cause),
        PieceKind.PAST: "before the moment of planning",
    }
    return words[piece.kind]
