"""Values of expressions, as far as they are known before the run.

A value that the run makes is `UNKNOWN`, and so is every value that the real engine would refuse:
an expression never raises. `false && x` is false whatever `x` is.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.formulas.functions import FUNCTIONS, RefusedValueError, matches
from kfp_placement_engine.readers.formulas.languages import CEL
from kfp_placement_engine.readers.formulas.syntax import Language, Literal, Node, Variable
from kfp_placement_engine.readers.tree.values import MAX_CHARACTERS, UNKNOWN, has_unknown

_MOST: Final = 2**63
"""Numbers that an engine's integers cannot hold."""

Lookup = Callable[[str], Any]
"""Function that returns the value of a variable by its path, or `UNKNOWN`."""


def value_of(node: Node, lookup: Lookup, language: Language) -> Any:
    """Return the value of an expression: text, number, boolean, None, list, mapping or `UNKNOWN`.

    Args:
        node: syntax tree.
        lookup: values of variables.
        language: language of the expression, whose rules for types count.
    """
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Variable):
        return lookup(node.path)
    name, operands = node
    if name in ("&&", "||"):
        return _joined(operands, lookup, language, decisive=name == "||")
    if name == "?:":
        chosen = value_of(operands[0], lookup, language)
        if not isinstance(chosen, bool):
            return UNKNOWN
        return value_of(operands[1 if chosen else 2], lookup, language)
    values = [value_of(operand, lookup, language) for operand in operands]
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    try:
        result = _applied(name, values, language)
    except (RefusedValueError, InputError, ArithmeticError, TypeError, ValueError, LookupError):
        return UNKNOWN
    return result if _is_small(result) else UNKNOWN


def unknown(_path: str) -> Any:
    """Return that a variable is not known."""
    return UNKNOWN


def _joined(
    operands: tuple[Node, ...], lookup: Lookup, language: Language, *, decisive: bool
) -> Any:
    """Return the value of operands joined by `||` (decided by a true one) or by `&&`."""
    result: Any = not decisive
    for operand in operands:
        value = value_of(operand, lookup, language)
        if value is decisive:
            return decisive
        if not isinstance(value, bool):
            result = UNKNOWN
    return result


def _applied(name: str, values: list[Any], language: Language) -> Any:
    if name.endswith("()") and name != "-()":
        return FUNCTIONS[name](*values)
    if name in _HOLDERS:
        return _HOLDERS[name](values)
    if len(values) == 1:
        return _prefixed(name, values[0])
    left, right = values
    if name in ("==", "!="):
        return _equal(left, right) is (name == "==")
    if name in _ORDERS:
        return _ORDERS[name](*_comparable(left, right))
    if name == "in":
        return _contained(left, right)
    if name == "[]":
        return _entry(left, right)
    if name in _TEXT_TESTS:
        return _TEXT_TESTS[name](_text(left), _text(right))
    if name == "??":
        return right if left is None else left
    return _calculated(name, left, right, language)


def _prefixed(name: str, value: Any) -> Any:
    if name == "!" and isinstance(value, bool):
        return not value
    if name in ("-()", "+"):
        return -_number(value) if name == "-()" else _number(value)
    raise RefusedValueError


def _equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal; those of different types are not."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return left, right
    raise RefusedValueError


def _contained(value: Any, holder: Any) -> bool:
    if isinstance(holder, list):
        return any(_equal(value, entry) for entry in holder)
    if isinstance(holder, dict) and isinstance(value, str):
        return value in holder
    raise RefusedValueError


def _entry(holder: Any, key: Any) -> Any:
    is_key = isinstance(key, str) if isinstance(holder, dict) else type(key) is int
    if not isinstance(holder, dict | list) or not is_key:
        raise RefusedValueError
    return holder[key]


def _calculated(name: str, left: Any, right: Any, language: Language) -> Any:
    if name == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    a, b = _number(left), _number(right)
    if language is CEL and type(a) is not type(b):
        raise RefusedValueError
    if name == "/" and (language is not CEL or isinstance(a, float)):
        return float(a) / float(b)
    if name in ("/", "%"):
        # Go's remainder has the sign of the first number, and its quotient is cut off.
        quotient = int(abs(a) // abs(b)) * (1 if (a < 0) is (b < 0) else -1)
        return quotient if name == "/" else a - quotient * b
    if name == "**" or (name == "^" and not language.plain_words):
        return float(a) ** float(b)
    return _CALCULATIONS[name](a, b)


def _number(value: Any) -> int | float:
    if is_number(value):
        return value  # type: ignore[no-any-return]
    raise RefusedValueError


def is_number(value: Any) -> bool:
    """Return whether a value is a number, which a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise RefusedValueError


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_CHARACTERS
    if isinstance(value, float):
        return abs(value) < float("inf")
    if isinstance(value, int):
        return abs(value) < _MOST
    return not has_unknown(value)


def _mapping(values: list[Any]) -> dict[str, Any]:
    """Return a mapping of keys and values that follow each other."""
    return dict(zip(map(_text, values[::2]), values[1::2], strict=True))


_HOLDERS: Mapping[str, Callable[[list[Any]], Any]] = {"[,]": list, "{:}": _mapping}

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_TEXT_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "contains": operator.contains,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "=~": matches,
    "!~": lambda text, pattern: not matches(text, pattern),
}

_CALCULATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
