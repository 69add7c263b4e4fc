"""PipelineHistory: what it refuses where no API server has looked at it."""

import pytest

from kfp_placement_engine.contract.resources import PipelineHistory, read_resource
from kfp_placement_engine.exceptions import InputError

MOMENT = "2026-11-20T10:23:05Z"


def a_history(status=None, **spec):
    found = {"metadata": {"name": "taxi"}, "spec": {"pipeline": "taxi", **spec}, "status": status}
    return read_resource(PipelineHistory, found)


def a_run(**changes):
    return {"runs": [{"uid": "u", "endedAt": MOMENT, **changes}]}


REFUSED = {
    "pipeline": ({"pipeline": ""}, {}, "spec.pipeline"),
    "years": ({"forgetBefore": "0001-01-01T00:00:00Z"}, {}, "is not in the years 1970 to 9000"),
    "step": ({"forgetSteps": [{"step": "", "before": MOMENT}]}, {}, "spec.forgetSteps.0.step"),
    "negative": ({}, a_run(seconds=-1), "status.runs.0.seconds"),
    "nan": ({}, a_run(seconds=float("nan")), "status.runs.0.seconds"),
    "endless": ({}, a_run(playedSeconds=1e308), "status.runs.0.playedSeconds"),
    "zone": ({}, a_run(endedAt="2026-11-20T10:23:05"), "status.runs.0.endedAt"),
    "row": ({}, a_run(steps=[[0] * 9]), "status.runs.0.steps.0"),
}


@pytest.mark.parametrize(("spec", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_its_place(spec, status, message):
    with pytest.raises(InputError) as refused:
        a_history(status, **spec)
    assert message in str(refused.value)
    assert "PipelineHistory 'taxi'" in str(refused.value)


def test_what_is_new_has_nothing():
    history = a_history()
    assert history.status is None
    assert history.to_object()["spec"] == {"pipeline": "taxi", "forgetSteps": []}


def test_rows_are_read_whatever_they_hold():
    """Who reads them judges each by itself: a bad row spoils no other."""
    rows = [[0, 12.5, 0, "", 1024], [], ["?", None, {"a": [1]}]]
    history = a_history(a_run(steps=rows))
    assert history.status is not None
    assert [list(row) for row in history.status.runs[0].steps] == rows
