"""Room on a node (noderesources/fit.go, fitsRequest)."""

from kfp_placement_engine.model.constraints import lacking


def test_what_is_requested_and_not_free_is_named():
    """Every resource that lacks is named, extended ones too."""
    free = {"pods": 5, "cpu": 500, "memory": 100, "nvidia.com/gpu": 1}
    assert lacking({"cpu": 500, "memory": 100, "nvidia.com/gpu": 1}, free) == []
    assert lacking({"cpu": 501, "memory": 99, "nvidia.com/gpu": 2}, free) == [
        "cpu",
        "nvidia.com/gpu",
    ]
    assert lacking({"example.com/dongle": 1}, free) == ["example.com/dongle"]


def test_a_zero_request_always_fits():
    """Even where more is taken than there is."""
    assert lacking({"cpu": 0, "memory": 0}, {"pods": 1, "cpu": -100, "memory": -1}) == []


def test_every_pod_takes_a_pod():
    """The number of pods limits pods that request nothing too, and is not doubled by a request."""
    assert lacking({}, {"pods": 0, "cpu": 1_000}) == ["pods"]
    assert lacking({}, {"cpu": 1_000}) == ["pods"]
    assert lacking({"pods": 5}, {"pods": 1}) == []
