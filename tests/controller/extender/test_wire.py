"""Questions and answers as Go reads and writes them; the recorded one is kube-scheduler's own."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.extender.wire import (
    MAX_NODES,
    filter_json,
    priorities_json,
    read_args,
    unchanged,
)
from kfp_placement_engine.exceptions import InputError, LimitError
from tests.support.data import data_path


def question(**fields) -> bytes:
    return json.dumps(fields).encode()


def test_the_recorded_question_is_read():
    args = read_args(data_path("labelled/extender/filter-taxi-predict.json").read_bytes())
    assert args.node_names == ("nitos-cloud-node", "home-edge-node", "nitlab-edge-node", "big")
    assert args.pod["metadata"]["labels"]["OurLocation"] == "HOME-EDGE"


@pytest.mark.parametrize("change", [str.lower, str.upper, str])
def test_names_of_fields_are_read_in_any_case(change):
    args = read_args(question(**{change("Pod"): {}, change("NodeNames"): ["a"]}))
    assert args.node_names == ("a",)


def test_an_empty_list_of_nodes_is_a_question():
    assert read_args(question(Pod={}, NodeNames=[], Nodes=None)).node_names == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"Pod"',
        b"\xff",
        question(),
        question(Pod=None, NodeNames=["a"]),
        question(Pod=[], NodeNames=["a"]),
        question(Pod={}, NodeNames=None, Nodes={"items": []}),
        question(Pod={}, NodeNames="a"),
        question(Pod={}, NodeNames=[1]),
        question(Pod={}, NodeNames=["a", None]),
    ],
)
def test_what_is_no_question_is_refused(body):
    with pytest.raises(InputError):
        read_args(body)


def test_too_many_nodes_are_refused():
    with pytest.raises(LimitError):
        read_args(question(Pod={}, NodeNames=["n"] * (MAX_NODES + 1)))


@pytest.mark.parametrize(
    ("nodes", "names"), [(None, ["a", "b"]), ({"items": [{"metadata": {}}]}, None), (None, None)]
)
def test_the_unchanged_answer_keeps_what_was_asked(nodes, names):
    answer = unchanged(question(Pod=3, Nodes=nodes, NodeNames=names))
    assert answer is not None
    assert json.loads(answer) == {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": "",
    }


@pytest.mark.parametrize("body", [b"", b"[1]", b"{"])
def test_there_is_no_unchanged_answer_to_what_is_no_object(body):
    assert unchanged(body) is None


def test_a_filter_result_has_all_fields():
    assert json.loads(filter_json([], {"a": "too far"})) == {
        "Nodes": None,
        "NodeNames": [],
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": {"a": "too far"},
        "Error": "",
    }


def test_priorities_are_a_bare_list():
    written = json.loads(priorities_json({"a": 10, "b": 0}))
    assert written == [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]


@given(st.binary(max_size=40))
def test_any_bytes_are_refused_or_kept(body):
    with pytest.raises(InputError):
        read_args(body)
    unchanged(body)
