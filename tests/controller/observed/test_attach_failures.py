"""What is kept of events about volumes."""

import pytest

from kfp_placement_controller.observed.attach_failures import AttachFailure, observe_attach_failure
from kfp_placement_controller.observed.limited_fields import MAX_TEXT_CHARACTERS
from kfp_placement_engine.exceptions import InputError


def an_event(**fields):
    return {
        "metadata": {"name": "train.1", "namespace": "team"},
        "reason": "FailedAttachVolume",
        "regarding": {"kind": "Pod", "name": "train", "namespace": "team", "uid": "u1"},
        "note": "Multi-Attach error",
        **fields,
    }


def test_the_pod_and_the_words():
    assert observe_attach_failure(an_event()) == AttachFailure("team", "u1", "Multi-Attach error")
    assert observe_attach_failure(an_event(note=None)) == AttachFailure("team", "u1", "")


@pytest.mark.parametrize(
    "other",
    [
        {"reason": "SuccessfulAttachVolume"},
        {"regarding": {"kind": "Node", "uid": "u1"}},
        {"regarding": {"kind": "Pod", "name": "train"}},
        {"regarding": None},
    ],
)
def test_other_events_are_of_no_interest(other):
    assert observe_attach_failure(an_event(**other)) is None


def test_long_words_are_cut():
    kept = observe_attach_failure(
        an_event(note="x" * 9_000, regarding={"kind": "Pod", "uid": "u" * 9_000})
    )
    assert kept is not None
    assert (len(kept.pod_uid), len(kept.message)) == (64, MAX_TEXT_CHARACTERS)


@pytest.mark.parametrize("wrong", [{"regarding": "train"}, {"note": {"a": 1}}])
def test_another_form_is_an_error(wrong):
    with pytest.raises(InputError, match="event"):
        observe_attach_failure(an_event(**wrong))
