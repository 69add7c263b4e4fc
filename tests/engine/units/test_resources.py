"""Sums of resources, and room on a node (noderesources/fit.go, fitsRequest)."""

from kfp_placement_engine.units.resources import (
    MAX_SUM,
    add_to,
    bounded,
    free_room,
    is_less,
    lacking,
    raise_to,
    subtract_from,
    with_pod,
)


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


def test_sums_in_place():
    total = {"cpu": 1}
    add_to(total, {"cpu": 2, "gpu": 4})
    assert total == {"cpu": 3, "gpu": 4}
    subtract_from(total, {"cpu": 5, "memory": 1})
    assert total == {"cpu": -2, "gpu": 4, "memory": -1}
    raise_to(total, {"cpu": 1, "gpu": 3, "pods": 2})
    assert total == {"cpu": 1, "gpu": 4, "memory": -1, "pods": 2}


def test_a_pod_takes_one_pod_whatever_it_requests():
    assert with_pod({"cpu": 1}) == {"cpu": 1, "pods": 1}
    assert with_pod({"pods": 7}) == {"pods": 1}


def test_free_is_what_the_node_has_and_nobody_takes():
    """Of a resource that the node does not have nothing is free, and nothing said."""
    assert free_room({"cpu": 4, "pods": 2}, {"cpu": 5, "gpu": 1}) == {"cpu": -1, "pods": 2}


def test_less_of_anything_is_less():
    assert is_less({"cpu": 4}, {"cpu": 4, "gpu": 1})
    assert not is_less({"cpu": 4, "gpu": 1}, {"cpu": 4})


def test_sums_to_plan_with_leave_room_to_add():
    assert bounded({"cpu": 2**70, "memory": 5, "gpu": 0, "pods": -1}) == {
        "cpu": MAX_SUM,
        "memory": 5,
    }
