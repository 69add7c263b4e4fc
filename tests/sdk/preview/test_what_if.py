"""`Preview.what_if`: changes of a previewed run, in a notebook."""

import math
import pickle
from typing import Any

import pytest

from kfp_placement import (
    Preview,
    RunError,
    Suggestion,
    Suggestions,
    UnknownStepError,
    UsageError,
    WhatIf,
    preview,
)
from tests.support.plans import taxi_plan
from tests.support.samples import SAMPLES

SAMPLE = SAMPLES / "04_unequal_steps"
QUICK: dict[str, Any] = {"generations": 0, "compare": ()}


@pytest.fixture(scope="module")
def planned():
    return preview(str(SAMPLE / "pipeline.yaml"), SAMPLE / "cluster.yaml", **QUICK)


def test_a_change_has_a_makespan_a_gain_and_a_plan(planned):
    answer = planned.what_if("worker-1 speed=2")
    assert isinstance(answer, WhatIf)
    assert answer.changes == ("worker-1 speed=2",)
    assert answer.gain == pytest.approx(planned.makespan - answer.makespan)
    assert answer.gain > 60
    assert answer.plan.makespan == answer.makespan
    assert answer.plan.steps["xgboost"].node == "worker-1"
    assert "xgboost goes to worker-1" in answer.plan.explain("xgboost")
    assert repr(answer).startswith("<WhatIf With worker-1 speed=2 the run ends after ")
    assert "earlier" in answer._repr_html_()


def test_several_changes_are_made_together_and_one_after_another(planned):
    both = planned.what_if("-1 of worker", "worker cpu=8")
    in_turn = planned.what_if("-1 of worker").plan.what_if("worker cpu=8")
    assert both.plan.plan.cluster.nodes == in_turn.plan.plan.cluster.nodes
    assert both.makespan == pytest.approx(in_turn.makespan)
    assert planned.what_if("-1 of worker").gain < 0


def test_a_step_is_changed_by_its_own_name(planned):
    """The node has four CPUs: a step that asks for all of them runs alone."""
    moved = planned.what_if("xgboost node=worker-2")
    assert moved.changes == ("step xgboost node=worker-2",)
    assert moved.plan.steps["xgboost"].node == "worker-2"
    alone = planned.what_if("xgboost cpu=4 memory=2Gi", "step xgboost duration=10m")
    assert alone.plan.steps["xgboost"].requests == {"cpu": 4000, "memory": 2**31}


def test_without_a_change_single_ones_are_suggested(planned):
    slow = planned.what_if("-1 of worker").plan
    suggestions = slow.what_if()
    assert isinstance(suggestions, Suggestions)
    best = suggestions[0]
    assert isinstance(best, Suggestion)
    assert len(suggestions) == len(list(suggestions)) == len(suggestions[:])
    gains = [each.gain for each in suggestions]
    assert best.gain >= 0.95 * max(gains)
    assert slow.what_if(best.change).gain == pytest.approx(best.gain, rel=0.1)
    assert best.change in repr(suggestions)
    assert "<table" in (suggestions._repr_html_() or "")
    assert (repr(Suggestions()), Suggestions()._repr_html_()) == ("()", None)


def test_nothing_to_suggest_is_said(planned):
    alone = planned.what_if("step xgboost duration=10h").plan.what_if()
    assert len(alone) == 0
    assert "None of the single changes tried (3) makes the run 1% shorter" in repr(alone)


def test_a_change_that_makes_the_run_impossible_is_an_answer(planned):
    answer = planned.what_if("worker cpu=2")
    assert answer.makespan == math.inf
    assert answer.gain == -math.inf
    assert "does not end, because 7 steps fit no node" in repr(answer)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker", "'worker' is not a change that can be planned; write one of: "),
        ("+1 of wroker", "there is no node 'wroker'; did you mean 'worker'?"),
        ("xgbost cpu=4", "there is no node or step 'xgbost'; did you mean 'xgboost'?"),
    ],
)
def test_what_cannot_be_changed_is_told_in_a_sentence(planned, text, message):
    with pytest.raises(RunError) as caught:
        planned.what_if(text)
    assert str(caught.value).startswith(message)


def test_a_step_that_is_not_there_is_a_key_error(planned):
    with pytest.raises(UnknownStepError, match="did you mean 'trees'"):
        planned.what_if("step treees duration=1m")


def test_a_preview_keeps_what_it_was_made_from(planned):
    again = pickle.loads(pickle.dumps(planned))
    assert again.what_if("worker-1 speed=2").makespan == pytest.approx(
        planned.what_if("worker-1 speed=2").makespan
    )


def test_a_plan_that_was_made_elsewhere_cannot_be_changed():
    with pytest.raises(UsageError, match="preview"):
        Preview(taxi_plan()).what_if("+1 of home-edge-node")


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (3, "3 (int)"),
        (["+1 of worker"], "['+1 of worker'] (list)"),
        (None, "None (NoneType)"),
        (b"+1 of worker", "b'+1 of worker' (bytes)"),
    ],
)
def test_a_change_is_text(planned, change, shown):
    with pytest.raises(UsageError) as refused:
        planned.what_if("+1 of worker", change)
    assert str(refused.value) == (f"a change is text, such as what_if('+1 of worker'); got {shown}")
