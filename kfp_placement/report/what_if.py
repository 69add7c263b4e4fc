"""What changes would make of a run: as a sentence, as lines of a terminal, as HTML, for programs.

The HTML needs no style sheet: notebooks that are not trusted drop those, and a table of three
columns reads without any.
"""

import itertools
import math
import textwrap
from collections.abc import Iterable
from typing import Any

from kfp_placement.report import gains, promises, values
from kfp_placement.report.columns import Column, layout
from kfp_placement.report.document import number, range_document
from kfp_placement.report.labels import told_names
from kfp_placement.report.markup import NOTHING, Markup, join, tag, text
from kfp_placement.report.visible import shown
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.quantities import format_resource
from kfp_placement_engine.model.what_if import ChangedPlan, Suggestion, Suggestions, end_seconds

Answer = ChangedPlan | Suggestions
"""What somebody who asked what if gets."""

SHOWN = 8
"""Suggestions that are shown; documents for programs have all."""

_TRIED = "one node more, one larger, a higher loop limit, an image everywhere, a shared volume"
"""Kinds of changes that are tried."""

_FASTER = "NODE speed=2 or step STEP duration=10m"
"""Changes that make a run shorter, but are only planned where somebody names them."""

_CHANGE_CHARACTERS, _SENTENCE_CHARACTERS, _STEPS_SHOWN, _UNSURE_SHOWN = 160, 2000, 5, 3
_MIN_CHANGE = 12
_CELL = "padding:2px 16px 2px 0;text-align:{side};vertical-align:top"


def sentence(present: Plan, answer: ChangedPlan) -> str:
    """When the run ends with the changes: `With +1 of w the run ends after 24m: 5m earlier`."""
    changes = " and ".join(shown(each.text, _CHANGE_CHARACTERS) for each in answer.changes)
    after, before = end_seconds(answer.plan.figures), end_seconds(present.figures)
    if math.isinf(after):
        return f"With {changes} the run does not end, because {_unplaced(answer.plan)}"
    end = f"With {changes} the run ends after {values.duration(after)}"
    if math.isinf(before):
        return f"{end}; without, it does not end."
    if not _differs(present, answer):
        return f"{end}, no earlier than without."
    word = "earlier" if answer.gain_seconds > 0 else "later"
    return f"{end}: {gains.gain_text(present, answer.gain_seconds)} {word}."


def heading(present: Plan, answer: Suggestions) -> str:
    """What the suggestions are, or that there are none."""
    tried = f"{values.counted(answer.tried, 'change')} tried"
    does_not_end = math.isinf(answer.present_seconds)
    if answer.best:
        gained = "with which the run ends" if does_not_end else "that make the run shorter"
        return f"Single changes {gained} ({tried}):"
    gained = "lets the run end" if does_not_end else "makes the run 1% shorter"
    others = "NODE nvidia.com/gpu=1 or step STEP max-latency=off" if does_not_end else _FASTER
    return (
        f"None of the single changes tried ({answer.tried:,}) {gained}: {_TRIED}. Others can be"
        f" named, such as {others}."
    )


def remarks(answer: Suggestions) -> list[str]:
    """Why a smaller gain comes first, and what gains do not count in, as far as there is any."""
    return [words for words in (_order(answer), _search_alone(answer)) if words]


def _order(answer: Suggestions) -> str:
    ranked = [each.gain_seconds for each in answer.best[:SHOWN]]
    if all(first >= next_ for first, next_ in itertools.pairwise(ranked)):
        return ""
    return (
        "Of gains about as large as the largest, changes that add no node come first, then those"
        " that add the least CPU."
    )


def _search_alone(answer: Suggestions) -> str:
    gain = answer.unchanged_gain_seconds
    if not answer.best or gain <= gains.NOTICEABLE * answer.present_seconds:
        return ""
    return (
        f"A longer search alone gains {values.duration(gain)} without any change; what the changes"
        " gain is counted from there."
    )


def rows(present: Plan, answer: Suggestions) -> list[tuple[str, ...]]:
    """Change, makespan, and how much shorter, of the suggestions that are shown."""
    return [_cells(present, each) for each in answer.best[:SHOWN]]


def _cells(present: Plan, suggestion: Suggestion) -> tuple[str, ...]:
    gain = suggestion.gain_seconds
    return (
        shown(suggestion.change.text, _CHANGE_CHARACTERS),
        values.duration(suggestion.makespan_seconds),
        gains.gain_text(present, gain) if math.isfinite(gain) else values.NONE,
    )


def what_if_lines(present: Plan, answer: Answer, columns: int | None = None) -> list[str]:
    """The answer as lines of at most this many columns; None = as wide as they are."""
    if isinstance(answer, ChangedPlan):
        return _wrapped(_told(present, answer), columns)
    lines = _wrapped([heading(present, answer)], columns)
    if answer.best:
        titles = [
            Column("CHANGE", shrink_to=_MIN_CHANGE),
            Column("MAKESPAN", right=True),
            Column("SHORTER BY", right=True),
        ]
        room = None if columns is None else columns - 2
        lines += [f"  {line}" for line in layout(titles, rows(present, answer), room)]
    return [*lines, *_wrapped(remarks(answer), columns)]


def what_if_block(present: Plan, answer: Answer | None, columns: int | None = None) -> str:
    """The same as text below the table of a plan, with a heading; "" where nobody asked."""
    if answer is None:
        return ""
    return "\n".join(["", "What if:", *what_if_lines(present, answer, columns), ""])


