"""Types guessed from names: the documented words, and nothing that only looks like them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.contract.step_types import guess_type, near_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fetch-2", "Fetch"),
        ("load-training-data", "Fetch"),
        ("data-ingestion", "Fetch"),
        ("HTTPFetch", "Fetch"),
        ("train-test-split", "Transform"),
        ("preprocess_training_data", "Transform"),
        ("XGBoostTrain-2", "Training"),
        ("fine-tune-llm", "Training"),
        ("batch-predict", "Predict"),
        ("serve-model", "Predict"),
        ("evaluate-predictions", "Evaluate"),
        ("calculate-regression-metrics-from-csv", "Evaluate"),
    ],
)
def test_known_words(name, kind):
    assert guess_type(name) == kind


@pytest.mark.parametrize(
    "name",
    ["", "work", "true-values", "print-text", "make-predictions", "training-data", "restrain"],
)
def test_no_word_no_type(name):
    assert guess_type(name) == ""


@given(st.text())
def test_any_name_gives_a_type_or_none(name):
    assert guess_type(name) in {"", "Fetch", "Transform", "Training", "Predict", "Evaluate"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Trainning", "Training"),
        ("Trianing", "Training"),
        ("Predct", "Predict"),
        ("predicton", "Prediction"),
        ("inferance", "Inference"),
        ("Evalaute", "Evaluate"),
    ],
)
def test_one_slip_is_a_typing_error(written, meant):
    assert near_type(written) == meant


@pytest.mark.parametrize(
    "own",
    [
        *("", "Training", "PREDICT", "serving", "Prediction", "Train", "Transformer", "Scoring"),
        *("Fit", "Batch", "Predict-2", "Trainig-x", "Retraining", "Fetching"),
    ],
)
def test_known_types_and_words_of_one_s_own_are_left_alone(own):
    assert near_type(own) == ""


@given(st.text())
def test_any_type_is_near_a_known_one_or_none(text):
    near = near_type(text)
    assert not near or (near != text and near_type(near) == "")
