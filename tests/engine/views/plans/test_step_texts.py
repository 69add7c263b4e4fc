import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.render.shortening import fit, fit_all
from kfp_placement_engine.render.widths import text_width
from kfp_placement_engine.views.plans.step_texts import (
    display_name,
    distinct_labels,
    short_name,
    short_task,
    title,
)
from tests.support.plans import a_step, varied


@pytest.mark.parametrize(
    ("name", "iteration", "short"),
    [
        ("train", (), "train"),
        ("inner.work-2", (), "inner.work-2"),
        ("for-loop-1[0].print-text", (0,), "print-text [0]"),
        ("for-loop-1[2].condition-4.for-loop-2[10].work", (2, 10), "work [2,10]"),
        ("inner.for-loop-1[3].work", (3,), "inner.work [3]"),
        ("exit-handler-1.condition-branches-2.condition-3.tell", (), "tell"),
        ("for-loop-1", (), "for-loop-1"),
        ("steps.of.somebody[0]", (0,), "steps.of.somebody[0]"),
    ],
)
def test_short_names(name, iteration, short):
    assert short_name(a_step(name, iteration=iteration)) == short


def test_short_names_of_steps_as_a_whole():
    assert short_task(a_step("s", task="for-loop-1[*].for-loop-2[*].work")) == "work [*,*]"
    assert short_task(a_step("s", task="inner.work")) == "inner.work"
    assert short_task(a_step("s", task="a[*].work", display_name="Hard work")) == "Hard work [*]"


def test_labels_that_several_have_are_followed_by_what_they_stand_for():
    labels = {"train": "fit", "train-2": "fit", "choose": "choose"}
    apart = {"train": "fit (train)", "train-2": "fit (train-2)", "choose": "choose"}
    assert distinct_labels(labels) == apart
    assert len(set(fit_all(apart.values(), 60, 12.0, bold=True).values())) == 3


@pytest.mark.parametrize(
    ("task", "given", "shown"),
    [
        ("train-7", "xgboost", "xgboost"),
        ("train-7", "train", ""),
        ("train_ID0000007", "train", ""),
        ("train", "train", ""),
        ("for-loop-1[*].train-2", "train", ""),
        ("training", "train", "train"),
        ("train-model", "train", "train"),
        ("train", "", ""),
    ],
)
def test_a_name_is_shown_where_it_says_more_than_the_id(task, given, shown):
    assert display_name(a_step(task, display_name=given)) == shown


def test_a_step_goes_by_the_name_that_its_author_gave():
    step = a_step("for-loop-1[2].train-7", task="for-loop-1[*].train-7", iteration=(2,))
    step = varied(step, display_name="xgboost")
    assert short_name(step) == "xgboost [2]"
    assert title(step) == "xgboost (for-loop-1[2].train-7)"
    assert title(a_step()) == "train"


@given(st.text(max_size=80), st.floats(10, 400), st.sampled_from([11.0, 12.5]), st.booleans())
def test_fits(text, pixels, size, bold):
    fitting = fit(text, pixels, size, bold=bold)
    assert text_width(fitting, size, bold=bold) <= pixels
    assert fitting.isprintable()


def test_ends_are_kept():
    assert fit("preprocess-the-data-0000001", 120, 12) == "preproc…0000001"
    assert fit("anything", 5, 12) == ""
