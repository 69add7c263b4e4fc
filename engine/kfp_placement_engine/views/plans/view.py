"""Document on a plan: its parts and their order."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.views.document import Document, Figure, Line, Note, Notes, Part, Tone
from kfp_placement_engine.views.formatting import NONE, counted, duration
from kfp_placement_engine.views.plans import promises
from kfp_placement_engine.views.plans.comparison import (
    breaks_more,
    can_end,
    change,
    comparison_table,
    difference_text,
    makespan,
    round_trips_text,
    shows_latency,
    unending,
)
from kfp_placement_engine.views.plans.critical_path import limits_table
from kfp_placement_engine.views.plans.detail import Detail
from kfp_placement_engine.views.plans.step_texts import is_missing
from kfp_placement_engine.views.plans.steps import steps_table
from kfp_placement_engine.views.plans.verdict import (
    bound_words,
    headline,
    search_sentence,
    search_verdict,
    tells_every_choice,
)

if TYPE_CHECKING:
    from kfp_placement_engine.views.plans.what_if import Answer

_SOURCES = {
    "kfp-package": "a KFP package",
    "argo-workflow": "an Argo Workflow",
    "wfformat": "a workflow in wfformat",
}

ItemT = TypeVar("ItemT")

_FEW_ALIKE, _STEPS_NAMED = 2, 5


def plan_view(
    plan: Plan, detail: Detail, *, past_runs: str = "", answer: "Answer | None" = None
) -> Document:
    """Return the document on a plan.

    Args:
        plan: the plan.
        detail: level of detail.
        past_runs: description of the past runs behind the plan; "" = none, or not known.
        answer: answer to changes; None = there are none.
    """
    nodes = counted(len(plan.cluster.nodes), "node")
    source = f" ({plan.cluster.source})" if plan.cluster.source else ""
    read_from = _SOURCES.get(plan.run.source, plan.run.source)
    tables = [comparison_table(plan), steps_table(plan, detail)]
    limits = [table] if (table := limits_table(plan)) else []
    problems = [part for part in (_unschedulable(plan, detail), _warnings(plan, detail)) if part]
    parts: list[Part] = [*tables, *limits, *problems]
    figures: list[Figure] = []
    places: list[str] = []
    if detail.draws:
        # Here and not above: a table in a terminal comes without drawings.
        from kfp_placement_engine.views.plans import graph, time_line

        parts = [
            *(part for part in problems if part.tone is Tone.BAD),
            time_line.plan_time_line(plan, detail),
            *limits,
            graph.plan_graph(plan, detail),
            *tables,
            *(part for part in problems if part.tone is not Tone.BAD),
        ]
        figures, places = _figures(plan), time_line.places(plan)
    if answer is not None:
        from kfp_placement_engine.views.plans.what_if import what_if_part

        parts.append(what_if_part(plan, answer))
    lines = [
        Line(headline(plan), Tone.STRONG),
        Line(promises.promised_end(plan), Tone.STRONG),
        Line(search_sentence(plan)),
    ]
    return Document(
        title=plan.run.name,
        kind="Placement plan",
        lead=f"{counted(len(plan.steps), 'step')} on {nodes}{source}, read from {read_from}",
        lines=[line for line in lines if line.text],
        figures=figures,
        parts=parts,
        remarks=_capped(_remarks(plan, past_runs), detail, str),
        places=places,
    )


def _remarks(plan: Plan, past_runs: str) -> list[str]:
    """Return remarks on how to get the same plan again, its basis and assumptions."""
    search, bound = plan.search, plan.comparison.lower_bound
    kind = "" if plan.leaves_out else f" lower bound {bound.kind},"
    facts = (
        f"dispatch {search.dispatch}, objective {search.objective},{kind}"
        f" seed {search.seed}, {search_text(plan)}"
    )
    outline = (
        "planned by the outline of the run: requests and images are estimates (past runs, policy or"
        " defaults). For exact ones: --package pipeline.yaml (package= in Python); in a cluster"
        " features/kfp-api"
    )
    return [
        *filter(None, (facts, promises.submission(plan), past_runs)),
        *([outline] if plan.run.is_outline else ()),
        *(f"policy: {line}" for line in plan.grounds.policy),
        *(f"assumed: {line}" for line in plan.grounds.assumptions),
    ]


def search_text(plan: Plan) -> str:
    """Describe the search: `120 generations in 2s`."""
    how = counted(plan.search.generations, "generation")
    if plan.search.exact:
        orders = " and order" if plan.search.dispatch == "ordered" else ""
        how = f"every assignment{orders} tried"
    return f"{how} in {duration(plan.search.planning_seconds)}"


def _unschedulable(plan: Plan, detail: Detail) -> Notes | None:
    """Return notes on steps that no node can take, together if the reason is the same."""
    if not plan.unschedulable:
        return None
    alike: dict[str, list[str]] = {}
    for step, reason in plan.unschedulable:
        alike.setdefault(reason, []).append(step)
    most = len(plan.steps) if detail.wide and not detail.draws else _STEPS_NAMED
    notes = [Note(reason, listed(steps, most)) for reason, steps in alike.items()]
    title = f"Unschedulable ({counted(len(plan.unschedulable), 'step')}):"
    return Notes(title, _capped(notes, detail, Note), Tone.BAD, closing=unending(plan))


def _warnings(plan: Plan, detail: Detail) -> Notes | None:
    refusals = {step.spec.refusal for step in plan.steps}
    notices = [each for each in plan.notices if each.message not in refusals]
    if not notices:
        return None
    title = f"Warnings ({len(notices)}):"
    shown = notices if detail.wide else _folded(notices)
    notes = [Note(each.message, each.step, each.code) for each in shown]
    return Notes(title, _capped(notes, detail, Note), Tone.WARNING)


def _folded(notices: Sequence[Notice]) -> list[Notice]:
    """Return the warnings; of many alike on different steps, the first and their number."""
    alike: dict[str, list[Notice]] = {}
    for notice in notices:
        alike.setdefault(notice.code if notice.step else f"run {notice.message}", []).append(notice)
    shown: list[Notice] = []
    for first, *others in alike.values():
        if len(others) <= _FEW_ALIKE:
            shown += [first, *others]
            continue
        steps = list(dict.fromkeys(notice.step for notice in others))
        words = f"{len(others):,} more like it: {listed(steps, _STEPS_NAMED)}; all: -o wide"
        shown += [first, Notice(first.code, words)]
    return shown


def _capped(items: Sequence[ItemT], detail: Detail, line: Callable[[str], ItemT]) -> list[ItemT]:
    """Return the items that are shown, and a last line with the number of the others."""
    rest = len(items) - detail.lines
    return [*items[: detail.lines], *([line(f"and {rest:,} more")] if rest > 0 else [])]


def _figures(plan: Plan) -> list[Figure]:
    """Return the most important figures."""
    total = len(plan.steps)
    missing, is_ending = sum(map(is_missing, plan.steps)), can_end(plan)
    nodes = len({step.node for step in plan.steps} - {None})
    figures = [
        Figure(
            "Makespan",
            makespan(plan.figures),
            "from submission to end" if is_ending else "while a step fits no node",
            Tone.PLAIN if is_ending else Tone.BAD,
        ),
        Figure(
            "Steps placed",
            f"{total - missing:,} of {total:,}",
            f"{missing:,} {'fits' if missing == 1 else 'fit'} no node"
            if missing
            else f"on {counted(nodes, 'node')}",
            Tone.BAD if missing else Tone.PLAIN,
        ),
    ]
    promised = promises.end(plan)
    if promised is not None:
        figures.append(Figure("End, by past runs", *promised))
    figures += _compared(plan)
    if is_ending:
        value, *notes = search_verdict(plan)
        if tells_every_choice(plan):
            value, notes = "every choice tried", [value, *notes]
        note = "; ".join(filter(None, (*notes, bound_words(plan))))
        figures.append(Figure("Search", value, note))
    if shows_latency(plan):
        excess = plan.figures.latency_excess_ms
        note = "beyond the latency rule" if excess > 0 else "every latency rule is kept"
        tone = Tone.BAD if excess > 0 else Tone.PLAIN
        figures.append(Figure("Latency to users", round_trips_text(plan.figures), note, tone))
    return figures


def _compared(plan: Plan) -> list[Figure]:
    """Compare the plan with the first baseline, as a figure."""
    for name, figures in plan.comparison.baselines.items():
        words = difference_text(plan, figures)
        if words == NONE:
            return []
        share = change(plan, figures) or 0.0
        word = "than" if share else "against"
        breaks = ", which breaks a latency rule" if breaks_more(plan, figures) else ""
        tone = Tone.GOOD if share < 0 else Tone.PLAIN
        return [Figure("The plan is", words, f"{word} {name} ({makespan(figures)}){breaks}", tone)]
    return []
