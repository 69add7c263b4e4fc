"""Free room, piece by piece of time, against a count of every moment."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.planning.starts.room_over_time import RoomOverTime

CPUS, LATEST = 8, 20
NODE = {"cpu": CPUS, "pods": 110}

times = st.integers(0, LATEST)
taken = st.lists(st.tuples(times, times, st.integers(0, CPUS)), max_size=6)


def room_with(taken_room, ends):
    """Eight CPUs; each of `ends` is in use until then."""
    free = {"cpu": CPUS - sum(cpu for _, cpu in ends), "pods": 110 - len(ends)}
    room = RoomOverTime(free, 0.0, [(end, {"cpu": cpu}) for end, cpu in ends])
    for start, end, cpu in taken_room:
        room.take({"cpu": cpu}, float(start), float(end))
    return room


def free_at(moment, taken_room, ends):
    """By counting: from one second to the next."""
    in_use = sum(cpu for end, cpu in ends if moment < end)
    return CPUS - in_use - sum(cpu for start, end, cpu in taken_room if start <= moment < end)


def has_room(cpu, start, end, taken_room, ends):
    return all(cpu <= free_at(each, taken_room, ends) for each in range(start, end))


def test_a_step_without_a_length_takes_room_for_a_moment():
    assert room_with([(5, 5, CPUS)], []).earliest({"cpu": 1}, 6.0, 1.0) == 6.0


@given(taken, st.lists(st.tuples(times, st.integers(1, 3)), max_size=3), times, times)
def test_room_is_what_a_count_of_every_moment_leaves(taken_room, ends, start, seconds):
    taken_room = [(min(pair), max(pair), cpu) for *pair, cpu in taken_room if pair[0] != pair[1]]
    room, end = room_with(taken_room, ends), start + seconds + 1
    for cpu in (1, 3, CPUS):
        fits = room.fits({"cpu": cpu}, float(start), float(end))
        assert fits == has_room(cpu, start, end, taken_room, ends)
        first = next(
            (
                at
                for at in range(start, 3 * LATEST)
                if has_room(cpu, at, at + end - start, taken_room, ends)
            ),
            None,
        )
        assert room.earliest({"cpu": cpu}, float(start), float(end - start)) == first


def test_what_never_ends_leaves_nothing():
    room = RoomOverTime({"cpu": 1, "pods": 9}, 0.0, [(math.inf, {"cpu": 7})])
    assert room.earliest({"cpu": 2}, 0.0, 1.0) is None
    room.take({"cpu": 1}, 5.0, math.inf)
    assert room.fits({"cpu": 1}, 0.0, 5.0)
    assert room.earliest({"cpu": 1}, 4.5, 1.0) is None


def test_every_step_takes_one_of_the_node_s_pods():
    room = RoomOverTime({"cpu": 8, "pods": 1}, 0.0, [])
    room.take({}, 2.0, 4.0)
    assert not room.fits({}, 0.0, 3.0)
    assert [room.earliest({}, 2.0, seconds) for seconds in (0.0, 1.0)] == [4.0, 4.0]
