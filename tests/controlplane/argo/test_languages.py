"""Placeholders, `when`, `depends`, loops, compression."""

import pytest

from tests.controlplane.argo.compression import compress_nodes, expand_nodes
from tests.controlplane.argo.conditions import accepted_phases, should_execute
from tests.controlplane.argo.exceptions import TemplateError, UnresolvedError
from tests.controlplane.argo.expansion import expand
from tests.controlplane.argo.substitution import substitute


def test_placeholders_in_keys_and_values():
    value = {"{{k}}": ["{{ v }}", "a{{v}}b{{v}}", 3, None], "plain": {"x": "{{$.kept}}"}}
    replaced = substitute(value, {"k": "key", "v": "{{v}}"})
    assert replaced == {"key": ["{{v}}", "a{{v}}b{{v}}", 3, None], "plain": {"x": "{{$.kept}}"}}
    assert replaced["plain"] is value["plain"], "what has nothing to replace is shared"


def test_strict_names_must_be_there():
    assert substitute("{{inputs.x}}", {}, ("tasks",)) == "{{inputs.x}}"
    with pytest.raises(UnresolvedError, match=r"failed to resolve \{\{tasks.a.outputs"):
        substitute(["{{tasks.a.outputs.parameters.x}}"], {}, ("tasks",))


def test_conditions_of_tasks():
    assert [should_execute(each) for each in ("", "a != b", "a != a", "a == a")] == [
        True, True, False, True
    ]  # fmt: skip
    with pytest.raises(TemplateError, match="' != false'"):
        should_execute(" != false")
    assert accepted_phases("a-1.Succeeded && b") == {
        "a-1": {"Succeeded"},
        "b": {"Succeeded", "Skipped"},
    }


def test_loops():
    items = expand({"name": "t", "withItems": ["a", "b"], "arguments": ["{{item}}"]}, {})
    assert items == [{"name": "t(0:a)", "arguments": ["a"]}, {"name": "t(1:b)", "arguments": ["b"]}]
    unknown = {"name": "t", "withSequence": {"count": ""}}
    with pytest.raises(TemplateError, match="'' is not a count"):
        expand(unknown, {})
    assert expand(unknown | {"when": "false != false"}, {}) == []


def test_large_statuses_are_compressed_and_read_back():
    workflow = {"metadata": {"name": "w"}, "status": {"nodes": {"a": {"id": "a" * 999}}}}
    assert compress_nodes(workflow, 10_000) is workflow
    packed = compress_nodes(workflow, 1_000)
    assert "nodes" not in packed["status"]
    assert expand_nodes(packed) == workflow
