"""Pods that must run together, packed onto nodes."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.queueing.builtin.gang_room import GangRoom, scarcest_first
from kfp_placement_engine.model.demand import PodGroup
from tests.controller.queueing.builders import GPU, amounts

ROOMS = st.lists(
    st.fixed_dictionaries(
        {"cpu": st.integers(0, 6), GPU: st.integers(0, 4), "pods": st.integers(0, 4)}
    ),
    max_size=3,
)
GROUPS = st.lists(
    st.builds(
        PodGroup,
        st.integers(1, 2),
        st.fixed_dictionaries({"cpu": st.integers(0, 4), GPU: st.integers(0, 3)}),
    ),
    max_size=3,
)


def can_be_packed(rooms, groups):
    """By trying every way."""
    pods = [{**group.requests, "pods": 1} for group in groups for _ in range(group.count)]
    names = ("cpu", GPU, "pods")
    for ways in product(range(len(rooms)), repeat=len(pods)):
        left = [[room.get(name, 0) for name in names] for room in rooms]
        for pod, node in zip(pods, ways, strict=True):
            left[node] = [
                has - pod.get(name, 0) for has, name in zip(left[node], names, strict=True)
            ]
        if all(has >= 0 for node in left for has in node):
            return True
    return False


@given(ROOMS, GROUPS)
def test_what_is_packed_can_be_packed(rooms, groups):
    if not GangRoom.of(rooms, groups).lacks(groups):
        assert can_be_packed(rooms, groups)


@given(ROOMS, GROUPS)
def test_one_group_is_packed_wherever_it_can_be(rooms, groups):
    """With one shape there is nothing that first-fit could miss."""
    for group in groups:
        assert (not GangRoom.of(rooms, [group]).lacks([group])) == can_be_packed(rooms, [group])


@given(ROOMS, GROUPS, st.randoms())
def test_the_order_of_nodes_and_groups_does_not_matter(rooms, groups, shuffler):
    other_rooms, other_groups = list(rooms), list(groups)
    shuffler.shuffle(other_rooms)
    shuffler.shuffle(other_groups)
    expected = GangRoom.of(rooms, groups).lacks(groups)
    assert GangRoom.of(other_rooms, other_groups).lacks(other_groups) == expected


@given(ROOMS, GROUPS)
def test_groups_taken_one_after_another_never_take_more_than_there_is(rooms, groups):
    room = GangRoom.of(rooms, groups)
    taken = []
    for group in groups:
        if not room.lacks([group]):
            assert room.take([group]) == 0
            taken.append(group)
    assert can_be_packed(rooms, taken)


def test_what_lacks_is_counted_and_takes_no_room():
    rooms = [{**amounts(cpu=4), "pods": 10}]
    pods = [PodGroup(6, amounts(cpu=1))]
    room = GangRoom.of(rooms, pods)
    assert room.lacks(pods) == room.lacks(pods) == 2
    assert room.lacks([PodGroup(4, amounts(cpu=1))]) == 0
    assert room.take(pods) == 2
    assert room.lacks(pods) == 6


def test_the_scarcest_resource_is_the_one_of_which_most_is_requested():
    rooms = [{**amounts(cpu=32, gpu=4), "pods": 100}, {**amounts(cpu=32), "pods": 100}]
    assert scarcest_first(rooms, [PodGroup(2, amounts(cpu=1, gpu=1))])[0] == GPU
    assert scarcest_first(rooms, [PodGroup(2, amounts(cpu=31, gpu=1))])[0] == "cpu"


def test_a_node_on_which_more_is_taken_than_there_is_takes_nothing():
    rooms = [{"cpu": -2000, GPU: 4, "pods": 10}, {"cpu": 64000, GPU: 4, "pods": 10}]
    pods = [PodGroup(6, amounts(cpu=1, gpu=1))]
    assert GangRoom.of(rooms, pods).lacks(pods) == 2


@pytest.mark.parametrize("left", [(1, 4), (4, 1)])
def test_a_pod_goes_to_the_node_with_least_of_what_is_scarce(left):
    """So the node with all of its GPUs left stays whole."""
    rooms = [{**amounts(gpu=gpu), "pods": 10} for gpu in left]
    room = GangRoom.of(rooms, [PodGroup(1, amounts(gpu=4))])
    assert room.take([PodGroup(1, amounts(gpu=1))]) == 0
    assert room.lacks([PodGroup(1, amounts(gpu=4))]) == 0
