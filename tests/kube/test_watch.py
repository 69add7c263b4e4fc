"""The watcher against an API server that answers as a test has written down."""

import contextlib
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kfp_placement_controller.metrics import WATCH_BAD_OBJECTS
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
BROKEN = UnreachableError(0, "Unreachable", "connection reset")


def read_value(raw):
    """The field `value`; objects without one are of no interest, and some cannot be read."""
    value = raw.get("value")
    if value == "malformed":
        raise InputError("value: malformed")
    if value == "defect":
        raise ZeroDivisionError
    return value


def scripted(*steps: Any) -> Any:
    """An API server that passes for a client."""
    return ScriptedApi(*steps)


class Followed:
    """What a watcher has told."""

    def __init__(self, *steps, params=None):
        self.api = scripted(*steps)
        self.changes = []
        self.lists = 0
        self.watcher = Watcher(
            self.api,
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

    def wait_told(self, *expected):
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


@pytest.fixture
def bad_before():
    return WATCH_BAD_OBJECTS.labels("Pod")._value.get()


def bad_now():
    return WATCH_BAD_OBJECTS.labels("Pod")._value.get()


def test_all_there_is_is_told_before_it_counts_as_synced():
    with following((5, [an_object("a", 3, value="1"), an_object("b", 4, value="2")])) as followed:
        assert followed.watcher.synced.wait(10)
        assert followed.changes == [("a", None, "1"), ("b", None, "2")]
        assert followed.lists == 1
        wait_until(lambda: followed.api.asked == ["list", "watch from 5"], "a watch")


def test_changes_come_with_what_was_known_before():
    events = [
        ("MODIFIED", an_object("a", 6, value="2")),
        ("DELETED", an_object("a", 7, value="2")),
        ("ADDED", an_object("a", 8, uid="other", value="3")),
    ]
    with following((5, [an_object("a", 3, value="1")]), events) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", "2"), ("a", "2", None), ("a", None, "3"))


def test_a_stream_that_ends_or_breaks_is_resumed_where_it_was():
    with following(
        (5, []),
        [("ADDED", an_object("a", 6, value="1"))],
        [("BOOKMARK", an_object("", 9)), BROKEN],
        [("MODIFIED", an_object("a", 11, value="2"))],
    ) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", "2"))
        assert followed.api.asked == ["list", "watch from 5", "watch from 6", "watch from 9"]


@pytest.mark.parametrize("where", ["in the stream", "instead of one"])
def test_after_too_old_a_version_only_differences_are_told(where):
    expired = [("ADDED", an_object("new", 6, value="n")), EXPIRED]
    steps = [expired] if where == "in the stream" else [expired[:1], [EXPIRED]]
    before = [an_object("stays", 1, value="s"), an_object("gone", 2, value="g")]
    after = [an_object("stays", 1, value="s"), an_object("new", 9, value="m")]
    with following((5, before), *steps, (10, after)) as followed:
        followed.wait_told(
            ("stays", None, "s"), ("gone", None, "g"), ("new", None, "n"), ("new", "n", "m"),
            ("gone", "g", None),
        )  # fmt: skip
        wait_until(lambda: followed.lists == 2, "two lists")


def test_an_object_made_again_in_between_is_told_as_gone_and_new():
    before, after = an_object("a", 1, value="1"), an_object("a", 8, uid="other", value="1")
    with following((5, [before]), [EXPIRED], (10, [after])) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", None), ("a", None, "1"))


def test_an_error_in_the_middle_of_a_list_begins_it_again():
    def broken_list():
        yield an_object("a", 1, value="1")
        raise EXPIRED

    with following((5, broken_list()), (6, [an_object("a", 1, value="1")])) as followed:
        assert followed.watcher.synced.wait(10)
        assert followed.changes == [("a", None, "1")]


@pytest.mark.parametrize("kind", ["malformed", "defect"])
def test_an_object_that_cannot_be_read_is_counted_and_hides_no_other(kind, bad_before):
    bad = an_object("bad", 2, value=kind)
    with following((5, [an_object("a", 1, value="1"), bad, an_object("b", 3, value="2")])) as (
        followed
    ):
        assert followed.watcher.synced.wait(10)
        assert followed.changes == [("a", None, "1"), ("b", None, "2")]
        assert bad_now() == bad_before + 1


def test_what_was_known_of_an_object_holds_while_it_cannot_be_read():
    events = [
        ("MODIFIED", an_object("a", 6, value="malformed")),
        ("MODIFIED", an_object("a", 7, value="2")),
    ]
    with following((5, [an_object("a", 3, value="1")]), events) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", "2"))


def test_more_than_asked_for_is_passed_over_until_there_is_room(bad_before):
    events = [
        ("ADDED", an_object("b", 6, value="2")),
        ("MODIFIED", an_object("a", 7, value="3")),
        ("DELETED", an_object("a", 8, value="3")),
        ("ADDED", an_object("c", 9, value="4")),
    ]
    params = WatchParams(most_objects=1)
    with following((5, [an_object("a", 3, value="1")]), events, params=params) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", "3"), ("a", "3", None), ("c", None, "4"))
        assert bad_now() == bad_before + 1


def test_an_object_that_is_of_no_interest_any_more_is_told_as_gone():
    events = [("MODIFIED", an_object("a", 6)), ("MODIFIED", an_object("a", 7, value="2"))]
    with following((5, [an_object("a", 3, value="1")]), events) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", None), ("a", None, "2"))


def test_a_change_that_nothing_is_kept_of_is_not_told():
    events = [
        ("MODIFIED", an_object("a", 6, value="1", heartbeat=2)),
        ("MODIFIED", an_object("a", 7, value="2")),
    ]
    with following((5, [an_object("a", 3, value="1")]), events) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", "2"))


def test_a_kind_that_is_removed_takes_its_objects_along_and_may_come_back():
    a = an_object("a", 3, value="1")
    with following((5, [a]), [GONE], GONE, (9, [an_object("b", 8, value="2")])) as followed:
        followed.wait_told(("a", None, "1"), ("a", "1", None), ("b", None, "2"))


def test_a_refusal_is_tried_again_and_nothing_is_told_of_it():
    with following(REFUSED, BROKEN, (5, [an_object("a", 3, value="1")])) as followed:
        assert followed.watcher.synced.wait(10)
        followed.wait_told(("a", None, "1"))
        assert followed.api.asked[:3] == ["list", "list", "list"]


def test_the_age_is_the_time_since_the_server_last_answered():
    now = [100.0]
    api = scripted((5, []))
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