def what_if_html(present: Plan, answer: Answer | None) -> Markup:
    """The answer as a fragment with styles of its own; nothing where nobody asked."""
    if answer is None:
        return NOTHING
    if isinstance(answer, ChangedPlan):
        lines = filter(None, _told(present, answer))
        return tag("div", *(tag("p", text(line, _SENTENCE_CHARACTERS)) for line in lines))
    parts = [tag("p", text(heading(present, answer)))]
    if answer.best:
        parts.append(_table(present, answer))
    parts += [tag("p", text(line)) for line in remarks(answer)]
    return tag("div", *parts)


def what_if_document(answer: Answer | None) -> dict[str, Any]:
    """The fields that the answer adds to the document of a plan."""
    if answer is None:
        return {}
    if isinstance(answer, Suggestions):
        return {"suggestions": [_suggestion(each) for each in answer.best]}
    plan = answer.plan
    return {
        "whatIf": {
            "changes": [each.text for each in answer.changes],
            "makespanSeconds": number(end_seconds(plan.figures)),
            "gainSeconds": number(answer.gain_seconds),
            **_promised_end(plan),
            "steps": [
                {
                    "name": step.name,
                    "node": step.node,
                    "startSeconds": number(step.start_seconds),
                    "finishSeconds": number(step.finish_seconds),
                }
                for step in plan.steps
            ],
            "unschedulable": [
                {"name": name, "reason": reason} for name, reason in plan.unschedulable
            ],
        }
    }


def _promised_end(plan: Plan) -> dict[str, Any]:
    ends = None if plan.promise is None else plan.promise.ends
    return {} if ends is None else {"ends": range_document(ends)}


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    return {
        "change": suggestion.change.text,
        "makespanSeconds": number(suggestion.makespan_seconds),
        "gainSeconds": number(suggestion.gain_seconds),
        "nodesAdded": suggestion.nodes_added,
        "cpuAdded": format_resource("cpu", suggestion.cpu_added_milli),
    }


def _differs(present: Plan, answer: ChangedPlan) -> bool:
    """Whether the run ends at another time, by so much that it shows."""
    after, before = end_seconds(answer.plan.figures), end_seconds(present.figures)
    if math.isinf(after) or math.isinf(before):
        return after != before
    return abs(answer.gain_seconds) >= gains.noise_seconds(present)


def _unplaced(plan: Plan) -> str:
    """`train fits no node: none of 3 nodes can take it (not enough cpu)`."""
    (name, reason), *others = plan.unschedulable
    step = shown(told_names(plan.steps).get(name, name), 60)
    who = f"{step} fits no node"
    if others:
        who = f"{values.counted(len(plan.unschedulable), 'step')} fit no node, such as {step}"
    return f"{who}: {shown(reason, 300)}"


def _moved(present: Plan, answer: ChangedPlan) -> str:
    """Which steps go to other nodes, where that makes a difference; else ""."""
    if not _differs(present, answer) or answer.plan.unschedulable:
        return ""
    before = {step.name: step.node for step in present.steps}
    told = told_names(answer.plan.steps)
    moved = [
        (told[step.name], step.node)
        for step in answer.plan.steps
        if step.node is not None and step.node != before.get(step.name)
    ]
    if not moved:
        return ""
    named = ", ".join(
        f"{shown(name, 60)} to {shown(node, 60)}" for name, node in moved[:_STEPS_SHOWN]
    )
    more = ", ..." if len(moved) > _STEPS_SHOWN else ""
    of = f"{len(moved):,} of {values.counted(len(present.steps), 'step')}"
    return f"On other nodes: {of} ({named}{more})."


def _told(present: Plan, answer: ChangedPlan) -> list[str]:
    return [
        sentence(present, answer),
        promises.headline(answer.plan),
        _moved(present, answer),
        _anomaly(present, answer),
    ]


def _anomaly(present: Plan, answer: ChangedPlan) -> str:
    """Why more of something makes the run end later, which nobody expects; else ""."""
    told = answer.is_anomaly and _differs(present, answer)
    if not told or answer.plan.dispatch != "ready":
        return ""
    return (
        "More room at a time changes which steps start first. Gates keep the order of the plan"
        " (--dispatch ordered)."
    )


def _wrapped(sentences: Iterable[str], columns: int | None) -> list[str]:
    """Sentences within a terminal's width; none of those that are empty."""
    lines: list[str] = []
    for each in sentences:
        # Names of nodes and steps are full of hyphens; they stay whole.
        lines += textwrap.wrap(each, columns, break_on_hyphens=False) if columns else [each]
    return [line for line in lines if line]


def _table(present: Plan, answer: Suggestions) -> Markup:
    heads = ["change", "makespan", "shorter by"]
    sides = ["left", "right", "right"]
    head = [
        tag("th", text(title), scope="col", style=_CELL.format(side=side))
        for title, side in zip(heads, sides, strict=True)
    ]
    body = [
        tag(
            "tr",
            *(
                tag("td", text(cell), style=_CELL.format(side=side))
                for cell, side in zip(row, sides, strict=True)
            ),
        )
        for row in rows(present, answer)
    ]
    return tag(
        "table",
        tag("thead", tag("tr", *head)),
        tag("tbody", join(body)),
        style="border-collapse:collapse;table-layout:auto;width:auto;margin:0",
    )
