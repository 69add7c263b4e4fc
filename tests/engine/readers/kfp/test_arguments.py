"""Arguments of a run: typed by the pipeline, unknown ones refused, missing ones said."""

from typing import Any

import pytest

from kfp_placement_engine.exceptions import InputError
from tests.support.packages import (
    a_package,
    a_task,
    input_of_dag,
    inputs,
    notice_codes,
    read_package,
)

KINDS = {
    "text": "STRING",
    "count": "NUMBER_INTEGER",
    "share": "NUMBER_DOUBLE",
    "fast": "BOOLEAN",
    "items": "LIST",
    "settings": "STRUCT",
}


def image_with(name: str, value: Any) -> str:
    """What a step's image becomes of an argument that stands in it."""
    documents = a_package(
        {"work": a_task(inputs=inputs(x=input_of_dag(name)))},
        container={"image": "i:{{$.inputs.parameters['x']}}"},
        parameters={key: {"parameterType": kind} for key, kind in KINDS.items()},
    )
    return read_package(documents, arguments={name: value}).step("work").image


@pytest.mark.parametrize(
    ("name", "value", "image"),
    [
        ("text", "5", "i:5"),
        ("text", "true", "i:true"),
        ("count", "5000", "i:5000"),
        ("count", 5000, "i:5000"),
        ("share", "0.5", "i:0.5"),
        ("share", 2, "i:2"),
        ("fast", "True", "i:true"),
        ("fast", False, "i:false"),
        ("items", "[1, 2]", "i:[1, 2]"),
        ("items", [1], "i:[1]"),
        ("settings", '{"a": 1}', 'i:{"a": 1}'),
    ],
)
def test_text_is_converted_to_the_parameter_s_type(name, value, image):
    assert image_with(name, value) == image


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("text", 5, r"takes text, not a number \(5\)"),
        ("count", "five", "'five' is not a whole number"),
        ("count", "1.5", "whole number"),
        ("count", 1.5, "whole number"),
        ("count", True, r"takes a whole number, not true or false \(True\)"),
        ("share", "half", "number"),
        ("share", float("nan"), "finite"),
        ("fast", "yes please", "true or false"),
        ("fast", 1, "true or false"),
        ("items", "1, 2", "JSON"),
        ("items", '{"a": 1}', "a list"),
        ("settings", "[1]", "a mapping"),
        ("texd", "x", "no parameter 'texd'; did you mean 'text'"),
    ],
)
def test_other_values_are_refused_with_the_name(name, value, problem):
    with pytest.raises(InputError, match=problem) as caught:
        image_with(name, value)
    assert name in str(caught.value)


def test_parameters_without_a_value_are_said_once():
    parameters = {
        "b": {"parameterType": "STRING"},
        "a": {"parameterType": "STRING"},
        "given": {"parameterType": "STRING"},
        "optional": {"parameterType": "STRING", "isOptional": True},
        "default": {"parameterType": "STRING", "defaultValue": "x"},
    }
    documents = a_package(parameters=parameters)
    graph = read_package(documents, arguments={"given": "x"})
    assert notice_codes(graph) == ["missing-argument"]
    assert "a, b;" in graph.notices[0].message


def test_types_of_older_packages_are_known():
    parameters = {"n": {"type": "INT"}, "d": {"type": "DOUBLE"}}
    documents = a_package(parameters=parameters)
    assert read_package(documents, arguments={"n": "1", "d": "0.5"}).notices == ()
    with pytest.raises(InputError, match="whole number"):
        read_package(documents, arguments={"n": "x"})
