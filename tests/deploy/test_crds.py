"""The CRDs say the same as the models, keep the rules for CRDs, and take the examples."""

import re
from typing import Any

import pytest
import yaml

from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.keys import API_GROUP, API_VERSION
from kfp_placement_engine.contract.shared_parts import Resource
from tests.support.structural_schemas import (
    CRDS,
    MANIFESTS,
    crds,
    documents,
    parts,
    problems,
    schema_of,
    with_defaults,
)

MODELS = {kind.__name__: kind for kind in Resource.__subclasses__()}
of_every_kind = pytest.mark.parametrize("kind", MODELS)
EXAMPLES = {
    f"{path.name}-{number}": each
    for path in sorted(MANIFESTS.glob("*.yaml"))
    for number, each in enumerate(documents(path))
}
COMPARED = [
    "type",
    "format",
    "enum",
    "pattern",
    "anyOf",
    "x-kubernetes-int-or-string",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
]


def model_schema(kind: str) -> dict[str, Any]:
    """What the model says of itself, without references."""
    schema = MODELS[kind].model_json_schema(mode="serialization", by_alias=True)
    definitions = schema.pop("$defs", {})

    def resolved(part: Any) -> Any:
        if isinstance(part, list):
            return [resolved(each) for each in part]
        if not isinstance(part, dict):
            return part
        part = dict(part)
        if "$ref" in part:
            name = part.pop("$ref").removeprefix("#/$defs/")
            part = {**definitions[name], **part}
        choices = part.get("anyOf", [])
        if {"type": "null"} in choices:
            part.pop("anyOf")
            assert part.pop("default") is None
            (only,) = [each for each in choices if each != {"type": "null"}]
            part = {**only, **part}
            return resolved(part)
        # Nulls stand only among defaults; they are never written.
        return {key: resolved(value) for key, value in part.items() if value is not None}

    of_model: dict[str, Any] = resolved(schema)
    return of_model


def flat(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What can be compared of each part of a schema, by path."""
    result = {}
    for path, part in parts(schema):
        if path.startswith(".metadata") or path in ("", ".kind", ".apiVersion"):
            continue
        compared = {key: part[key] for key in COMPARED if key in part}
        if compared.get("format") == "int64":
            del compared["format"]
        if "required" in part:
            compared["required"] = sorted(part["required"])
        if "default" in part:
            compared["default"] = with_defaults(part["default"], part)
        result[path] = compared
    return result


@of_every_kind
def test_model_and_crd_say_the_same(kind):
    assert flat(schema_of(kind)) == flat(model_schema(kind))


@of_every_kind
def test_model_and_crd_require_the_same_at_the_root(kind):
    assert schema_of(kind).get("required", []) == model_schema(kind).get("required", [])
    assert set(schema_of(kind)["properties"]) == set(model_schema(kind)["properties"])


def test_every_kind_has_its_crd_and_its_model():
    assert set(crds()) == set(MODELS)


@pytest.mark.parametrize("folder", CRDS, ids=lambda each: each.parent.name)
def test_the_kustomization_lists_every_crd(folder):
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(path.name for path in folder.iterdir())


@of_every_kind
def test_names_and_version(kind):
    crd = crds()[kind]
    names = crd["spec"]["names"]
    (version,) = crd["spec"]["versions"]
    assert crd["metadata"]["name"] == f"{names['plural']}.{API_GROUP}"
    assert f"{crd['spec']['group']}/{version['name']}" == API_VERSION
    assert names["categories"] == ["placement"]
    assert names["shortNames"]
    assert names["listKind"] == f"{kind}List"
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"][-1]["name"] == "Age"


def test_short_names_differ():
    short = [name for crd in crds().values() for name in crd["spec"]["names"]["shortNames"]]
    assert len(set(short)) == len(short)


@of_every_kind
def test_printed_columns_exist(kind):
    paths = {path for path, _ in parts(schema_of(kind))}
    for column in crds()[kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        path = re.sub(r"\[\?\(.*\)\]", "[]", column["jsonPath"])
        assert path in paths or path == ".metadata.creationTimestamp"


@of_every_kind
def test_schema_is_structural_and_bounded(kind):
    """Every part has a type or says why not; lists and free texts have a limit (CEL needs it)."""
    for path, part in parts(schema_of(kind)):
        free = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
        assert "type" in part or any(part.get(word) for word in free), path
        assert not {"$ref", "nullable", "additionalProperties", "oneOf"} & set(part), path
        if part.get("type") == "array":
            assert "maxItems" in part, path
        if part.get("type") == "string" and path not in (".apiVersion", ".kind"):
            assert {"maxLength", "enum", "format"} & set(part), path
        for rule in part.get("x-kubernetes-validations", []):
            assert rule["message"], path


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "PipelineHistory"])
def test_conditions_are_a_map_by_type(kind):
    schema = dict(parts(schema_of(kind)))[".status.conditions"]
    assert schema["x-kubernetes-list-type"] == "map"
    assert schema["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [("PlacementPolicy", "gateDeadline", "60s"), ("RunQueue", "onControllerDown", "run")],
)
def test_an_empty_object_means_the_same_with_and_without_an_api_server(kind, field, value):
    empty = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "default"}}
    complete = with_defaults(empty, schema_of(kind))
    assert complete["spec"][field] == value
    model = MODELS[kind]
    assert read_resource(model, complete) == read_resource(model, empty)
    assert read_resource(model, empty).to_object() == complete


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_examples_are_accepted_and_mean_something_to_the_model(example):
    assert problems(example) == []
    kind = MODELS[example["kind"]]
    resource = read_resource(kind, example)
    written = resource.to_object()
    assert problems(written) == []
    assert read_resource(kind, written) == resource


def test_every_kind_has_an_example():
    assert {example["kind"] for example in EXAMPLES.values()} == set(MODELS)


def test_validation_finds_what_it_should():
    (example, *_) = documents(MANIFESTS / "policy-gates.yaml")
    example["spec"]["gateDeadlin"] = "30s"
    example["spec"]["engine"] = {"budget": 2}
    message = " ".join(problems(example))
    assert "gateDeadlin" in message
    assert "spec.engine.budget" in message
