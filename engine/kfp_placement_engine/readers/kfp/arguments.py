"""Pipeline arguments: what the user gives, typed by the pipeline's own parameter definitions."""

import difflib
import math
import re
from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.exceptions import ArgumentError, InputError
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.place import Place, kind_of
from kfp_placement_engine.readers.text.documents import parse_json

_OLD_TYPES = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE"}
_TRUTH = {"true": True, "false": False}

# Go's YAML takes these for booleans where they stand without quotes, and KFP writes y and n so.
_BOOLEAN_KEY = re.compile(
    rb"^[ ]*(y|n|yes|no|on|off|Y|N|Yes|No|On|Off|YES|NO|ON|OFF):", re.MULTILINE
)


def pipeline_arguments(root: Fields, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values of a pipeline's parameters, and the names of those without one.

    Args:
        root: the pipeline's root component, at the place of its file.
        given: what the user gives; text is converted to the parameter's type.

    Raises:
        ArgumentError: an argument that the pipeline does not have, or of the wrong type.
        InputError: the definitions are malformed.
    """
    definitions = root.flat("inputDefinitions", at="root.inputDefinitions")
    parameters = definitions.mapping("parameters", at="root parameters")
    for name in given:
        if name not in parameters:
            raise ArgumentError(f"{root.place.spelled}: {_unknown(str(name), list(parameters))}")
    values: dict[str, Any] = {}
    missing = []
    named = definitions.each_named("parameters", ": root parameter {:.80}", at="root parameters")
    for name, fields in named:
        if name in given:
            values[name] = _typed(name, given[name], fields, root.place)
        elif "defaultValue" in fields:
            values[name] = fields.get("defaultValue")
        elif fields.flag("isOptional", at=""):
            values[name] = None
        else:
            missing.append(name)
    return values, missing


def misread_notices(root: Mapping[str, Any], data: bytes) -> list[Notice]:
    """What to say about parameters whose names KFP's backend reads as booleans.

    Args:
        root: the pipeline's root component.
        data: the package, as it is written.
    """
    candidates = {match.decode() for match in _BOOLEAN_KEY.findall(data)}
    definitions = root.get("inputDefinitions") if candidates else None
    parameters = definitions.get("parameters") if isinstance(definitions, Mapping) else None
    return [
        Notice(
            "parameter-name",
            f"KFP's backend refuses a run with a pipeline parameter {name!r}, whose name it reads"
            f" as a boolean; rename it, say to '{name}_value'",
        )
        for name in sorted(candidates & set(parameters or ()))
    ]


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
    close = difflib.get_close_matches(name, known, 1)
    has = f"it has {listed(known)}" if known else "it has no parameters"
    hint = f"did you mean {close[0]!r:.80}?" if close else has
    return f"the pipeline has no parameter {name!r:.80}; {hint}"


def _typed(name: str, value: Any, definition: Fields, place: Place) -> Any:
    kind = place.then(": parameter {:.80}", name).text(
        definition.get("parameterType") or definition.get("type")
    )
    kind = _OLD_TYPES.get(kind, kind)
    where = place.then(": argument {:.80}", name)
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
        given = f"{kind_of(value)} ({value!r:.60})"
        raise where.error(f"takes {_words(kind)}, not {given}", ArgumentError)
    if isinstance(value, float) and not math.isfinite(value):
        raise where.error(f"{value} is not a finite number", ArgumentError)
    return value


def _from_text(text: str, kind: str, where: Place) -> Any:
    try:
        if kind == "NUMBER_INTEGER":
            return int(text)
        if kind == "NUMBER_DOUBLE":
            return float(text)
    except ValueError as error:
        raise _not_of(kind, text, where) from error
    if kind == "BOOLEAN":
        if text.lower() not in _TRUTH:
            raise _not_of(kind, text, where)
        return _TRUTH[text.lower()]
    if kind in ("LIST", "STRUCT"):
        try:
            return parse_json(text, place=where)
        except InputError as error:
            raise ArgumentError(str(error)) from error
    return text


def _not_of(kind: str, text: str, where: Place) -> InputError:
    return where.error(f"{text!r:.60} is not {_words(kind)}", ArgumentError)


def _words(kind: str) -> str:
    return {
        "STRING": "text",
        "NUMBER_INTEGER": "a whole number",
        "NUMBER_DOUBLE": "a number",
        "BOOLEAN": "true or false",
        "LIST": "a list, as JSON",
        "STRUCT": "a mapping, as JSON",
    }.get(kind, kind)
