"""Functions of the expression languages: conversions, text, and what Argo adds to expr-lang.

Only those that run files commonly use are here; a value that another function makes is unknown.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.values import MAX_CHARACTERS

_JSON = Place("value")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(?:([0-9]{1,9})|'([^']*)'|\"([^\"]*)\")\]")


_PATTERN = re.compile(
    r"(?:[^\\()\[\]{}]|\\[dDsSwW.+*?()|\[\]{}^$/-]|\((?!\?)|\)(?![*+?])"
    r"|\[\^?(?:[\w.,:/ -]|\\[dswDSW.-])+\])*"
)
"""Patterns that mean the same in Go and Python, without repeated groups."""

_MOST_TRIES = 1_000_000
"""Number of ways in which a pattern may be tried, since Python tries one after another."""


class RefusedValueError(Exception):
    """A value that the real engine refuses, or that is not computed here."""


def _int(value: Any) -> int:
    """Return a number without its fraction; text must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise RefusedValueError
    if isinstance(value, str) and not _WHOLE.fullmatch(value):
        raise RefusedValueError
    return int(value)


def _sprig_int(value: Any) -> int:
    """Return a number as sprig does, which takes text that is not a number for 0."""
    if isinstance(value, str):
        # sprig reads a leading zero as octal.
        if value.lstrip("+-").startswith("0") and value != "0":
            raise RefusedValueError
        return int(value) if _WHOLE.fullmatch(value) else 0
    return _int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise RefusedValueError
    return float(value)


def json_text(value: Any) -> str:
    """Return a value as JSON, as Go writes it: a float without a fraction is a whole number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _parsed(text: Any) -> Any:
    if not isinstance(text, str):
        raise RefusedValueError
    return parse_json(text, place=_JSON)


def _jsonpath(text: Any, path: Any) -> Any:
    """Return the part of a JSON text at a path of keys and indexes such as `$.sizes[0].cpu`."""
    value = _parsed(text)
    if not isinstance(path, str) or not path.startswith("$"):
        raise RefusedValueError
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise RefusedValueError
        position = match.end()
        index, key = match[2], match[1] or match[3] or match[4]
        value = value[int(index)] if index else value[key]
    return value


def _ternary(first: Any, second: Any, chosen: Any) -> Any:
    if not isinstance(chosen, bool):
        raise RefusedValueError
    return first if chosen else second


def _on_text(function: Callable[[str], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if not isinstance(value, str):
            raise RefusedValueError
        return function(value)

    return call


def matches(text: str, pattern: str) -> bool:
    """Return whether a part of a string matches a pattern of Go; only simple ones are tried."""
    repeats, options = len(re.findall(r"[*+]", pattern)), len(re.findall(r"[|?]", pattern))
    is_simple = _PATTERN.fullmatch(pattern) and not re.search(r"[*+?][*+]", pattern)
    is_quick = options < 20 and (len(text) + 2) ** (repeats + 1) * 2**options < _MOST_TRIES
    # At the end of a line, `$` differs.
    if not is_simple or not is_quick or "\n" in text:
        raise RefusedValueError
    try:
        return re.search(pattern, text, re.ASCII) is not None
    except re.error as error:
        raise RefusedValueError from error


def _size(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise RefusedValueError
    return len(value)


def _extreme(function: Callable[[list[float]], float]) -> Callable[..., float]:
    def call(*values: Any) -> float:
        return function([value if isinstance(value, int) else _float(value) for value in values])

    return call


def _of_whole(function: Callable[[int, int], int]) -> Callable[..., int]:
    def call(*values: Any) -> int:
        return reduce(function, map(_sprig_int, values))

    return call


def quotient(a: int, b: int) -> int:
    """Return the quotient of two numbers as Go makes it: without its fraction."""
    return abs(a) // abs(b) * (1 if (a < 0) is (b < 0) else -1)


def _replaced(text: Any, old: Any, new: Any) -> str:
    if not isinstance(text, str) or not isinstance(old, str) or not isinstance(new, str):
        raise RefusedValueError
    if text.count(old) * len(new) > MAX_CHARACTERS:
        raise RefusedValueError
    return text.replace(old, new)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "int()": _int,
    "asInt()": _int,
    "sprig.int()": _sprig_int,
    "sprig.atoi()": _sprig_int,
    "double()": _float,
    "float()": _float,
    "asFloat()": _float,
    "sprig.float64()": _float,
    "string()": _string,
    "sprig.toString()": _string,
    "toJson()": json_text,
    "toJSON()": json_text,
    "sprig.toJson()": json_text,
    "fromJSON()": _parsed,
    "parseJson()": _parsed,
    "sprig.fromJson()": _parsed,
    "jsonpath()": _jsonpath,
    "sprig.ternary()": _ternary,
    "len()": _size,
    "size()": _size,
    "lower()": _on_text(str.lower),
    "upper()": _on_text(str.upper),
    "trim()": _on_text(str.strip),
    "sprig.lower()": _on_text(str.lower),
    "sprig.upper()": _on_text(str.upper),
    "sprig.trim()": _on_text(str.strip),
    "min()": _extreme(min),
    "max()": _extreme(max),
    "replace()": _replaced,
    "sprig.replace()": lambda old, new, text: _replaced(text, old, new),
    "sprig.default()": lambda default, given: given or default,
    "sprig.add()": _of_whole(operator.add),
    "sprig.sub()": _of_whole(operator.sub),
    "sprig.mul()": _of_whole(operator.mul),
    "sprig.div()": _of_whole(quotient),
    "sprig.mod()": _of_whole(lambda a, b: a - quotient(a, b) * b),
    "sprig.min()": _of_whole(min),
    "sprig.max()": _of_whole(max),
    "ceil()": lambda value: float(math.ceil(_float(value))),
    "floor()": lambda value: float(math.floor(_float(value))),
}
"""Functions by name, with `()` behind it."""
