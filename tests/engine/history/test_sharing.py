"""Namespaces that share: components and images alone, and only with whom the policy says."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kfp_placement_engine.history import Past
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.history import Observation, PastRun, StepIdentity
from kfp_placement_engine.model.policy import HistoryPolicy, sharing_with

NOW = datetime(2026, 11, 26, tzinfo=UTC)
FIT = StepIdentity("churn", "fit", component="sha-fit", image="trainer:1")
THEIRS = replace(FIT, pipeline="sales")


def past_of(namespace, *observed):
    """The past of a namespace with one run for each step and time."""
    runs = [
        PastRun(f"{namespace}-{number}", identity.pipeline, NOW, (Observation(identity, seconds),))
        for number, (identity, seconds) in enumerate(observed)
    ]
    return Past(runs, namespace)


def told(past, identity):
    forecast = past.steps.predict(identity)
    return None if forecast is None else (forecast.basis.level, forecast.basis.runs)


def test_components_and_images_are_known_where_they_are_shared():
    ours, theirs = past_of("a"), past_of("b", (THEIRS, 300), (THEIRS, 300))
    same_image = replace(FIT, component="sha-new")
    assert told(ours, FIT) is None
    ours.share([theirs])
    assert told(ours, FIT) == (Level.COMPONENT, 2)
    assert told(ours, same_image) == (Level.IMAGE, 2)
    forecast = ours.steps.predict(FIT)
    assert forecast is not None
    assert forecast.distribution.median_seconds == pytest.approx(300)
    ours.share([])
    assert told(ours, FIT) is None


def test_neither_steps_nor_all_steps_of_a_namespace_are_shared():
    """A pipeline of the same name elsewhere is another one."""
    ours, theirs = past_of("a"), past_of("b", (replace(FIT, component="", image=""), 300))
    ours.share([theirs])
    assert told(ours, replace(FIT, component="", image="")) is None
    assert told(ours, replace(FIT, component="sha-other", image="other:1")) is None


def test_what_is_known_here_comes_first():
    ours, theirs = past_of("a", (replace(FIT, pipeline="other"), 30)), past_of("b", (THEIRS, 300))
    ours.share([theirs])
    forecast = ours.steps.predict(FIT)
    assert forecast is not None
    assert forecast.distribution.median_seconds == pytest.approx(30)
    # The same component elsewhere tells more than the same image here.
    ours = past_of("a", (replace(FIT, pipeline="other", component="sha-other"), 30))
    ours.share([theirs])
    assert told(ours, FIT) == (Level.COMPONENT, 1)


def test_who_has_seen_most_is_believed():
    ours, few = past_of("a"), past_of("b", (THEIRS, 300))
    many = past_of("c", (THEIRS, 30), (THEIRS, 30))
    ours.share([few, many])
    forecast = ours.steps.predict(FIT)
    assert forecast is not None
    assert forecast.distribution.median_seconds == pytest.approx(30)


def test_what_is_shared_goes_no_further():
    ours, middle, theirs = past_of("a"), past_of("b"), past_of("c", (THEIRS, 300))
    middle.share([theirs])
    ours.share([middle])
    assert told(middle, FIT) == (Level.COMPONENT, 1)
    assert told(ours, FIT) is None


def test_nothing_of_how_forecasts_miss_is_shared():
    """What was observed before stays as it was, shared or not."""
    apart, beside = past_of("a"), past_of("a")
    beside.share([past_of("b", (THEIRS, 300))])
    for past in (apart, beside):
        for number in range(5):
            past.observe(PastRun(f"{number}", "churn", NOW, (Observation(FIT, 30 + number),)))
    assert apart.steps.predict(FIT) == beside.steps.predict(FIT)


def test_groups_are_apart_but_for_whom_they_have_in_common():
    groups = (("a", "b"), ("b", "c"), ("d", "e"))
    assert sharing_with(groups, "b") == ("a", "c")
    assert sharing_with(groups, "a") == ("b",)
    assert sharing_with(groups, "x") == ()
    assert HistoryPolicy(share_between=groups).sharing_with("e") == ("d",)
    assert HistoryPolicy().sharing_with("a") == ()
