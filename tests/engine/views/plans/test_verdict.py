from dataclasses import replace
from pathlib import Path

import pytest

import kfp_placement_engine as engine
from kfp_placement_engine.model.notices import _BEYOND_PLANS, NOT_USED, Notice
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.plans.comparison import Bound, Figures
from kfp_placement_engine.views.plans.verdict import headline, search_sentence, search_verdict
from tests.support.plans import (
    a_plan,
    a_step,
    ends_after,
    renamed,
    stuck_plan,
    taxi_plan,
    unplaced_step,
)

MINE = ends_after(1742.0)
DEFAULT = ends_after(2438.0)
EQUAL = replace(DEFAULT, makespan_seconds=1742.3)
EARLIER = replace(DEFAULT, makespan_seconds=1500.0)


def breaking(figures):
    """The same schedule, but it breaks a latency rule."""
    return replace(figures, latency_excess_ms=32.0, latency_ms=42.0)


def beside(default, mine=MINE, **changes):
    return a_plan(figures=mine, baselines={"kube-default": default}, **changes)


SENTENCES = {
    "earlier": beside(DEFAULT),
    "earlier on average": beside(
        replace(DEFAULT, fastest_seconds=1700.0, slowest_seconds=2600.0, tie_breaks=6)
    ),
    "earlier and keeps a rule": beside(breaking(DEFAULT)),
    "earlier and breaks rules less": beside(
        breaking(DEFAULT), replace(MINE, latency_excess_ms=1.0)
    ),
    "equal": beside(EQUAL),
    "equal on average": beside(
        replace(EQUAL, fastest_seconds=1700.0, slowest_seconds=1800.0, tie_breaks=6)
    ),
    "equal but keeps a rule": beside(breaking(EQUAL)),
    "equal, all tried": beside(EQUAL, exact=True, ordered_makespan_seconds=1742.0),
    "equal, gates end earlier": beside(EQUAL, exact=True, ordered_makespan_seconds=1600.0),
    "equal, best possible": beside(EQUAL, lower_bound=Bound(1742.0, "area")),
    "equal, nothing to run": beside(
        replace(EQUAL, makespan_seconds=0.0),
        replace(MINE, makespan_seconds=0.0),
        lower_bound=Bound(0.0, "critical-path"),
    ),
    "equal, ordered": beside(EQUAL, dispatch="ordered"),
    "assumed, equal, best possible": beside(
        EQUAL, lower_bound=Bound(1742.0, "area"), all_durations_assumed=True
    ),
    "earlier by less than what prints": beside(replace(EQUAL, makespan_seconds=1742.45)),
    "later": beside(EARLIER),
    "later for a rule": beside(breaking(EARLIER)),
    "later for a volume": beside(replace(EARLIER, moves_volumes=True)),
    "later for its objective": beside(EARLIER, objective="packing"),
    "assumed, earlier": beside(DEFAULT, all_durations_assumed=True),
    "assumed, equal": beside(EQUAL, all_durations_assumed=True),
    "assumed, later": beside(breaking(EARLIER), all_durations_assumed=True),
    "default not compared": a_plan(figures=MINE),
    "default does not end": beside(replace(DEFAULT, unplaced=1)),
    "does not end": stuck_plan(),
    "several fit nowhere": a_plan(*(unplaced_step(f"huge-{n}") for n in range(5))),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_one_sentence_on_top_of_a_plan(case, golden):
    sentence = headline(SENTENCES[case])
    golden(sentence)
    assert sentence.endswith(".")
    assert ". " not in sentence


def test_no_percentage_rests_on_assumed_durations():
    for case, plan in SENTENCES.items():
        figures = case.startswith(("earlier", "later")) and "prints" not in case
        assert ("%" in headline(plan)) == figures


def leaving_out(plan):
    return replace(plan, notices=(Notice(NOT_USED, "hostPort is not used: ..."),))


def tried(**changes):
    return a_plan(exact=True, generations=0, **changes)


RULED = a_step(type="Predict", location="HOME", latency_ms=9.8)
PLANS = {
    "bound reached": a_plan(lower_bound=Bound(60.0, "area")),
    "bound reached, a field not used": leaving_out(a_plan(lower_bound=Bound(60.0, "area"))),
    "searched": a_plan(),
    "searched, gates end earlier": a_plan(ordered_makespan_seconds=55.0),
    "all tried": tried(),
    "all tried, a field not used": leaving_out(tried()),
    "all tried, gates end earlier": tried(ordered_makespan_seconds=55.0),
    "all tried, gates end at the same time": tried(ordered_makespan_seconds=60.0),
    "all tried, and all orders": tried(dispatch="ordered"),
    "all tried, and the bound reached": tried(lower_bound=Bound(60.0, "area")),
    "all tried, under a latency rule": replace(tried(), steps=(RULED,)),
    "all tried, beyond a latency rule": replace(
        tried(), steps=(RULED,), figures=Figures(0, 5.0, 9.8, 60.0)
    ),
    "all tried, the default moves a volume": tried(
        baselines={"kube-default": replace(EARLIER, moves_volumes=True)}
    ),
    "all tried, another objective": tried(objective="packing"),
    "the bound prints as the same": a_plan(
        figures=ends_after(91.4), lower_bound=Bound(90.6, "area")
    ),
    "nothing to run": a_plan(
        figures=ends_after(0.0), lower_bound=Bound(0.0, "critical-path"), exact=True
    ),
    "no bound": a_plan(lower_bound=Bound(0.0, "critical-path")),
}


@pytest.mark.parametrize("case", PLANS)
def test_what_is_known_of_better_plans(case, golden):
    plan = PLANS[case]
    golden("; ".join(search_verdict(plan)), "words")
    golden(search_sentence(plan), "sentence")
    assert "%" not in search_sentence(plan)


def test_a_run_without_an_end_has_no_best_plan():
    assert not search_verdict(stuck_plan())
    assert search_sentence(stuck_plan()) == ""


def test_names_in_the_sentence_are_short_and_harmless():
    hostile = "\x1b[31m\u202e<img src=x>" * 9000
    plan = renamed(a_plan(unplaced_step()), hostile)
    for sentence in (headline(plan), headline(renamed(taxi_plan(), hostile))):
        assert sentence.isprintable()
        assert len(sentence) < 400


def test_a_plan_of_assumed_steps_alone_still_has_a_sentence():
    step = a_step(duration_source=DurationSource.ASSUMED)
    assert "not compared" in headline(a_plan(step, all_durations_assumed=True))


def test_steps_that_fit_nowhere_are_told_by_the_names_that_authors_gave():
    one = a_plan(unplaced_step("train-4", display_name="xgboost"))
    assert headline(one) == "The run does not end: no node can take step xgboost."
    two = a_plan(*(unplaced_step(f"train-{n}", display_name="fit") for n in (4, 5)))
    assert "(fit (train-4), fit (train-5))" in headline(two)


@pytest.mark.parametrize("code", sorted(_BEYOND_PLANS))
def test_nothing_is_claimed_of_all_plans_where_the_run_may_differ_from_them(code):
    best = a_plan(lower_bound=Bound(60.0, "area"))
    assert search_sentence(best).startswith("Best possible")
    assert search_sentence(replace(best, notices=(Notice(code, "not known"),))) == (
        f"Best found; no bound is claimed, since the run may differ from every plan (see {code})."
    )
    words = [path.read_text() for path in Path(engine.__path__[0]).rglob("*.py")]
    assert any(f'"{code}"' in text for text in words), "no notice has this code"


@pytest.mark.parametrize("code", ["loop-width-assumed", "unknown-images", "unmarked-steps"])
def test_what_is_assumed_and_said_leaves_the_claim(code):
    plan = a_plan(lower_bound=Bound(60.0, "area"))
    with_notice = replace(plan, notices=(Notice(code, "assumed"),))
    assert search_sentence(with_notice) == search_sentence(plan)


def test_an_outline_without_requests_claims_nothing():
    plan = a_plan(lower_bound=Bound(60.0, "area"))
    outline = replace(plan, run=replace(plan.run, is_outline=True))
    assert search_sentence(outline).startswith("Best found; no bound is claimed")
    assert search_sentence(outline).endswith("(see outline).")


@pytest.mark.parametrize("assumed", [True, False])
def test_bounds_with_assumed_loop_widths_say_so(assumed):
    plan = SENTENCES["assumed, equal, best possible"]
    steps = tuple(replace(step, spec=replace(step.spec, assumed=assumed)) for step in plan.steps)
    plan = replace(plan, steps=steps)
    bound = "Best possible: no plan ends before 29m2s"
    width = ", with the assumed loop widths" if assumed else ""
    assert search_sentence(plan) == f"{bound}{width}."
    basis = "assumed run times and assumed loop widths" if assumed else "assumed run times"
    assert f"as far as {basis} tell." in headline(plan)
