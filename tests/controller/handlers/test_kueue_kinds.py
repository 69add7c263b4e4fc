"""Events of objects of one kind: which of them come too late."""

import pytest

from kfp_placement_controller.handlers.kueue_kinds import ObjectOrder

KEY = ("team", "default")


@pytest.fixture
def order():
    return ObjectOrder()


def is_late(order: ObjectOrder, version: int, *, is_gone: bool = False, key=KEY) -> bool:
    return order.is_late(key, {"metadata": {"resourceVersion": str(version)}}, is_gone=is_gone)


def test_events_in_order_are_never_late(order):
    assert not is_late(order, 9)
    assert not is_late(order, 10)
    assert not is_late(order, 10)
    assert not is_late(order, 11, is_gone=True)
    assert not is_late(order, 12)


def test_the_end_of_an_object_comes_too_late_once_another_has_its_name(order):
    is_late(order, 9)
    is_late(order, 11)
    assert is_late(order, 10, is_gone=True)
    assert not is_late(order, 12, is_gone=True)


def test_a_change_of_an_object_comes_too_late_once_another_has_its_name(order):
    is_late(order, 11)
    assert is_late(order, 9)


def test_names_have_nothing_to_do_with_each_other(order):
    is_late(order, 11)
    assert not is_late(order, 9, key=("other", "default"))


def test_of_an_object_that_is_gone_nothing_is_kept(order):
    is_late(order, 11)
    is_late(order, 12, is_gone=True)
    assert order == ObjectOrder()
