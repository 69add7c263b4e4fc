import pytest

from kfp_placement_engine.model.step_names import StepNames

STEPS = [
    ("fetch", "fetch", "Get the data"),
    ("train", "train", "bayes"),
    ("train-2", "train-2", "xgboost"),
    ("for-loop-1[0].work", "for-loop-1[*].work", "Work, hard"),
    ("for-loop-1[1].work", "for-loop-1[*].work", "Work, hard"),
    ("score", "score", "same"),
    ("score-2", "score-2", "same"),
    ("report", "report", "train"),
    ("a.last", "a.last", "fetch"),
    ("b.inner", "b.inner", "last"),
]
NAMES = StepNames(STEPS)


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("xgboost", ("train-2",)),
        ("Get the data", ("fetch",)),
        ("Work, hard", ("for-loop-1[0].work", "for-loop-1[1].work")),
        ("same", ()),
        # Ids go before display names.
        ("train", ("train",)),
        ("fetch", ("fetch",)),
        ("last", ("a.last",)),
        ("XGBOOST", ()),
        ("", ()),
    ],
)
def test_a_display_name_means_the_only_task_that_has_it(wanted, meant):
    assert NAMES.resolve(wanted) == meant


def test_what_a_step_is_called_means_it_and_goes_from_precise_to_short():
    for name, task, _ in STEPS:
        called = NAMES.all_names(name, task)
        assert called[0] == name
        assert all(name in NAMES.resolve(each) for each in called)
    assert NAMES.all_names("train-2", "train-2")[-1] == "xgboost"
    assert "same" not in NAMES.all_names("score", "score")
    assert "train" not in NAMES.all_names("report", "report")
    assert "last" not in NAMES.all_names("b.inner", "b.inner")


def test_names_that_mean_no_step_are_told_with_those_that_may_be_meant(golden):
    golden(NAMES.why_unresolved("same"), "several have it")
    golden(NAMES.why_unresolved("xgbost"), "misspelt")
    golden(NAMES.why_unresolved("trian-2"), "misspelt id")
    assert len(StepNames([("a", "a", "x" * 9000)]).why_unresolved("x" * 8999)) < 500
