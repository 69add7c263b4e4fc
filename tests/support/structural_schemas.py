"""Use of our CRDs without an API server: schemas, defaulting, validation."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from tests.support.checkout import ROOT

CRDS = tuple(
    ROOT / "deploy" / folder for folder in ("crds", "features/queue/crds", "features/history/crds")
)
"""Folders of our CRDs: what every installation has, and what queues and histories bring."""

MANIFESTS = ROOT / "samples" / "manifests"


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a YAML file."""
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]


def crds() -> dict[str, dict[str, Any]]:
    """Return our CustomResourceDefinitions by kind."""
    paths = (path for folder in CRDS for path in sorted(folder.glob("*.yaml")))
    items = (each for path in paths for each in documents(path))
    return {
        each["spec"]["names"]["kind"]: each
        for each in items
        if each["kind"] == "CustomResourceDefinition"
    }


def schema_of(kind: str) -> dict[str, Any]:
    """The structural schema of the served version."""
    (version,) = crds()[kind]["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def with_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """The value as the API server would complete it."""
    if isinstance(value, dict):
        value = dict(value)
        for name, part in schema.get("properties", {}).items():
            if name not in value and "default" in part:
                value[name] = deepcopy(part["default"])
            if name in value:
                value[name] = with_defaults(value[name], part)
        return value
    if isinstance(value, list):
        return [with_defaults(each, schema.get("items", {})) for each in value]
    return value


def problems(item: dict[str, Any]) -> list[str]:
    """Return what an API server would refuse, CEL rules apart, and fields that it would drop."""
    schema = _closed(schema_of(item["kind"]))
    complete = with_defaults(item, schema)
    return [
        f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
        for error in Draft202012Validator(schema).iter_errors(complete)
    ]


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every part of a schema with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}")
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with unknown fields refused."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(part) for name, part in schema["properties"].items()}
        closed["additionalProperties"] = False
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    return closed
