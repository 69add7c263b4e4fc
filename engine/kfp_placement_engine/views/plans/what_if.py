"""Texts on a run after changes: sentences, or a table of suggestions."""

import math

from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if import LEAST_GAIN, ChangedPlan, Suggestions, end_seconds
from kfp_placement_engine.views.document import Column, Note, Notes, NumberColumn, Row, Table
from kfp_placement_engine.views.formatting import NONE, counted, duration, shown
from kfp_placement_engine.views.plans import promises
from kfp_placement_engine.views.plans.step_texts import names_in_sentences

Answer = ChangedPlan | Suggestions
"""Answer to `what_if`."""

SHOWN = 8
"""Suggestions that are shown; documents for programs have all."""

_TITLE = "What if"

_CHANGE_CHARACTERS, _STEPS_SHOWN = 160, 5
_LEAST_CHANGE = 12

_NOTICEABLE = 5e-4
"""Gains below this share of the run print as 0.0%."""

_NOISE_SECONDS = 1e-3
"""Ends closer than this are the same, however short the run is."""


def what_if_part(present: Plan, answer: Answer) -> Notes | Table:
    """Return an answer as a part of a document."""
    if isinstance(answer, Suggestions):
        return suggestions_table(present, answer)
    sentences = (
        end_sentence(present, answer),
        promises.promised_end(answer.plan),
        _moved(present, answer),
        _anomaly(present, answer),
    )
    return Notes(f"{_TITLE}:", [Note(each) for each in sentences if each])


def suggestions_table(present: Plan, answer: Suggestions) -> Table:
    """Return the table of the best changes; if there are none, only the reason."""
    rows = [
        Row(
            [
                shown(each.change.text, _CHANGE_CHARACTERS),
                duration(each.makespan_seconds),
                _gain(present, each.gain_seconds) if math.isfinite(each.gain_seconds) else NONE,
            ]
        )
        for each in answer.best[:SHOWN]
    ]
    columns = [
        Column("CHANGE", shrink_to=_LEAST_CHANGE),
        NumberColumn("MAKESPAN"),
        NumberColumn("SHORTER BY"),
    ]
    return Table(_TITLE, columns, rows, lead=_heading(present, answer), notes=_search_alone(answer))


def end_sentence(present: Plan, answer: ChangedPlan) -> str:
    """Describe the end after the changes: `With +1 of w the run ends after 24m: 5m earlier`."""
    changes = " and ".join(shown(each.text, _CHANGE_CHARACTERS) for each in answer.changes)
    after, before = end_seconds(answer.plan.figures), end_seconds(present.figures)
    if math.isinf(after):
        return f"With {changes} the run does not end, because {_unplaced(answer.plan)}"
    end = f"With {changes} the run ends after {duration(after)}"
    if math.isinf(before):
        return f"{end}; without, it does not end."
    if not _differs(present, answer):
        return f"{end}, no earlier than without."
    word = "earlier" if answer.gain_seconds > 0 else "later"
    return f"{end}: {_gain(present, answer.gain_seconds)} {word}."


def _heading(present: Plan, answer: Suggestions) -> str:
    """Introduce the suggestions, or say that there are none."""
    does_not_end = math.isinf(answer.present_seconds)
    if answer.best:
        gained = "with which the run ends" if does_not_end else "that make the run shorter"
        return f"Single changes {gained} ({counted(answer.tried, 'change')} tried):"
    none = f"None of the single changes tried ({answer.tried:,})"
    if does_not_end:
        return f"{none} lets the run end: {_unplaced(present)}"
    return (
        f"{none} makes the run {LEAST_GAIN:.0%} shorter. Others can be named, such as NODE speed=2"
        " or step STEP duration=10m."
    )


def _search_alone(answer: Suggestions) -> list[str]:
    gain = answer.unchanged_gain_seconds
    if not answer.best or gain <= _NOTICEABLE * answer.present_seconds:
        return []
    return [
        f"A longer search alone gains {duration(gain)} without any change; what the changes"
        " gain is counted from there."
    ]


def _gain(present: Plan, seconds: float) -> str:
    """Format a gain: `4m52s (16.8%)`; no percentage of assumed or no run times."""
    amount, whole = duration(abs(seconds)), present.figures.makespan_seconds
    if present.grounds.all_durations_assumed or whole <= 0:
        return amount
    return f"{amount} ({abs(seconds) / whole:.1%})"


def _differs(present: Plan, answer: ChangedPlan) -> bool:
    """Return whether the end moves so much that it shows."""
    noise = max(_NOTICEABLE * present.figures.makespan_seconds, _NOISE_SECONDS)
    return abs(answer.gain_seconds) >= noise


def _unplaced(plan: Plan) -> str:
    """Describe a step without a node: `train fits no node: none of 3 nodes can take it`."""
    (name, reason), *others = plan.unschedulable
    step = shown(names_in_sentences(plan.steps).get(name, name), 60)
    who = f"{step} fits no node"
    if others:
        who = f"{counted(len(plan.unschedulable), 'step')} fit no node, such as {step}"
    return f"{who}: {shown(reason, 300)}"


def _moved(present: Plan, answer: ChangedPlan) -> str:
    """Describe which steps go to other nodes if that makes a difference, else ""."""
    if not _differs(present, answer) or answer.plan.unschedulable:
        return ""
    before = {step.name: step.node for step in present.steps}
    names = names_in_sentences(answer.plan.steps)
    moved = [
        (names[step.name], step.node)
        for step in answer.plan.steps
        if step.node is not None and step.node != before.get(step.name)
    ]
    if not moved:
        return ""
    named = ", ".join(
        f"{shown(name, 60)} to {shown(node, 60)}" for name, node in moved[:_STEPS_SHOWN]
    )
    more = ", ..." if len(moved) > _STEPS_SHOWN else ""
    of = f"{len(moved):,} of {counted(len(present.steps), 'step')}"
    return f"On other nodes: {of} ({named}{more})."


def _anomaly(present: Plan, answer: ChangedPlan) -> str:
    """Explain why a run may end later with more resources, or return ""."""
    is_noticeable = answer.is_anomaly and _differs(present, answer)
    if not is_noticeable or answer.plan.search.dispatch != "ready":
        return ""
    return (
        "Steps start as soon as they fit, which may now be in another order. Gates keep the order"
        " of the plan (--dispatch ordered, dispatch= in Python)."
    )
