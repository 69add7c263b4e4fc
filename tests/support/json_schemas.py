"""JSON schemas as tests use them."""

from typing import Any

import jsonschema

from kfp_placement.schemas import schema


def assert_described(document: Any, name: str) -> None:
    """The document fits a shipped schema, and holds nothing that it does not describe."""
    jsonschema.Draft202012Validator(closed(schema(name))).validate(document)


def closed(schema: Any) -> Any:
    """The schema without room for unknown fields: what we write must all be described."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in result:
        result.setdefault("additionalProperties", False)
    return result
