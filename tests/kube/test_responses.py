"""Lines of a watch, from the API server and from what may stand in between."""

from typing import Any

import pytest

from kfp_placement_kube.exceptions import ExpiredError, NotFoundError, UnreachableError
from kfp_placement_kube.kinds import PODS
from kfp_placement_kube.responses import Stream, answered_object, page_of, refused


def stream(*lines: bytes) -> Stream:
    """A stream of these lines."""
    given: Any = list(lines)
    return Stream(PODS, given)


def test_events_come_one_by_one():
    lines = (b'{"type":"ADDED","object":{"a":1}}', b'{"type":"BOOKMARK","object":{}}')
    assert list(stream(*lines)) == [("ADDED", {"a": 1}), ("BOOKMARK", {})]


def test_an_object_deeper_than_the_parser_reads_hides_no_other():
    """Python could not write it, but the API server keeps such objects where a kind allows them."""
    deep = b'{"name":"deep","spec":%b}' % (b"[" * 1500 + b"]" * 1500)
    lines = [b'{"type":"ADDED","object":%b}' % each for each in (b'{"name":"a"}', deep)]
    assert [event.object["name"] for event in stream(*lines)] == ["a", "deep"]
    (item,) = answered_object(b'{"items":[%b]}' % deep, "/pods")["items"]
    assert item["name"] == "deep"


def test_an_error_in_the_stream_is_one_of_ours():
    line = b'{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}}'
    with pytest.raises(ExpiredError, match="pods: too old"):
        list(stream(line))


@pytest.mark.parametrize(
    "line", [b"<html>", b"[]", b"{}", b'{"kind":"Status"}', b'{"type":"ADDED","object":null}']
)
def test_a_line_that_is_no_event_breaks_the_stream(line):
    with pytest.raises(UnreachableError, match="watching pods"):
        list(stream(line))


@pytest.mark.parametrize(
    ("body", "message"),
    [(b'{"message":"no such pod","reason":"NotFound"}', "no such pod"), (b"<html>", "<html>")],
)
def test_a_refusal_is_told_whoever_wrote_it(body, message):
    error = refused(404, body, "/pods/p")
    assert isinstance(error, NotFoundError)
    assert message in str(error)


@pytest.mark.parametrize(
    "answer",
    [{}, {"items": None}, {"items": {}}, {"metadata": [], "items": ["x", None]}],
    ids=["nothing", "no items", "a mapping", "of another form"],
)
def test_of_a_list_what_is_no_object_is_passed_over(answer):
    assert page_of(PODS, answer) == ([], "", "")


def test_objects_of_a_list_say_what_they_are():
    answer = {"metadata": {"resourceVersion": "7", "continue": "c"}, "items": [{"spec": {}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {}}
    assert page_of(PODS, answer) == ([pod], "7", "c")
