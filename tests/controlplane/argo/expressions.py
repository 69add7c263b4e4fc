"""The two little languages of a DAG task: `when` and `depends`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.controlplane.argo.exceptions import TemplateError

_WORD = r"[A-Za-z_][A-Za-z0-9_.]*"
_WHEN_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<number>-?\d+(?:\.\d+)?)"""
    rf"""|(?P<operator>==|!=|<=|>=|&&|\|\||=~|!~|[<>!()])|(?P<word>{_WORD}))"""
)
_DEPENDS_TOKEN = re.compile(
    r"\s*(?:(?P<operator>&&|\|\||[!()])|(?P<word>[A-Za-z0-9][-A-Za-z0-9_]*(?:\.[A-Z][A-Za-z]+)?))"
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "=~": lambda left, right: re.search(right, left) is not None,
    "!~": lambda left, right: re.search(right, left) is None,
}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(pattern: re.Pattern[str], text: str) -> list[_Token]:
    found: list[_Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = pattern.match(text, position)
        if match is None or match.lastgroup is None:
            raise TemplateError(f"Invalid token at {text[position:]!r} of {text!r}")
        found.append(_Token(match.lastgroup, match.group(match.lastgroup)))
        position = match.end()
    return found


class _Parser:
    """Disjunctions of conjunctions of comparisons, with `!` and parentheses."""

    def __init__(self, tokens: list[_Token], text: str, read: Callable[[_Token], Any]) -> None:
        self._tokens = tokens
        self._text = text
        self._read = read
        self._position = 0

    def value(self) -> Any:
        result = self._either()
        if self._position != len(self._tokens):
            raise TemplateError(f"{self._text!r} does not end where it should")
        return result

    def _next(self, *operators: str) -> str | None:
        """The next token if it is one of these operators."""
        if self._position < len(self._tokens):
            token = self._tokens[self._position]
            if token.kind == "operator" and token.text in operators:
                self._position += 1
                return token.text
        return None

    def _either(self) -> Any:
        result = self._both()
        while self._next("||"):
            other = self._both()
            result = self._bool(result) or self._bool(other)
        return result

    def _both(self) -> Any:
        result = self._comparison()
        while self._next("&&"):
            other = self._comparison()
            result = self._bool(result) and self._bool(other)
        return result

    def _comparison(self) -> Any:
        left = self._single()
        operator = self._next(*_COMPARISONS)
        if operator is None:
            return left
        right = self._single()
        try:
            return _COMPARISONS[operator](left, right)
        except TypeError as error:
            raise TemplateError(f"{left!r} and {right!r} cannot be compared") from error

    def _single(self) -> Any:
        if self._next("!"):
            return not self._bool(self._single())
        if self._next("("):
            result = self._either()
            if not self._next(")"):
                raise TemplateError(f"a parenthesis is open in {self._text!r}")
            return result
        if self._position >= len(self._tokens) or (self._tokens[self._position].kind == "operator"):
            raise TemplateError(f"Unexpected end of expression {self._text!r}")
        token = self._tokens[self._position]
        self._position += 1
        return self._read(token)

    def _bool(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TemplateError(f"{value!r} in {self._text!r} is no truth value")
        return value


def _when_value(token: _Token) -> Any:
    if token.kind == "string":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1])
    if token.kind == "number":
        return float(token.text)
    if token.text in ("true", "false"):
        return token.text == "true"
    return token.text


def should_execute(when: str) -> bool:
    """Whether a resolved `when` holds; an empty one does. Bare words are texts.

    Raises:
        TemplateError: it is no expression, or no truth value.
    """
    if not when:
        return True
    try:
        result = _Parser(_tokens(_WHEN_TOKEN, when), when, _when_value).value()
    except TemplateError as error:
        raise TemplateError(f"Invalid 'when' expression '{when}': {error}") from error
    if not isinstance(result, bool):
        raise TemplateError(f"Expected boolean evaluation for '{when}'. Got {result}")
    return result


def names_in_depends(depends: str) -> list[str]:
    """The tasks that a `depends` names, each once, in order."""
    words = [token.text for token in _tokens(_DEPENDS_TOKEN, depends) if token.kind == "word"]
    return list(dict.fromkeys(word.partition(".")[0] for word in words))


def depends_holds(
    depends: str, results: Mapping[str, frozenset[str]], continues: Mapping[str, Mapping[str, bool]]
) -> bool:
    """Whether a `depends` holds.

    Args:
        depends: the expression.
        results: task -> what holds for it, such as `Succeeded`.
        continues: task -> its `continueOn`, for tasks named without a result.
    """

    def read(token: _Token) -> bool:
        name, _, result = token.text.partition(".")
        if result:
            return result in results[name]
        accepted = {"Succeeded", "Skipped", "Daemoned"}
        accepted |= {"Errored"} if continues.get(name, {}).get("error") else set()
        accepted |= {"Failed"} if continues.get(name, {}).get("failed") else set()
        return bool(accepted & results[name])

    return bool(_Parser(_tokens(_DEPENDS_TOKEN, depends), depends, read).value())
