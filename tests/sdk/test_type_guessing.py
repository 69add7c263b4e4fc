"""Types guessed from names: the documented words, and nothing that only looks like them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.contract.types import guess_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fetch", "Fetch"),
        ("fetch-2", "Fetch"),
        ("load-training-data", "Fetch"),
        ("data-ingestion", "Fetch"),
        ("HTTPFetch", "Fetch"),
        ("drop-header", "Transform"),
        ("train-test-split", "Transform"),
        ("preprocess_training_data", "Transform"),
        ("train", "Training"),
        ("XGBoostTrain-2", "Training"),
        ("model-training", "Training"),
        ("fine-tune-llm", "Training"),
        ("predict", "Predict"),
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
