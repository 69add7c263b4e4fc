"""Pipeline arguments: what the user gives, typed by the pipeline's own parameter definitions."""

import difflib
import math
from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.exceptions import ArgumentError, InputError
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.readers.fields import as_flag, as_mapping, as_text, kind_of
from kfp_placement_engine.readers.text.documents import parse_json

_OLD_TYPES = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE"}
_TRUTH = {"true": True, "false": False}


def pipeline_arguments(
    root: dict[str, Any], given: Mapping[str, Any], place: str
) -> tuple[dict[str, Any], list[str]]:
    """Values of a pipeline's parameters, and the names of those without one.

    Args:
        root: the pipeline's root component.
        given: what the user gives; text is converted to the parameter's type.
        place: the file, for messages.

    Raises:
        ArgumentError: an argument that the pipeline does not have, or of the wrong type.
        InputError: the definitions are malformed.
    """
    definitions = as_mapping(root.get("inputDefinitions"), f"{place}: root.inputDefinitions")
    parameters = as_mapping(definitions.get("parameters"), f"{place}: root parameters")
    for name in given:
        if name not in parameters:
            raise ArgumentError(f"{place}: {_unknown(str(name), list(parameters))}")
    values: dict[str, Any] = {}
    missing = []
    for name, definition in parameters.items():
        fields = as_mapping(definition, f"{place}: root parameter {name:.80}")
        if name in given:
            values[name] = _typed(name, given[name], fields, place)
        elif "defaultValue" in fields:
            values[name] = fields["defaultValue"]
        elif as_flag(fields.get("isOptional"), f"{place}: root parameter {name:.80}"):
            values[name] = None
        else:
            missing.append(name)
    return values, missing


def missing_notices(missing: list[str]) -> list[Notice]:
    """What to say about parameters without a value."""
    if not missing:
        return []
    names = ", ".join(f"{name:.80}" for name in sorted(missing)[:10])
    more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
    message = (
        f"pipeline parameters without a value: {names}{more}; give each "
        "(--arg NAME=VALUE, arguments in Python)"
    )
    return [Notice("missing-argument", message)]


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 3) or known[:5]
    hint = f"it has {', '.join(close)}" if close else "it has no parameters"
    return f"the pipeline has no parameter {name!r:.80}; {hint}"


def _typed(name: str, value: Any, definition: dict[str, Any], place: str) -> Any:
    kind = as_text(
        definition.get("parameterType") or definition.get("type"), f"{place}: parameter {name:.80}"
    )
    kind = _OLD_TYPES.get(kind, kind)
    where = f"{place}: argument {name:.80}"
    if isinstance(value, str) and kind not in ("STRING", ""):
        value = _from_text(value, kind, where)
    checks: dict[str, type | tuple[type, ...]] = {
        "STRING": str,
        "NUMBER_INTEGER": int,
        "NUMBER_DOUBLE": (int, float),
        "BOOLEAN": bool,
        "LIST": list,
        "STRUCT": dict,
    }
    expected = checks.get(kind)
    numeric = kind.startswith("NUMBER")
    if expected is not None and (
        not isinstance(value, expected) or (numeric and isinstance(value, bool))
    ):
        raise ArgumentError(f"{where}: is {kind_of(value)}; the pipeline takes {_words(kind)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ArgumentError(f"{where}: {value} is no finite number")
    return value


def _from_text(text: str, kind: str, where: str) -> Any:
    problem = ArgumentError(f"{where}: {text!r:.60} is not {_words(kind)}")
    try:
        if kind == "NUMBER_INTEGER":
            return int(text)
        if kind == "NUMBER_DOUBLE":
            return float(text)
    except ValueError as error:
        raise problem from error
    if kind == "BOOLEAN":
        if text.lower() not in _TRUTH:
            raise problem
        return _TRUTH[text.lower()]
    if kind in ("LIST", "STRUCT"):
        try:
            return parse_json(text, place=where)
        except InputError as error:
            raise ArgumentError(str(error)) from error
    return text


def _words(kind: str) -> str:
    return {
        "STRING": "text",
        "NUMBER_INTEGER": "a whole number",
        "NUMBER_DOUBLE": "a number",
        "BOOLEAN": "true or false",
        "LIST": "a list, as JSON",
        "STRUCT": "a mapping, as JSON",
    }.get(kind, kind)
