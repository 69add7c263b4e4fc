"""The watcher against an API server that answers as a test has written down."""

import contextlib
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY

from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.exceptions import (
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    UnreachableError,
)
from kfp_placement_kube.kinds import PODS
from kfp_placement_kube.watch import Watcher, WatchParams
from tests.controlplane.waiting import wait_until
from tests.support.scripted_api import ScriptedApi, an_object

EXPIRED = ExpiredError(410, "Expired", "too old resource version")
GONE = NotFoundError(404, "NotFound", "the server could not find the requested resource")
REFUSED = ForbiddenError(403, "Forbidden", "may not list")
BROKEN = UnreachableError("connection reset")


def read_value(raw):
    """The field `value`; objects without one are of no interest, and some cannot be read."""
    value = raw.get("value")
    if value == "malformed":
        raise InputError("value: malformed")
    if value == "defect":
        raise ZeroDivisionError
    return value


class Followed:
    """What a watcher has told."""

    def __init__(self, *steps, params=None):
        self.api = ScriptedApi(*steps)
        self.changes = []
        self.lists = 0
        self.watcher = Watcher(
            cast("Any", self.api),
            PODS,
            read_value,
            self.changed,
            listed=self.listed,
            malformed=InputError,
            params=params or WatchParams(),
            seed=0,
        )

    def changed(self, change):
        self.changes.append((change.key[1], change.old, change.new))

    def listed(self):
        self.lists += 1

    def wait_for_changes(self, *expected):
        wait_until(
            lambda: len(self.changes) >= len(expected), "changes", state=lambda: self.changes
        )
        assert self.changes == list(expected)


@contextlib.contextmanager
def following(*steps, **options):
    followed = Followed(*steps, **options)
    followed.watcher.start()
    try:
        yield followed
    finally:
        followed.watcher.stop()


def bad_objects():
    return REGISTRY.get_sample_value("kfp_placement_watch_bad_objects_total", {"kind": "Pod"}) or 0


def test_all_there_is_is_told_before_it_counts_as_synced():
    with following((5, [an_object("a", 3, value="1"), an_object("b", 4, value="2")])) as followed:
        assert followed.watcher.synced.wait(10)
        assert followed.changes == [("a", None, "1"), ("b", None, "2")]
        assert followed.lists == 1
        wait_until(lambda: followed.api.asked == ["list", "watch from 5"], "a watch")


def a(version, value=None, name="a", **fields):
    """An object named `a`, or otherwise."""
    return an_object(name, version, **({} if value is None else {"value": value}), **fields)


LISTED = (5, [a(3, "1")])
NEW = ("a", None, "1")


@pytest.mark.parametrize(
    ("steps", "changes"),
    [
        pytest.param(
            [
                LISTED,
                [
                    ("MODIFIED", a(6, "2")),
                    ("DELETED", a(7, "2")),
                    ("ADDED", a(8, "3", uid="other")),
                ],
            ],
            [NEW, ("a", "1", "2"), ("a", "2", None), ("a", None, "3")],
            id="changes come with what was known before",
        ),
        pytest.param(
            [LISTED, [EXPIRED], (10, [a(8, "1", uid="other")])],
            [NEW, ("a", "1", None), NEW],
            id="an object made again in between is gone and new",
        ),
        pytest.param(
            [LISTED, [("MODIFIED", a(6, "malformed")), ("MODIFIED", a(7, "2"))]],
            [NEW, ("a", "1", "2")],
            id="what was known of an object holds while it cannot be read",
        ),
        pytest.param(
            [LISTED, [("MODIFIED", a(6)), ("MODIFIED", a(7, "2"))]],
            [NEW, ("a", "1", None), ("a", None, "2")],
            id="an object of no interest any more is gone",
        ),
        pytest.param(
            [LISTED, [("MODIFIED", a(6, "1", heartbeat=2)), ("MODIFIED", a(7, "2"))]],
            [NEW, ("a", "1", "2")],
            id="a change that nothing is kept of is not told",
        ),
        pytest.param(
            [LISTED, [GONE], GONE, (9, [a(8, "2", "b")])],
            [NEW, ("a", "1", None), ("b", None, "2")],
            id="a kind that is removed takes its objects along and may come back",
        ),
        pytest.param(
            [REFUSED, BROKEN, LISTED], [NEW], id="a refusal is tried again and nothing told of it"
        ),
    ],
)
def test_what_is_told(steps, changes):
    with following(*steps) as followed:
        followed.wait_for_changes(*changes)


