"""Placeholders, `when`, `depends`, loops, durations, compression."""

import pytest

from tests.controlplane.argo.compression import compress_nodes, expand_nodes
from tests.controlplane.argo.durations import parse_duration
from tests.controlplane.argo.exceptions import TemplateError, UnresolvedError
from tests.controlplane.argo.expansion import expand
from tests.controlplane.argo.expressions import depends_holds, names_in_depends, should_execute
from tests.controlplane.argo.substitution import substitute


def test_placeholders_in_keys_and_values():
    value = {"{{k}}": ["{{ v }}", "a{{v}}b{{v}}", 3, None], "plain": {"x": "{{$.kept}}"}}
    found = substitute(value, {"k": "key", "v": "{{v}}"})
    assert found == {
        "key": ["{{v}}", "a{{v}}b{{v}}", 3, None],
        "plain": {"x": "{{$.kept}}"},
    }
    assert found["plain"] is value["plain"], "what has nothing to replace is shared"


def test_a_placeholder_inside_another_takes_two_passes():
    values = {"inner": "x", "outer.x": "found"}
    once = substitute("{{outer.{{inner}}}}", values)
    assert once == "{{outer.x}}"
    assert substitute(once, values) == "found"


def test_strict_names_must_be_there():
    assert substitute("{{inputs.x}}", {}, ("tasks",)) == "{{inputs.x}}"
    with pytest.raises(UnresolvedError, match=r"failed to resolve \{\{tasks.a.outputs"):
        substitute(["{{tasks.a.outputs.parameters.x}}"], {}, ("tasks",))


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("", True),
        ("true != false", True),
        ("false != true", True),
        ("true != true", False),
        ("foo == foo && !(1 > 2)", True),
        ("'a b' == \"a b\" || x == y", True),
        ("3 >= 2.5", True),
        ("'abc' =~ 'b'", True),
    ],
)
def test_when(when, expected):
    assert should_execute(when) is expected


@pytest.mark.parametrize("when", [" != false", "a ==", "(a == b", "a", "1 < x", "a ~ b", "a b"])
def test_when_that_is_none(when):
    with pytest.raises(TemplateError, match="'"):
        should_execute(when)


def test_depends():
    text = "a-1.Succeeded && (b.Failed || !c.Skipped) && d"
    assert names_in_depends(text) == ["a-1", "b", "c", "d"]
    results = {name: frozenset({"Succeeded"}) for name in ("a-1", "b", "c", "d")}
    assert depends_holds(text, results, {})
    assert not depends_holds(text, results | {"d": frozenset({"Failed"})}, {})
    goes_on = {"d": {"failed": True}}
    assert depends_holds(text, results | {"d": frozenset({"Failed"})}, goes_on)


@pytest.mark.parametrize(
    ("loop", "names"),
    [
        ({"withItems": ["a", 1, {"k": "v", "b": 2}]}, ["t(0:a)", "t(1:1)", "t(2:b:2,k:v)"]),
        ({"withParam": '["(x)"]'}, ["t(0:x)"]),
        ({"withSequence": {"start": "3", "end": "1"}}, ["t(0:3)", "t(1:2)", "t(2:1)"]),
        ({"withSequence": {"count": "2", "format": "n%02d"}}, ["t(0:n00)", "t(1:n01)"]),
        ({"withSequence": {"count": "0"}}, []),
    ],
)
def test_loops(loop, names):
    assert [entry["name"] for entry in expand({"name": "t", "template": "w"} | loop, {})] == names


def test_items_fill_the_task():
    task = {"name": "t", "withItems": [{"k": "v"}], "arguments": ["{{item.k}}", "{{item}}"]}
    assert expand(task, {})[0]["arguments"] == ["v", '{"k":"v"}']


@pytest.mark.parametrize("loop", [{"withParam": "{}"}, {"withSequence": {"count": "many"}}])
def test_loops_without_items_are_errors_unless_they_are_skipped(loop):
    with pytest.raises(TemplateError):
        expand({"name": "t"} | loop, {})
    assert expand({"name": "t", "when": "false"} | loop, {}) == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10), ("1h30m", 5400), ("500ms", 0.5), ("2d", 172800)]
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


def test_durations_that_are_none():
    with pytest.raises(TemplateError):
        parse_duration("soon")


def test_large_statuses_are_compressed_and_read_back():
    workflow = {"metadata": {"name": "w"}, "status": {"nodes": {"a": {"id": "a" * 999}}}}
    assert compress_nodes(workflow, 10_000) is workflow
    packed = compress_nodes(workflow, 1_000)
    assert "nodes" not in packed["status"]
    assert expand_nodes(packed) == workflow
