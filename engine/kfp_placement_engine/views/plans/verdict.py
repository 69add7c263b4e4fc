"""Verdict on a plan in one sentence, and what is known of better plans.

A percentage stands only where both figures rest on something: with all durations assumed, plan and
default scheduler are compared in words.
"""

from collections.abc import Iterator

from kfp_placement_engine.model.concurrency import alternatives
from kfp_placement_engine.model.objective import ENDS_EARLIEST
from kfp_placement_engine.model.run_graph import OUTLINE, Step, StepKind, uncounted_waits
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.views.formatting import counted, duration, finite, shown
from kfp_placement_engine.views.plans.comparison import (
    breaks_more,
    can_end,
    is_same,
    makespan,
    spread,
    taken_liberties,
)
from kfp_placement_engine.views.plans.step_texts import names_in_sentences

DEFAULT_BASELINE = "kube-default"
"""Baseline with which the sentence compares the plan."""

_AS_FAR = "as far as assumed run times tell"

_NOISE, _NOISE_SECONDS = 1e-6, 1e-3
"""Share of the bound, or seconds, by which sums of the same times may differ."""

_NAMES, _NAME_CHARACTERS = 3, 60


def headline(plan: Plan) -> str:
    """Return the verdict in one sentence: `With this plan the run ends after 29m2s: ...`."""
    if not can_end(plan):
        return _endless(plan)
    words = _comparison(plan)
    tasks = dict.fromkeys(step.task for step in _waits_for_people(plan))
    waits = listed(list(tasks), _NAMES)
    if waits:
        ends_so, semicolon, rest = words.removesuffix(".").partition(";")
        words = f"{ends_so}, without the wait for a person at {waits}{semicolon}{rest}."
    awaited = [step.spec for step in plan.steps if not step.spec.after_failure]
    if any(spec.is_conditional for spec in awaited):
        excluding = alternatives(spec.branches for spec in awaited)
        which = "the conditional steps that take longest" if excluding else "all conditional steps"
        # What follows a semicolon does not depend on the conditions.
        ends_so, semicolon, rest = words.removesuffix(".").partition(";")
        return f"{ends_so}, if {which} run{semicolon}{rest}."
    return words


def _waits_for_people(plan: Plan) -> Iterator[Step]:
    """Yield pauses to come whose time is not in the plan."""
    for step in uncounted_waits(
        step.spec for step in plan.steps if step.finish_seconds is not None
    ):
        if step.kind is StepKind.SUSPEND:
            yield step


def _comparison(plan: Plan) -> str:
    default = plan.comparison.baselines.get(DEFAULT_BASELINE)
    end = makespan(plan.figures)
    if default is None:
        return f"With this plan the run ends after {end}; the default scheduler was not compared."
    if default.unplaced:
        steps = counted(default.unplaced, "step")
        return (
            f"With this plan the run ends after {end}; with the default scheduler it does not end,"
            f" because {steps} {'gets' if default.unplaced == 1 else 'get'} no node."
        )
    if is_same(plan.figures, default):
        return _equal(plan, default)
    if plan.grounds.all_durations_assumed:
        return _assumed(plan, default)
    gain = default.makespan_seconds - plan.figures.makespan_seconds
    share = abs(gain) / max(default.makespan_seconds, 1e-9)
    return (
        f"With this plan the run ends after {end}: {duration(abs(gain))} ({share:.1%})"
        f" {'earlier' if gain > 0 else 'later'} than with the default scheduler"
        f" ({_mean(default)}){_difference(plan, default, earlier=gain > 0)}."
    )


def search_verdict(plan: Plan) -> tuple[str, ...]:
    """Return what is known of better plans, in clauses: `best found`; none = the run has no end."""
    if not can_end(plan):
        return ()
    if reaches_bound(plan):
        return ("best possible",)
    gated = _gated(plan)
    gates = [f"with gates (dispatch ordered) {gated}"] if gated else []
    if not tells_every_choice(plan):
        return ("best found", *gates)
    choice = "choice of nodes and order" if plan.search.dispatch == "ordered" else "choice of nodes"
    return (f"no other {choice}{_restriction(plan)} ends earlier", *gates)


def tells_every_choice(plan: Plan) -> bool:
    """Return whether every plan was tried, for the earliest end, and none reaches the bound."""
    if plan.leaves_out:
        return False
    return plan.search.exact and plan.search.objective in ENDS_EARLIEST and not reaches_bound(plan)


def search_sentence(plan: Plan) -> str:
    """Return the search verdict in a sentence: `Best found; no plan ends before 22m5s.`."""
    words = "; ".join(search_verdict(plan))
    if not words:
        return ""
    bound = _no_bound(plan) if plan.leaves_out else bound_words(plan)
    sign = ":" if reaches_bound(plan) else ";"
    return f"{words[0].upper()}{words[1:]}{sign} {bound}." if bound else f"{words.capitalize()}."


def _no_bound(plan: Plan) -> str:
    """Return why no bound holds, by the codes of the warnings."""
    codes = [OUTLINE] if plan.run.is_outline else []
    codes += [notice.code for notice in plan.notices if notice.is_beyond_plans]
    why = listed(list(dict.fromkeys(codes)), _NAMES)
    return f"no bound is claimed, since the run may differ from every plan (see {why})"