def test_a_kind_that_is_missing_for_a_moment_keeps_its_objects():
    steps = [LISTED, [GONE], GONE, (9, [a(5, "1"), a(8, "2", "b")])]
    with following(*steps, params=WatchParams(missing_seconds=60.0)) as followed:
        followed.wait_for_changes(NEW, ("b", None, "2"))


def test_a_stream_that_ends_or_breaks_is_resumed_where_it_was():
    with following(
        (5, []), [("ADDED", a(6, "1"))], [("BOOKMARK", a(9)), BROKEN], [("MODIFIED", a(11, "2"))]
    ) as followed:
        followed.wait_for_changes(NEW, ("a", "1", "2"))
        assert followed.api.asked == ["list", "watch from 5", "watch from 6", "watch from 9"]


@pytest.mark.parametrize("where", ["in the stream", "instead of one"])
def test_after_too_old_a_version_only_differences_are_told(where):
    expired = [("ADDED", a(6, "n", "new")), EXPIRED]
    steps = [expired] if where == "in the stream" else [expired[:1], [EXPIRED]]
    before, after = [a(1, "s", "stays"), a(2, "g", "gone")], [a(1, "s", "stays"), a(9, "m", "new")]
    with following((5, before), *steps, (10, after)) as followed:
        followed.wait_for_changes(
            ("stays", None, "s"), ("gone", None, "g"), ("new", None, "n"), ("new", "n", "m"),
            ("gone", "g", None),
        )  # fmt: skip
        wait_until(lambda: followed.lists == 2, "two lists")


def test_an_error_in_the_middle_of_a_list_begins_it_again():
    def broken_list():
        yield a(1, "1")
        raise EXPIRED

    with following((5, broken_list()), (6, [a(1, "1")])) as followed:
        assert followed.watcher.synced.wait(10)
        assert followed.changes == [NEW]


@pytest.mark.parametrize(
    "bad", [a(2, "malformed", "bad"), a(2, "defect", "bad"), {"value": "malformed"}]
)
def test_an_object_that_cannot_be_read_is_counted_and_hides_no_other(bad):
    before = bad_objects()
    with following((5, [a(1, "1"), bad]), [("ADDED", bad), ("ADDED", a(3, "2", "b"))]) as followed:
        followed.wait_for_changes(NEW, ("b", None, "2"))
        assert bad_objects() == before + 2


def test_more_than_asked_for_is_passed_over_until_there_is_room():
    before = bad_objects()
    events = [
        ("ADDED", a(6, "2", "b")),
        ("MODIFIED", a(7, "3")),
        ("DELETED", a(8, "3")),
        ("ADDED", a(9, "4", "c")),
    ]
    with following(LISTED, events, params=WatchParams(most_objects=1)) as followed:
        followed.wait_for_changes(NEW, ("a", "1", "3"), ("a", "3", None), ("c", None, "4"))
        assert bad_objects() == before + 1


def test_the_age_is_the_time_since_the_server_last_answered():
    now = [100.0]
    api: Any = ScriptedApi((5, []))
    watcher = Watcher(api, PODS, read_value, lambda change: None, monotonic=lambda: now[0], seed=0)
    watcher.start()
    wait_until(lambda: len(api.asked) == 2, "a watch")
    now[0] = 130.0
    assert watcher.age_seconds() == 30.0
    labels = {"kind": "Pod"}
    assert REGISTRY.get_sample_value("kfp_placement_watch_age_seconds", labels) == 30.0
    now[0] = 131.0
    assert REGISTRY.get_sample_value("kfp_placement_watch_age_seconds", labels) == 31.0
    watcher.stop()
