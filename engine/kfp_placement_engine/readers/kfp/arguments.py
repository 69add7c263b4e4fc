"""Pipeline arguments: the user's values, typed by the pipeline's own parameter definitions."""

import difflib
import math
import re
from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.exceptions import ArgumentError, InputError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, kind_of

_OLD_TYPES = {"INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE"}
_TRUTH = {"true": True, "false": False}

_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "STRING": (str, "text"),
    "NUMBER_INTEGER": (int, "a whole number"),
    "NUMBER_DOUBLE": ((int, float), "a number"),
    "BOOLEAN": (bool, "true or false"),
    "LIST": (list, "a list, as JSON"),
    "STRUCT": (dict, "a mapping, as JSON"),
}
"""Python types of the values of each type of parameters, and their names in messages."""

# Go's YAML parser reads these as booleans unless they are quoted; KFP writes y and n unquoted.
_BOOLEAN_KEY = re.compile(
    rb"^[ ]*(y|n|yes|no|on|off|Y|N|Yes|No|On|Off|YES|NO|ON|OFF):", re.MULTILINE
)


def pipeline_arguments(
    root: Fields, given: Mapping[str, Any], file: Place
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a pipeline's parameters, and the names of those without a value.

    Args:
        root: root component of the pipeline.
        given: the user's values; text is converted to the parameter's type.
        file: place of the pipeline, for messages.

    Raises:
        ArgumentError: the pipeline does not have an argument, or has it with another type.
        InputError: the definitions are malformed.
    """
    definitions = root.fields("inputDefinitions")
    parameters = definitions.mapping("parameters")
    for name in given:
        if name not in parameters:
            raise ArgumentError(f"{file.spelled}: {unknown_parameter(str(name), list(parameters))}")
    values: dict[str, Any] = {}
    missing = []
    for name, fields in definitions.each_named("parameters"):
        if name in given:
            values[name] = _typed(name, given[name], fields, file)
        elif "defaultValue" in fields:
            values[name] = fields.get("defaultValue")
        elif fields.flag("isOptional"):
            values[name] = None
        else:
            missing.append(name)
    return values, missing


def misread_notices(root: Fields, data: bytes) -> list[Notice]:
    """Return notices about parameters whose names KFP's backend reads as booleans.

    Args:
        root: root component of the pipeline.
        data: bytes of the package.

    Raises:
        InputError: the definitions are malformed.
    """
    candidates = {match.decode() for match in _BOOLEAN_KEY.findall(data)}
    parameters = root.fields("inputDefinitions").mapping("parameters")
    return [
        Notice(
            "parameter-name",
            f"KFP's backend refuses a run with a pipeline parameter {name!r}, whose name it reads"
            f" as a boolean; rename it, say to '{name}_value'",
        )
        for name in sorted(candidates & parameters.keys())
    ]


def missing_notices(missing: list[str]) -> list[Notice]:
    """Return notices about parameters without a value."""
    if not missing:
        return []
    message = (
        f"parameters without a value: {listed(sorted(missing))}; give each "
        "(--arg NAME=VALUE, arguments in Python)"
    )
    return [Notice("missing-argument", message)]


def unknown_parameter(name: str, parameters: list[str]) -> str:
    """Return the message about an argument for a parameter that the pipeline does not have."""
    close = difflib.get_close_matches(name, parameters, 1)
    has = f"it has {listed(parameters)}" if parameters else "it has no parameters"
    hint = f"did you mean {close[0]!r:.80}?" if close else has
    return f"the run has no parameter {name!r:.80}; {hint}"


def _typed(name: str, value: Any, definition: Fields, place: Place) -> Any:
    kind = definition.text("parameterType") or definition.text("type")
    kind = _OLD_TYPES.get(kind, kind)
    if kind not in _KINDS:
        return value
    expected, words = _KINDS[kind]
    where = place.then(": argument {:.80}", name)
    if isinstance(value, str) and kind != "STRING":
        value = _from_text(value, kind, where)
    if not isinstance(value, expected) or (kind.startswith("NUMBER") and isinstance(value, bool)):
        given = f"{kind_of(value)} ({value!r:.60})"
        raise where.error(f"takes {words}, not {given}", ArgumentError)
    if isinstance(value, float) and not math.isfinite(value):
        raise where.error(f"{value} is not a finite number", ArgumentError)
    return value


def _from_text(text: str, kind: str, where: Place) -> Any:
    try:
        if kind in ("LIST", "STRUCT"):
            return parse_json(text, place=where)
        if kind == "BOOLEAN":
            return _TRUTH[text.lower()]
        return int(text) if kind == "NUMBER_INTEGER" else float(text)
    except InputError as error:
        raise ArgumentError(str(error)) from error
    except (KeyError, ValueError) as error:
        raise where.error(f"{text!r:.60} is not {_KINDS[kind][1]}", ArgumentError) from error