def bound_words(plan: Plan) -> str:
    """Describe the bound on all plans: `no plan ends before 22m5s`; "" = there is none."""
    seconds = plan.comparison.lower_bound.seconds
    if plan.leaves_out or seconds <= 0:
        return ""
    bound = duration(seconds)
    if bound == makespan(plan.figures) and not reaches_bound(plan):
        gap = duration(plan.figures.makespan_seconds - seconds)
        return f"no plan ends more than {gap} earlier"
    words = f"no plan ends before {bound}"
    return f"{words}, with the assumed loop widths" if _assumes_widths(plan) else words


def reaches_bound(plan: Plan) -> bool:
    """Return whether it is certain that no schedule can end before the plan does."""
    bound = plan.comparison.lower_bound.seconds
    if plan.leaves_out or not can_end(plan) or finite(bound) is None:
        return False
    return plan.figures.makespan_seconds - bound <= max(_NOISE * bound, _NOISE_SECONDS)


def _gated(plan: Plan) -> str:
    """Return the makespan with gates if it is earlier, else ""."""
    seconds = plan.comparison.ordered_makespan_seconds
    if seconds is None or seconds >= plan.figures.makespan_seconds:
        return ""
    words = duration(seconds)
    return "" if words == makespan(plan.figures) else words


def _endless(plan: Plan) -> str:
    names_of = names_in_sentences(plan.steps)
    names = [shown(names_of.get(name, name), _NAME_CHARACTERS) for name, _ in plan.unschedulable]
    refused = all(plan.step(name).spec.refusal for name, _ in plan.unschedulable)
    ends = "The run cannot succeed" if refused else "The run does not end"
    if len(names) == 1:
        why = f"step {names[0]} is refused" if refused else f"no node can take step {names[0]}"
        return f"{ends}: {why}."
    steps = counted(plan.figures.unplaced, "step")
    what = "are refused" if refused else "get no node"
    return f"{ends}: {steps} {what} ({listed(names, _NAMES)})."


def _equal(plan: Plan, default: Figures) -> str:
    end = makespan(plan.figures)
    better = _difference(plan, default, earlier=True)
    if better:
        return f"The run ends after {end}, as with the default scheduler{better}."
    if spread(default):
        return (
            f"The run ends after {end}, as with the default scheduler on average"
            f" ({spread(default)})."
        )
    return (
        f"The run ends after {end}; the default scheduler does as well here:"
        f" nothing to gain{_proviso(plan)}."
    )


def _assumes_widths(plan: Plan) -> bool:
    return any(step.spec.assumed for step in plan.steps)


def _proviso(plan: Plan) -> str:
    """Return to what extent no plan gains anything, as the end of a sentence."""
    rests_on = ["assumed run times"] if plan.grounds.all_durations_assumed else []
    rests_on += ["assumed loop widths"] if _assumes_widths(plan) else []
    gates = ""
    if not reaches_bound(plan):
        is_ready, is_known = (
            plan.search.dispatch == "ready",
            plan.comparison.ordered_makespan_seconds is not None,
        )
        may_gain = is_ready and (not is_known or bool(_gated(plan)))
        gates = " without gates" if may_gain else ""
        # What gates reach is searched for, even where every choice of nodes was tried.
        is_tried = plan.search.exact and (may_gain or not is_ready)
        rests_on += [] if is_tried else ["the search"]
    tell = "tells" if rests_on == ["the search"] else "tell"
    basis = " and ".join(rests_on).replace(" and ", ", ", len(rests_on) - 2)
    return f"{gates}, as far as {basis} {tell}" if rests_on else gates


def _assumed(plan: Plan, default: Figures) -> str:
    earlier = plan.figures.makespan_seconds < default.makespan_seconds
    return (
        f"With this plan the run ends after {makespan(plan.figures)},"
        f" {'earlier' if earlier else 'later'} than with the default scheduler ({_mean(default)})"
        f"{_difference(plan, default, earlier=earlier)}, {_AS_FAR}."
    )


def _mean(default: Figures) -> str:
    """Format the default scheduler's makespan; that of several tie-breaks with its range."""
    end, over = makespan(default), spread(default)
    return f"{end} on average, {over}" if over else end


def _difference(plan: Plan, default: Figures, *, earlier: bool) -> str:
    """Return other differences to the default scheduler, as the end of a sentence."""
    is_for_end = plan.search.objective in ENDS_EARLIEST
    if not earlier:
        liberties = taken_liberties(plan, default)
        if liberties:
            return f", which {' and '.join(liberties)}"
        return "" if is_for_end else f"; this plan's objective is {plan.search.objective}"
    if not breaks_more(plan, default):
        return ""
    if plan.figures.latency_excess_ms > 0:
        return ", and breaks latency rules less"
    return ", and keeps a latency rule that the default scheduler breaks"


def _restriction(plan: Plan) -> str:
    """Return which limits a choice of nodes must keep, which makes it end later."""
    if any(step.is_latency_ruled and step.spec.location for step in plan.steps):
        missed = plan.figures.latency_excess_ms > 0
        return f" that {'breaks latency rules as little' if missed else 'keeps the latency rules'}"
    if any(figures.moves_volumes for figures in plan.comparison.baselines.values()):
        return " that leaves volumes where they are"
    return ""
